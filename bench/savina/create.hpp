// Savina's fork-join actor creation: each piece of work gets an actor of its own.
#pragma once

#include <bench/savina/collector.hpp>
#include <bench/savina/create.view.hpp>

namespace gyre_savina::create {

struct Forker;

/// Does one piece of work. It stays until the launch ends: only the host stops actors.
struct Task {
  uint64_t value = 0;

  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Work::Reader in) {
    const uint64_t result = work(0, in.getSeed());
    if (ctx.rank() == 0) value = result;
    ctx.tell<view::Joined>(gyre::Address<Forker>{in.getForker()},
                           [&](view::Joined::Builder joined) { joined.setValue(result); });
  }
};

/// Has the instance as its key. Creates `messages` tasks, 31 by each call, and has at most `most_rows` times
/// 31 of them under way: else their replies would fill the memory. Task n has the key
/// `instance * messages + n`. The result is the sum of what they tell.
struct Forker {
  using Handles = gyre::Handles<run::view::Start, run::view::GoOn, view::Joined>;
  static constexpr uint32_t max_per_worker = most_instances + 1;
  static constexpr uint32_t at_once = 31, most_rows = 8;

  uint64_t sum = 0;
  uint32_t tasks = 0, created = 0, joined = 0;

  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, run::view::Start::Reader in) {
    if (ctx.rank() == 0) tasks = in.getMessages();
    ctx.sync();
    open(ctx);
  }
  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, run::view::GoOn::Reader) { open(ctx); }
  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, view::Joined::Reader in) {
    const uint64_t total = sum + in.getValue();
    const uint32_t now = joined + 1;
    ctx.sync();  // every thread has read the state
    if (ctx.rank() == 0) {
      sum = total;
      joined = now;
    }
    if (now == tasks) return report(ctx, ctx.key(), total);
    if (now % at_once == 0) create(ctx);
  }

 private:
  // Creates the first rows; each is behind the one before by a message to itself.
  GYRE_DEVICE void open(gyre::Sending<at_once + 1>& ctx) {
    const uint32_t rows = created / at_once + 1;
    const bool more = rows < most_rows && created + at_once < tasks;
    create(ctx);
    if (more) ctx.tell<run::view::GoOn>(gyre::Address<Forker>{ctx.key()}, [](run::view::GoOn::Builder) {});
  }
  GYRE_DEVICE void create(gyre::Sending<at_once + 1>& ctx) {
    const uint32_t from = created, left = tasks - from, now = left < at_once ? left : at_once;
    const uint64_t instance = ctx.key(), first = instance * tasks + from;
    ctx.sync();  // every thread has read the state
    ctx.tell_each<view::Work>(
        now, [&](uint32_t n) { return gyre::Address<Task>{first + n}; },
        [&](uint32_t n, view::Work::Builder piece) {
          piece.setForker(uint32_t(instance));
          piece.setSeed(uint32_t(first + n));
        });
    if (ctx.rank() == 0) created = from + now;
  }
};

}  // namespace gyre_savina::create
