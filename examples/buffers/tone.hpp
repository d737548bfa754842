// Recorder: makes samples, and measures them.
#pragma once

#include <gyre/device/context.hpp>
#include <gyre/device/parallel.hpp>
#include <recording/tone.view.hpp>

namespace recording {

struct Recorder {
  using Handles = gyre::Handles<view::ToneRequest, view::EnergyRequest>;

  GYRE_DEVICE void on(gyre::Context& ctx, view::ToneRequest::Reader in, view::Tone::Builder out) {
    const auto samples = out.initSamples(in.getSamples());  // every thread, with the same size
    const float step = in.getStep();
    for (uint32_t i = ctx.rank(); i < samples.size(); i += ctx.size()) samples.set(i, float(i) * step);
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::EnergyRequest::Reader in, view::Energy::Builder out) {
    double mine = 0;
    gyre::for_each(ctx, in.getSamples(), [&](uint32_t, float x) { mine += double(x) * double(x); });
    out.setEnergy(gyre::sum(ctx, mine));
  }
};

}  // namespace recording
