// The program of the first revision: it knows nothing of the second.
#include <gyre_revision_1_sources.hpp>
#include <revisions/revision_1.hpp>
#include <revisions/revision_1.official.hpp>

#include "revisions/program.hpp"

using namespace gyre_revisions;

namespace {

constexpr uint32_t orders = 3;

void fill(Order::Builder order, uint32_t i) {
  if (i == 2) return;  // all defaults
  order.setNumber(100 + i);
  order.setAmounts({-5, 1000000000, int(i)});
  order.initPlace().setX(int16_t(20 + i));
  if (i == 0)
    order.getDelivery().setPost(7);
  else
    order.getDelivery().setCollected();
}

// Whoever served, this revision sees what it knows, and sees it whole.
void check(Checks& checks, Receipt::Reader receipt, uint32_t i, int) {
  checks.equal("deliveryUnderstood", true, receipt.getDeliveryUnderstood());
  const auto amounts = receipt.getAmounts();
  if (i == 2) {
    checks.equal("number", 0u, receipt.getNumber());
    checks.equal("amounts", 0u, amounts.size());
    checks.equal("x", 1, receipt.getPlace().getX());
    checks.equal("post", 1000, receipt.getDelivery().getPost());
    return;
  }
  checks.equal("number", 100 + i, receipt.getNumber());
  checks.equal("total", 999999995 + int64_t(i), receipt.getTotal());
  checks.equal("amounts", 3u, amounts.size());
  if (amounts.size() == 3) {
    checks.equal("amounts[0]", -10, amounts[0]);
    checks.equal("amounts[1]", 2000000000, amounts[1]);
    checks.equal("amounts[2]", int(2 * i), amounts[2]);
  }
  checks.equal("x", int(21 + i), receipt.getPlace().getX());
  checks.equal("collected", i == 1, receipt.getDelivery().isCollected());
  if (i == 0) checks.equal("post", 1007, receipt.getDelivery().getPost());
}

}  // namespace

int main(int argc, char** argv) {
  return run_program<Order, Receipt, Clerk>(argc, argv, gyre_revision_1::sources, orders, fill, check);
}
