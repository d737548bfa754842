// Witness: tells by its replies which messages it handled, and writes each down with its times.
#pragma once

#include <gyre/device/context.hpp>
#include <witness/witness.view.hpp>

namespace witness {

#if !defined(__CUDACC_RTC__)
/// Sleeps, and appends what was handled to the file that the environment variable GYRE_WITNESS_FILE names.
/// Returns when it began, in nanoseconds.
uint64_t act_and_record(uint64_t key, uint64_t id, uint32_t sleep_us);
#endif

struct Witness {
  uint64_t began = 0;
  uint64_t count = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Act::Reader in, view::Acted::Builder out) {
    uint64_t now = in.getId();
#if !defined(__CUDACC_RTC__)
    now = act_and_record(ctx.key(), in.getId(), in.getSleepUs());
#endif
    if (count == 0) began = now;
    ++count;
    GYRE_CHECK(!in.getFail());
    out.setBegan(began);
    out.setCount(count);
  }
};

}  // namespace witness
