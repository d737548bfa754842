// Clerk: answers an Order of the first revision with a Receipt.
#pragma once

#include <gyre/device/actor/dispatch.hpp>
#include <gyre/device/context.hpp>
#include <revisions/revision_1.view.hpp>

namespace gyre_revisions {

struct Clerk {
  GYRE_DEVICE void on(gyre::Context& ctx, view::Order::Reader in, view::Receipt::Builder out) {
    out.set_number(in.number());
    const auto amounts = in.amounts();
    const auto doubled = out.init_amounts(amounts.size());
    for (uint32_t i = ctx.rank(); i < doubled.size(); i += ctx.size()) doubled.set(i, 2 * amounts[i]);
    int64_t total = 0;
    for (uint32_t i = 0; i < amounts.size(); ++i) total += amounts[i];
    out.set_total(total);
    out.init_place().set_x(int16_t(in.place().x() + 1));
    switch (in.delivery().which()) {
      case view::Order::Delivery::Which::post:
        out.delivery().set_post(uint16_t(in.delivery().post() + 1000));
        break;
      case view::Order::Delivery::Which::collected:
        out.delivery().set_collected();
        break;
      default:
        out.set_delivery_understood(false);
    }
  }
};

}  // namespace gyre_revisions
