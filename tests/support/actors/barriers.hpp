// An actor that times its group's barrier.
#pragma once

#include <gyre/device/context.hpp>
#include <support/actors/toolkit.view.hpp>

namespace gyre_toolkit {

/// Meets as often as it is asked to; the sum is the nanoseconds that this took.
struct Barriers {
  GYRE_DEVICE void on(gyre::Context& ctx, view::Number::Reader in, view::Results::Builder out) {
    ctx.sync();
    const gyre::Stopwatch stopwatch(ctx);
    for (uint64_t n = 0; n < in.getValue(); ++n) ctx.sync();
    const uint64_t ns = stopwatch.ns();
    if (ctx.rank() == 0) out.setSum(ns);
    out.setThreads(ctx.size());
  }
};

}  // namespace gyre_toolkit
