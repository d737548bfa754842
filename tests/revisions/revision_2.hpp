// Clerk: answers an Order of the second revision with a Receipt.
#pragma once

#include <gyre/device/context.hpp>
#include <revisions/revision_2.view.hpp>

namespace gyre_revisions {

struct Clerk {
  GYRE_DEVICE void on(gyre::Context&, view::Order::Reader in, view::Receipt::Builder out) {
    out.setNumber(in.getNumber());
    const auto amounts = in.getAmounts();
    const auto doubled = out.initAmounts(amounts.size());
    int64_t total = 0;
    for (uint32_t i = 0; i < doubled.size(); ++i) {
      total += amounts[i].getValue();
      doubled[i].setValue(2 * amounts[i].getValue());
      if (amounts[i].hasUnit()) doubled[i].setUnit(amounts[i].getUnit());
    }
    out.setTotal(total);
    auto place = out.initPlace();
    place.setX(int16_t(in.getPlace().getX() + 1));
    place.setY(in.getPlace().getY());
    if (in.getPlace().hasLabel()) place.setLabel(in.getPlace().getLabel());
    switch (in.getDelivery().which()) {
      case view::Order::Delivery::POST:
        out.getDelivery().setPost(uint16_t(in.getDelivery().getPost() + 1000));
        break;
      case view::Order::Delivery::COLLECTED:
        out.getDelivery().setCollected();
        break;
      case view::Order::Delivery::COURIER:
        out.getDelivery().setCourier(in.getDelivery().getCourier());
        break;
      default:
        out.setDeliveryUnderstood(false);
    }
    out.setPriority(uint8_t(in.getPriority() + 1));
    out.setWeight(in.getWeight());
    out.setNote(in.getNote());
  }
};

}  // namespace gyre_revisions
