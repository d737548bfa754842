// The actors of gyre-bench rollback: one handler, with and without a copy of its state.
#pragma once

#include <bench/actors/ping.view.hpp>
#include <gyre/device/context.hpp>

namespace gyre_bench {

/// `bytes` of state, of which a message changes the first word and the last. Fails where the value is odd.
template <uint32_t bytes, bool rolls_back>
struct Kept {
  static constexpr bool rollback_on_error = rolls_back;

  uint64_t state[bytes / 8] = {};

  GYRE_DEVICE void on(gyre::Context& ctx, view::PingRequest::Reader in, view::PingResponse::Builder out) {
    const uint64_t value = in.getValue(), first = state[0] + value, last = state[bytes / 8 - 1] + 1;
    ctx.sync();
    if (ctx.rank() == 0) {
      state[0] = first;
      state[bytes / 8 - 1] = last;
    }
    out.setValue(first);
    if (value % 2 == 1) ctx.fail(uint32_t(value));
  }
};
using Kept64 = Kept<64, false>;
using Undone64 = Kept<64, true>;
using Kept1024 = Kept<1024, false>;
using Undone1024 = Kept<1024, true>;

}  // namespace gyre_bench
