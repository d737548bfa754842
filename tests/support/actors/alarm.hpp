// An actor that answers when its timer is due.
#pragma once

#include <gyre/device/asking.hpp>
#include <support/actors/alarm.view.hpp>

namespace gyre_alarm {

struct Alarm {
  using Handles = gyre::Handles<view::Wake, view::Due>;

  gyre::Promise<view::Woken> sleeper;
  uint64_t times = 0;

  GYRE_DEVICE void on(gyre::Asking<1, gyre::Timers>& ctx, view::Wake::Reader in, view::Woken::Builder) {
    const auto promise = ctx.later<view::Woken>();
    ctx.send_after<view::Due>(gyre::Duration::nanoseconds(in.getAfterNs()), ctx.self<Alarm>(),
                              [](view::Due::Builder) {});
    ctx.sync();
    if (ctx.rank() == 0) sleeper = promise;
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Due::Reader) {
    const uint64_t now = times + 1;
    ctx.answer(sleeper, [&](view::Woken::Builder woken) { woken.setTimes(now); });
    ctx.sync();
    if (ctx.rank() == 0) times = now;
    ctx.sync();
  }
};

}  // namespace gyre_alarm
