// Adjuster: changes prices.
#pragma once

#include <gyre/device/context.hpp>
#include <gyre/messages/vector_add.view.hpp>
#include <till/actors/pieces.hpp>
#include <till/schemas/adjust-v1.0,draft.view.hpp>

namespace till {

struct Adjuster {
  GYRE_DEVICE void on(gyre::Context& ctx, view::AdjustRequest::Reader in, view::AdjustResponse::Builder out) {
    using gyre::messages::view::Operation;
    const auto before = in.getPrices();
    auto after = out.initPrices(before.size());
    for (uint32_t i = ctx.rank(); i < after.size(); i += ctx.size()) {
      const int32_t price =
          in.getOperation() == Operation::MULTIPLY ? before[i] * in.getBy() : before[i] + in.getBy();
      after.set(i, rounded(price, in.getRounding()));
    }
    out.setOperation(in.getOperation());
  }
};

}  // namespace till
