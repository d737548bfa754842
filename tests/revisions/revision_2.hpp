// Clerk: answers an Order of the second revision with a Receipt.
#pragma once

#include <gyre/device/actor/dispatch.hpp>
#include <gyre/device/context.hpp>
#include <revisions/revision_2.view.hpp>

namespace gyre_revisions {

struct Clerk {
  GYRE_DEVICE void on(gyre::Context&, view::Order::Reader in, view::Receipt::Builder out) {
    out.set_number(in.number());
    const auto amounts = in.amounts();
    const auto doubled = out.init_amounts(amounts.size());
    int64_t total = 0;
    for (uint32_t i = 0; i < doubled.size(); ++i) {
      total += amounts[i].value();
      doubled[i].set_value(2 * amounts[i].value());
      if (amounts[i].has_unit()) doubled[i].set_unit(amounts[i].unit());
    }
    out.set_total(total);
    auto place = out.init_place();
    place.set_x(int16_t(in.place().x() + 1));
    place.set_y(in.place().y());
    if (in.place().has_label()) place.set_label(in.place().label());
    switch (in.delivery().which()) {
      case view::Order::Delivery::Which::post:
        out.delivery().set_post(uint16_t(in.delivery().post() + 1000));
        break;
      case view::Order::Delivery::Which::collected:
        out.delivery().set_collected();
        break;
      case view::Order::Delivery::Which::courier:
        out.delivery().set_courier(in.delivery().courier());
        break;
      default:
        out.set_delivery_understood(false);
    }
    out.set_priority(uint8_t(in.priority() + 1));
    out.set_weight(in.weight());
    out.set_note(in.note());
  }
};

}  // namespace gyre_revisions
