// Probe: does what its messages say, so that tests can provoke every outcome on both engines.
#pragma once

#include <gyre/device/context.hpp>
#include <support/actors/probe.view.hpp>

namespace gyre_test {

struct Probe {
  using Handles = gyre::Handles<view::ProbeRequest, view::ProbeNote>;

  uint64_t sum = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::ProbeRequest::Reader in, view::ProbeResponse::Builder out) {
    const uint64_t argument = in.getArgument();
    out.setKey(ctx.key());
    switch (in.getAction()) {
      case view::Action::ANSWER:
        return out.setValue(2 * argument + 1);
      case view::Action::FAIL:
        return ctx.fail(uint32_t(argument));
      case view::Action::GROW: {
        auto filler = out.initFiller(uint32_t(argument));
        for (uint32_t i = ctx.rank(); i < filler.size(); i += ctx.size()) filler.set(i, i);
        return;
      }
      case view::Action::WORK:
        return out.setValue(work(ctx, argument));
      case view::Action::SUM_OF_NOTES:
        return out.setValue(sum);
      case view::Action::ECHO:
        return echo(ctx, in, out);
      case view::Action::FAIL_ALONE:
        echo(ctx, in, out);
        if (ctx.rank() + 1 == ctx.size()) ctx.fail(uint32_t(argument));
        return;
      case view::Action::LOG:
        if (ctx.rank() != 0) return;
        ctx.log("{} numbers, {} and {:.2f} of {}", in.getFiller().size(), -int64_t(argument % 1000),
                0.25f * float(argument % 1000), "all");
        for (uint64_t n = 0; n < argument / 1000; ++n) ctx.log("line {}, even: {}", n, n % 2 == 0);
        return;
      case view::Action::TIME: {
        const gyre::Stopwatch stopwatch(ctx);
        const uint64_t begin = ctx.now_ns();
        while (ctx.now_ns() - begin < argument) {
        }
        return out.setValue(stopwatch.ns());
      }
    }
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::ProbeNote::Reader in) {
    const auto filler = in.getFiller();
    if (ctx.rank() != 0) return;
    sum += in.getValue();
    for (uint32_t i = 0; i < filler.size(); ++i) sum += filler[i];
  }

 private:
  GYRE_DEVICE static void echo(gyre::Context& ctx, view::ProbeRequest::Reader in,
                               view::ProbeResponse::Builder out) {
    const auto filler = in.getFiller();
    auto echoed = out.initFiller(filler.size());
    for (uint32_t i = ctx.rank(); i < echoed.size(); i += ctx.size()) echoed.set(i, filler[i]);
    if (ctx.rank() != 0) return;
    uint64_t total = 0;
    for (uint32_t i = 0; i < filler.size(); ++i) total += filler[i];
    out.setValue(total);
  }

  // 1 if told to stop before the time was over. All threads go round equally often: rank 0's clock decides,
  // by way of should_stop's barrier, so each turn is one microsecond of work and one poll.
  GYRE_DEVICE static uint64_t work(gyre::Context& ctx, uint64_t ns) {
    for (uint64_t turn = 0; turn < ns / 1000; ++turn) {
      const uint64_t begin = ctx.now_ns();
      while (ctx.now_ns() - begin < 1000) {
      }
      if (ctx.should_stop()) return 1;
    }
    return 0;
  }
};

}  // namespace gyre_test
