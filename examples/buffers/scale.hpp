// Scale: multiplies samples where they lie.
#pragma once

#include <gyre/device/context.hpp>
#include <recording/scale.view.hpp>

namespace recording {

struct Scale {
  GYRE_DEVICE void on(gyre::Context& ctx, view::ScaleRequest::Reader in, view::ScaleResponse::Builder out) {
    const auto samples = ctx.buffer<float>(in.getSamples());  // empty where the handle is not good
    const float factor = in.getFactor();
    for (uint64_t i = ctx.rank(); i < samples.size(); i += ctx.size()) samples[i] *= factor;
    out.setScaled(samples.size());
  }
};

}  // namespace recording
