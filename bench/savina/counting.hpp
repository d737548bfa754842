// Savina's counting actor: one actor floods another, whose handler does next to nothing.
#pragma once

#include <bench/savina/collector.hpp>
#include <bench/savina/counting.view.hpp>
#include <gyre/device/asking.hpp>
#include <gyre/device/parallel.hpp>

namespace gyre_savina::counting {

/// Has the instance as its key, plus 1. Increments that arrive together are handled at once.
struct Counter {
  using Handles = gyre::Handles<view::Increment, view::Retrieve>;
  static constexpr bool side_by_side = true;
  static constexpr uint32_t max_per_worker = most_instances + 1;

  uint64_t count = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Increment::Reader) {
    if (ctx.rank() == 0) gyre::add_to(count, uint64_t(1));
  }
  GYRE_DEVICE void on(gyre::Context&, view::Retrieve::Reader, view::Counted::Builder out) {
    out.setCount(count);
  }
};

/// Has the instance as its key. Tells the counter behind its key `messages` increments, 62 by each call, in
/// rows of 248. It asks for the count behind each row, and has two rows under way: else it would run ahead
/// of the counter, and fill the memory in which messages wait. The result is the last count.
struct Producer {
  using Handles = gyre::Handles<run::view::Start, run::view::GoOn>;
  static constexpr uint32_t max_per_worker = most_instances + 1;
  static constexpr uint32_t at_once = 62, most_sent = at_once + 2, row = 4 * at_once, most_rows = 2;
  using Asking = gyre::Asking<most_sent>;
  struct Row {};  // what its ask is for

  uint32_t left = 0;         // increments to send
  uint32_t left_of_row = 0;  // of them in the row that was begun
  uint32_t rows = 0;         // begun, and not counted yet

  GYRE_DEVICE void on(Asking& ctx, run::view::Start::Reader in) {
    if (ctx.rank() == 0) left = in.getMessages();
    ctx.sync();
    send(ctx);
  }
  GYRE_DEVICE void on(Asking& ctx, run::view::GoOn::Reader) { send(ctx); }
  GYRE_DEVICE void on_reply(Asking& ctx, Row, view::Counted::Reader in) {
    const uint32_t still = rows - 1;
    const bool waits = rows == most_rows && left_of_row == 0;  // no message to itself is under way
    ctx.sync();                                                // every thread has read the state
    if (ctx.rank() == 0) rows = still;
    ctx.sync();
    if (left == 0 && still == 0) return report(ctx, ctx.key(), in.getCount());
    if (waits) send(ctx);
  }
  // The instance does not end then, and the run reports that.
  GYRE_DEVICE void on_failure(gyre::Context&, Row, gyre::ErrorBody) {}

 private:
  // Sends the next increments of the row that was begun, or of another one; none where all are sent.
  GYRE_DEVICE void send(Asking& ctx) {
    if (left == 0) return;
    const gyre::Address<Counter> counter{ctx.key() + 1};
    const bool begins = left_of_row == 0;
    const uint32_t of_row = !begins ? left_of_row : left < row ? left : row, begun = rows + begins;
    const uint32_t now = of_row < at_once ? of_row : at_once, others = left - now;
    ctx.sync();  // every thread has read the state
    ctx.tell_each<view::Increment>(
        now, [&](uint32_t) { return counter; }, [](uint32_t, view::Increment::Builder) {});
    const bool ends = now == of_row;
    if (ends)
      ctx.ask<view::Retrieve>(
          counter, [](view::Retrieve::Builder) {}, Row{});
    if (ctx.rank() == 0) {
      left = others;
      left_of_row = of_row - now;
      rows = begun;
    }
    if (ends && (others == 0 || begun == most_rows)) return;
    ctx.tell<run::view::GoOn>(gyre::Address<Producer>{ctx.key()}, [](run::view::GoOn::Builder) {});
  }
};

}  // namespace gyre_savina::counting
