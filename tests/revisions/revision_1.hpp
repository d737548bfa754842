// Clerk: answers an Order of the first revision with a Receipt.
#pragma once

#include <gyre/device/context.hpp>
#include <revisions/revision_1.view.hpp>

namespace gyre_revisions {

struct Clerk {
  GYRE_DEVICE void on(gyre::Context& ctx, view::Order::Reader in, view::Receipt::Builder out) {
    out.setNumber(in.getNumber());
    const auto amounts = in.getAmounts();
    const auto doubled = out.initAmounts(amounts.size());
    for (uint32_t i = ctx.rank(); i < doubled.size(); i += ctx.size()) doubled.set(i, 2 * amounts[i]);
    int64_t total = 0;
    for (uint32_t i = 0; i < amounts.size(); ++i) total += amounts[i];
    out.setTotal(total);
    out.initPlace().setX(int16_t(in.getPlace().getX() + 1));
    switch (in.getDelivery().which()) {
      case view::Order::Delivery::POST:
        out.getDelivery().setPost(uint16_t(in.getDelivery().getPost() + 1000));
        break;
      case view::Order::Delivery::COLLECTED:
        out.getDelivery().setCollected();
        break;
      default:
        out.setDeliveryUnderstood(false);
    }
  }
};

}  // namespace gyre_revisions
