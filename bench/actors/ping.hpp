// The actors of the throughput benchmark, and of those of asks that take long.
#pragma once

#include <bench/actors/ping.view.hpp>
#include <gyre/device/context.hpp>
#include <gyre/device/parallel.hpp>

namespace gyre_bench {

/// What a ping with `value` is answered: another number for each.
GYRE_DEVICE constexpr uint64_t ping_answer(uint64_t value) { return (value + 1) * 0x9e3779b97f4a7c15u; }

/// Answers by ping_answer. Has no state.
struct Ping {
  static constexpr bool side_by_side = true;

  GYRE_DEVICE void on(gyre::Context&, view::PingRequest::Reader in, view::PingResponse::Builder out) {
    out.setValue(ping_answer(in.getValue()));
  }
};

/// Answers by ping_answer, after the time that it is asked to take. Has no state.
struct SlowPinger {
  GYRE_DEVICE void on(gyre::Context& ctx, view::SlowPing::Reader in, view::PingResponse::Builder out) {
    const uint64_t begin = ctx.now_ns(), ns = in.getNs();
    while (ctx.now_ns() - begin < ns) {
    }
    out.setValue(ping_answer(in.getValue()));
  }
};

/// Adds up the amounts of its messages.
struct Counter {
  using Handles = gyre::Handles<view::Count, view::CountedRequest>;
  static constexpr bool side_by_side = true;

  uint64_t messages = 0;
  uint64_t sum = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Count::Reader in) {
    const uint64_t value = in.getValue();
    if (ctx.rank() != 0) return;
    gyre::add_to(messages, uint64_t(1));
    gyre::add_to(sum, value);
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::CountedRequest::Reader in, view::Counted::Builder out) {
    ctx.sync();
    out.setValue(in.getSum() ? sum : messages);
  }
};

}  // namespace gyre_bench
