// Actors that set timers.
#pragma once

#include <gyre/device/asking.hpp>
#include <support/actors/clock.view.hpp>

namespace gyre_clock {

struct Clock;
struct ClockThatAsks;

/// Hears what timers send.
struct Bell {
  using Handles = gyre::Handles<view::Ring, view::HeardRequest>;

  uint64_t count = 0, sum = 0, last = 0, unordered = 0, from_others = 0;

  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Ring::Reader in) {
    const bool known = ctx.is_from<Clock>() || ctx.is_from<ClockThatAsks>();
    ctx.sync();
    if (ctx.rank() == 0) {
      unordered += count != 0 && in.getNumber() <= last ? 1 : 0;
      from_others += known ? 0 : 1;
      ++count;
      sum += in.getNumber();
      last = in.getNumber();
    }
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::HeardRequest::Reader, view::Heard::Builder out) {
    out.setCount(count);
    out.setSum(sum);
    out.setLast(last);
    out.setUnordered(unordered);
    out.setFromOthers(from_others);
    ctx.sync();
  }
};

/// Sets timers for bells.
template <class ContextOf>
struct SetsTimers {
  using Handles = gyre::Handles<view::Set, view::Cancel>;
  static constexpr uint32_t most = 8;

  GYRE_DEVICE void on(ContextOf& ctx, view::Set::Reader in, view::Started::Builder out) {
    const uint32_t count = in.getCount() < most ? in.getCount() : most;
    auto timers = out.initTimers(count);
    for (uint32_t i = 0; i < count; ++i) {
      const gyre::Address<Bell> bell{in.getBell() + i * in.getBellStep()};
      const gyre::Duration delay =
          gyre::Duration::nanoseconds(in.getDelayNs() + uint64_t(int64_t(i) * in.getStepNs()));
      const auto fill = [&](view::Ring::Builder ring) { ring.setNumber(in.getNumber() + i); };
      const gyre::Timer timer = in.getPeriodic() ? ctx.template send_every<view::Ring>(delay, bell, fill)
                                                 : ctx.template send_after<view::Ring>(delay, bell, fill);
      timers.set(i, timer.id);
    }
    if (in.getFails()) ctx.fail(3);
  }
  GYRE_DEVICE void on(ContextOf& ctx, view::Cancel::Reader in, view::Cancelled::Builder) {
    ctx.cancel(gyre::Timer{in.getTimer()});
  }
};
/// In a set that sends. It has a state: a stopped one is gone.
struct Clock : SetsTimers<gyre::Sending<8, gyre::Timers>> {
  uint64_t reserved = 0;
};
/// In a set that asks.
struct ClockThatAsks : SetsTimers<gyre::Asking<8, gyre::Timers>> {
  uint64_t reserved = 0;
};

/// Sends itself ticks by a timer that it cancels at the last one. After that it sets a timer for itself at
/// each message: a chain that only a drain ends.
struct Metronome {
  using Handles = gyre::Handles<view::Begin, view::Tick, view::HeardRequest>;

  gyre::Timer timer;
  uint64_t ticks = 0, wanted = 0, others = 0;
  bool stops = false;

  GYRE_DEVICE void on(gyre::Sending<1, gyre::Timers>& ctx, view::Begin::Reader in) {
    const gyre::Timer set = ctx.send_every<view::Tick>(gyre::Duration::nanoseconds(in.getPeriodNs()),
                                                       ctx.self<Metronome>(), [](view::Tick::Builder) {});
    ctx.sync();
    if (ctx.rank() == 0) {
      timer = set;
      wanted = in.getTicks();
      stops = in.getStops();
    }
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Sending<2, gyre::Timers>& ctx, view::Tick::Reader) {
    const bool ends = ticks + 1 >= wanted, told_itself = ctx.is_from<Metronome>();
    ctx.sync();
    if (ctx.rank() == 0) {
      ++ticks;
      others += told_itself ? 0 : 1;
    }
    ctx.sync();
    if (!ends) return;
    if (stops) return ctx.stop(ctx.self<Metronome>());
    ctx.cancel(timer);
    ctx.send_after<view::Tick>(gyre::Duration::microseconds(1), ctx.self<Metronome>(),
                               [](view::Tick::Builder) {});
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::HeardRequest::Reader, view::Heard::Builder out) {
    out.setCount(ticks);
    out.setFromOthers(others);
    ctx.sync();
  }
};

}  // namespace gyre_clock
