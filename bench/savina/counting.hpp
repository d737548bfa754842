// Savina's counting actor: one actor floods another, whose handler does next to nothing.
#pragma once

#include <bench/savina/collector.hpp>
#include <bench/savina/counting.view.hpp>

namespace gyre_savina::counting {

/// Has the instance as its key, plus 1. The result is its count.
struct Counter {
  using Handles = gyre::Handles<view::Increment, view::Retrieve>;
  static constexpr bool keys_side_by_side = true;
  static constexpr uint32_t max_per_worker = most_instances + 1;

  uint64_t count = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Increment::Reader) {
    if (ctx.rank() == 0) ++count;
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Retrieve::Reader) { report(ctx, ctx.key() - 1, count); }
};

/// Has the instance as its key. Tells the counter behind its key `messages` increments, 31 by each call.
struct Producer {
  using Handles = gyre::Handles<run::view::Start, run::view::GoOn>;
  static constexpr uint32_t max_per_worker = most_instances + 1;
  static constexpr uint32_t at_once = 31;

  uint32_t left = 0;

  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, run::view::Start::Reader in) {
    send(ctx, in.getMessages());
  }
  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, run::view::GoOn::Reader) {
    const uint32_t now = left;
    ctx.sync();  // every thread has read it
    send(ctx, now);
  }

 private:
  GYRE_DEVICE void send(gyre::Sending<at_once + 1>& ctx, uint32_t count) {
    const gyre::Address<Counter> counter{ctx.key() + 1};
    const uint32_t now = count < at_once ? count : at_once;
    ctx.tell_each<view::Increment>(
        now, [&](uint32_t) { return counter; }, [](uint32_t, view::Increment::Builder) {});
    if (count == now) return ctx.tell<view::Retrieve>(counter, [](view::Retrieve::Builder) {});
    if (ctx.rank() == 0) left = count - now;
    ctx.tell<run::view::GoOn>(gyre::Address<Producer>{ctx.key()}, [](run::view::GoOn::Builder) {});
  }
};

}  // namespace gyre_savina::counting
