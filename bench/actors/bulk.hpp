// The actors of the payload benchmark's large messages. They have no state.
#pragma once

#include <bench/actors/bulk.view.hpp>
#include <gyre/device/context.hpp>
#include <gyre/device/parallel.hpp>

namespace gyre_bench {

struct Bulk {
  using Handles = gyre::Handles<view::SumRequest, view::CountUpRequest, view::InvertRequest>;

  GYRE_DEVICE void on(gyre::Context& ctx, view::SumRequest::Reader in, view::SumResponse::Builder out) {
    uint64_t part = 0;
    gyre::for_each(ctx, in.getValues(), [&](uint32_t, uint32_t value) { part += value; });
    out.setSum(gyre::sum(ctx, part));
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::CountUpRequest::Reader in,
                      view::CountUpResponse::Builder out) {
    const uint32_t first = in.getFirst();
    const auto values = out.initValues(in.getCount());
    for (uint32_t i = ctx.rank(); i < values.size(); i += ctx.size()) values.set(i, first + i);
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::InvertRequest::Reader in, view::InvertResponse::Builder out) {
    const auto values = in.getValues();
    const auto inverted = out.initValues(values.size());
    gyre::transform(
        ctx, inverted, [](uint32_t value) { return ~value; }, values);
  }
};

}  // namespace gyre_bench
