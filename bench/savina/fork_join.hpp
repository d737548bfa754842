// Savina's fork-join throughput: one actor sends work to many, to one after the other.
#pragma once

#include <bench/savina/collector.hpp>
#include <bench/savina/fork_join.view.hpp>

namespace gyre_savina::fork_join {

struct Forker;

/// Does work, and tells the forker what came out when it is told to finish.
struct Worker {
  using Handles = gyre::Handles<view::Work, view::Finish>;
  static constexpr bool keys_side_by_side = true;

  uint64_t value = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Work::Reader in) {
    if (ctx.rank() == 0) value = work(value, in.getSeed());
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Finish::Reader in) {
    ctx.tell<view::Joined>(gyre::Address<Forker>{in.getForker()},
                           [&](view::Joined::Builder joined) { joined.setValue(value); });
  }
};

/// Has the instance as its key. Sends each of its `actors` workers `messages` pieces of work, 31 by each
/// call. Its worker w has the key `instance * actors + w`. The result is the sum of what they report.
struct Forker {
  using Handles = gyre::Handles<run::view::Start, run::view::GoOn, view::Joined>;
  static constexpr uint32_t max_per_worker = most_instances + 1;
  static constexpr uint32_t at_once = 31;

  // Message n goes to worker n mod `actors`. Behind the work come as many messages as workers: to finish.
  uint64_t next = 0, all = 0;
  uint64_t sum = 0;
  uint32_t actors = 0, joined = 0;

  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, run::view::Start::Reader in) {
    if (ctx.rank() == 0) {
      actors = in.getActors();
      all = uint64_t(in.getMessages()) * in.getActors();
    }
    ctx.sync();
    send(ctx);
  }
  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, run::view::GoOn::Reader) { send(ctx); }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Joined::Reader in) {
    if (ctx.rank() == 0) {
      sum += in.getValue();
      ++joined;
    }
    ctx.sync();
    if (joined == actors) report(ctx, ctx.key(), sum);
  }

 private:
  GYRE_DEVICE void send(gyre::Sending<at_once + 1>& ctx) {
    const uint64_t from = next, instance = ctx.key(), workers = instance * actors;
    const bool finishes = from >= all;
    const uint64_t left = (finishes ? all + actors : all) - from;
    const uint32_t now = left < at_once ? uint32_t(left) : at_once;
    const auto worker = [&](uint32_t n) { return gyre::Address<Worker>{workers + (from + n) % actors}; };
    if (finishes) {
      ctx.tell_each<view::Finish>(
          now, worker, [&](uint32_t, view::Finish::Builder finish) { finish.setForker(instance); });
    } else {
      ctx.tell_each<view::Work>(now, worker, [&](uint32_t n, view::Work::Builder piece) {
        piece.setSeed(instance << 32 | (from + n));
      });
    }
    ctx.sync();  // every thread has read the state
    if (ctx.rank() == 0) next = from + now;
    if (from + now == all + actors) return;
    ctx.tell<run::view::GoOn>(gyre::Address<Forker>{instance}, [](run::view::GoOn::Builder) {});
  }
};

}  // namespace gyre_savina::fork_join
