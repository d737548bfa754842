// Tests an actor of this project step by step, without a test framework.
#include <gyre/testing.hpp>
#include <till_sources.hpp>

#include <till/actors/till.hpp>
#include <till/schemas/order.official.hpp>

#include <cstdio>
#include <exception>
#include <string>

int main() {
  try {
    gyre::testing::SteppedRuntime kit(gyre::ActorSet::of<till::Till>(till::sources), {.workers = 2},
                                      gyre::testing::Order::random(1));
    gyre::Client client = kit.client();
    auto order = client.ask<till::OrderRequest>(gyre::Address<till::Till>{.key = 1},
                                                [](till::OrderRequest::Builder request) {
                                                  request.setAmount(2);
                                                  request.setUnit(shop::Unit::DOZEN);
                                                });
    const auto step = kit.step();
    std::printf("%s\n", step ? step->text().c_str() : "nothing");
    std::printf("sold: %u\n", unsigned(kit.get(order).value()->getPieces()));
    return kit.books().balanced() ? 0 : 1;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "FAILED: %s\n", exception.what());
    return 1;
  }
}
