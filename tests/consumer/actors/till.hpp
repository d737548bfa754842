// Till: counts pieces.
#pragma once

#include "pieces.hpp"

#include <gyre/device/context.hpp>
#include <till/schemas/old/order.view.hpp>
#include <till/schemas/order.view.hpp>

namespace till {

struct Till {
  using Handles = gyre::Handles<view::OrderRequest, old::view::OrderRequest>;

  uint32_t sold = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::OrderRequest::Reader in, view::OrderResponse::Builder out) {
    const uint32_t ordered = pieces(in.getAmount(), in.getUnit());
    answer(ctx, ordered, in.getRounding(), out);
  }

  GYRE_DEVICE void on(gyre::Context& ctx, old::view::OrderRequest::Reader in,
                      view::OrderResponse::Builder out) {
    answer(ctx, in.getPieces(), in.getRounding(), out);
  }

 private:
  GYRE_DEVICE void answer(gyre::Context& ctx, uint32_t ordered, view::Rounding rounding,
                          view::OrderResponse::Builder out) {
    if (ctx.rank() == 0) sold += ordered;
    ctx.sync();
    out.setPieces(uint32_t(rounded(int32_t(sold), rounding)));
    out.setRounding(rounding);
  }
};

}  // namespace till
