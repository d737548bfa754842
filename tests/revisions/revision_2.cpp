// The program of the second revision; what it asks of the first may be answered with less.
#include <gyre_revision_2_sources.hpp>
#include <revisions/revision_2.hpp>
#include <revisions/revision_2.official.hpp>

#include "revisions/program.hpp"

using namespace gyre_revisions;

namespace {

constexpr uint32_t orders = 4;

void fill(Order::Builder order, uint32_t i) {
  if (i == 3) return;  // all defaults
  order.setNumber(200 + i);
  auto amounts = order.initAmounts(3);
  amounts[0].setValue(-5);
  amounts[1].setValue(1000000000);
  amounts[1].setUnit("kg");
  amounts[2].setUnit("a unit of which the first revision knows nothing");
  auto place = order.initPlace();
  place.setX(int16_t(30 + i));
  place.setY(int64_t(1) << 40);
  place.setLabel("label");
  if (i == 0) order.getDelivery().setPost(8);
  if (i == 1) order.getDelivery().setCollected();
  if (i == 2) order.getDelivery().setCourier("by bicycle");
  order.setPriority(50);
  order.setWeight(2.5);
  order.setNote("a note");
}

void check(Checks& checks, Receipt::Reader receipt, uint32_t i, int served_by) {
  const bool understood = served_by == 2;  // what the second revision added
  const bool whole = i != 3;               // the order was not all defaults
  checks.equal("number", whole ? 200 + i : 0, receipt.getNumber());
  checks.equal("total", whole ? 999999995 : 0, receipt.getTotal());
  const auto amounts = receipt.getAmounts();
  checks.equal("amounts", whole ? 3u : 0u, amounts.size());
  if (amounts.size() == 3) {
    checks.equal("amounts[0]", -10, amounts[0].getValue());
    checks.equal("amounts[1]", 2000000000, amounts[1].getValue());
    checks.equal("amounts[2]", 0, amounts[2].getValue());
    checks.equal("unit of [0]", "", amounts[0].getUnit());
    checks.equal("unit of [1]", understood ? "kg" : "", amounts[1].getUnit());
    checks.equal("unit of [2]", understood ? "a unit of which the first revision knows nothing" : "",
                 amounts[2].getUnit());
  }
  const auto place = receipt.getPlace();
  checks.equal("x", whole ? int(31 + i) : 1, place.getX());
  checks.equal("y", whole && understood ? int64_t(1) << 40 : -1, place.getY());
  checks.equal("label", whole && understood ? "label" : "", place.getLabel());
  const auto delivery = receipt.getDelivery();
  checks.equal("deliveryUnderstood", i != 2 || understood, receipt.getDeliveryUnderstood());
  checks.equal("collected", i == 1, delivery.isCollected());
  checks.equal("courier", i == 2 && understood, delivery.isCourier());
  if (delivery.isCourier()) checks.equal("courier", "by bicycle", delivery.getCourier());
  if (delivery.isPost()) checks.equal("post", i == 0 ? 1008 : i == 2 ? 0 : 1000, delivery.getPost());
  checks.equal("priority", !understood ? 9 : whole ? 51 : 4, int(receipt.getPriority()));
  checks.equal("weight", !understood ? 0.5 : whole ? 2.5 : 0.0, receipt.getWeight());
  checks.equal("note", !understood ? "none given" : whole ? "a note" : "no note", receipt.getNote());
}

}  // namespace

int main(int argc, char** argv) {
  return run_program<Order, Receipt, Clerk>(argc, argv, gyre_revision_2::sources, orders, fill, check);
}
