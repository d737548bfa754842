// Savina's fork-join throughput: one actor sends work to many, to one after the other.
#pragma once

#include <bench/savina/collector.hpp>
#include <bench/savina/fork_join.view.hpp>

namespace gyre_savina::fork_join {

struct Forker;

/// Does work, and tells the forker what came out when it is told to finish.
struct Worker {
  using Handles = gyre::Handles<view::Work, view::EndOfRow, view::Finish>;
  static constexpr bool keys_side_by_side = true;

  uint64_t value = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Work::Reader in) {
    if (ctx.rank() == 0) value = work(value, in.getSeed());
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::EndOfRow::Reader in) {
    ctx.tell<view::RowDone>(gyre::Address<Forker>{in.getForker()}, [](view::RowDone::Builder) {});
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Finish::Reader in) {
    ctx.tell<view::Joined>(gyre::Address<Forker>{in.getForker()},
                           [&](view::Joined::Builder joined) { joined.setValue(value); });
  }
};

/// Has the instance as its key. Sends each of its `actors` workers `messages` pieces of work, 62 by each
/// call, in rows of 247. The worker of a row's last piece says when it is done. It is another one each time:
/// 247 and Savina's 60 workers have no common divisor. Two rows are under way: else the forker would run
/// ahead, and fill the memory in which messages wait. Worker w has the key `instance * actors + w`. The
/// result is the sum of what they report.
struct Forker {
  using Handles = gyre::Handles<run::view::Start, run::view::GoOn, view::RowDone, view::Joined>;
  static constexpr uint32_t max_per_worker = most_instances + 1;
  static constexpr uint32_t at_once = 62, most_sent = at_once + 2, row = 247, most_rows = 2;

  // Message n goes to worker n mod `actors`. Behind the work come as many messages as workers: to finish.
  uint64_t next = 0, all = 0;
  uint64_t sum = 0;
  uint32_t actors = 0, joined = 0;
  uint32_t left_of_row = 0;  // pieces to send of the row that was begun
  uint32_t rows = 0;         // begun, and not done yet

  GYRE_DEVICE void on(gyre::Sending<most_sent>& ctx, run::view::Start::Reader in) {
    if (ctx.rank() == 0) {
      actors = in.getActors();
      all = uint64_t(in.getMessages()) * in.getActors();
    }
    ctx.sync();
    send(ctx);
  }
  GYRE_DEVICE void on(gyre::Sending<most_sent>& ctx, run::view::GoOn::Reader) {
    if (next >= all) return finish(ctx);
    send(ctx);
  }
  GYRE_DEVICE void on(gyre::Sending<most_sent>& ctx, view::RowDone::Reader) {
    const uint32_t still = rows - 1;
    // No message to itself is under way.
    const bool waits = rows == most_rows && left_of_row == 0 && next < all;
    ctx.sync();  // every thread has read the state
    if (ctx.rank() == 0) rows = still;
    ctx.sync();
    if (waits) send(ctx);
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Joined::Reader in) {
    if (ctx.rank() == 0) {
      sum += in.getValue();
      ++joined;
    }
    ctx.sync();
    if (joined == actors) report(ctx, ctx.key(), sum);
  }

 private:
  // Sends the next pieces of the row that was begun, or of another one. There are some.
  GYRE_DEVICE void send(gyre::Sending<most_sent>& ctx) {
    const uint64_t left = all - next;
    const bool begins = left_of_row == 0;
    const uint32_t of_row = !begins ? left_of_row : left < row ? uint32_t(left) : row, begun = rows + begins;
    const uint32_t now = of_row < at_once ? of_row : at_once;
    const uint64_t from = next, behind = from + now, instance = ctx.key();
    ctx.sync();  // every thread has read the state
    ctx.tell_each<view::Work>(
        now, [&](uint32_t n) { return worker(instance, from + n); },
        [&](uint32_t n, view::Work::Builder piece) { piece.setSeed(instance << 32 | (from + n)); });
    const bool ends = now == of_row;
    if (ends) {
      ctx.tell<view::EndOfRow>(worker(instance, behind - 1),
                               [&](view::EndOfRow::Builder end) { end.setForker(instance); });
    }
    if (ctx.rank() == 0) {
      next = behind;
      left_of_row = of_row - now;
      rows = begun;
    }
    if (ends && begun == most_rows && behind != all) return;
    go_on(ctx);
  }
  GYRE_DEVICE void finish(gyre::Sending<most_sent>& ctx) {
    const uint64_t from = next, left = all + actors - from, instance = ctx.key();
    const uint32_t now = left < at_once ? uint32_t(left) : at_once;
    ctx.sync();  // every thread has read the state
    ctx.tell_each<view::Finish>(
        now, [&](uint32_t n) { return worker(instance, from + n); },
        [&](uint32_t, view::Finish::Builder finish) { finish.setForker(instance); });
    if (ctx.rank() == 0) next = from + now;
    if (now != left) go_on(ctx);
  }
  GYRE_DEVICE gyre::Address<Worker> worker(uint64_t instance, uint64_t message) const {
    return {instance * actors + message % actors};
  }
  GYRE_DEVICE static void go_on(gyre::Sending<most_sent>& ctx) {
    ctx.tell<run::view::GoOn>(gyre::Address<Forker>{ctx.key()}, [](run::view::GoOn::Builder) {});
  }
};

}  // namespace gyre_savina::fork_join
