// Actors that use cooperative groups, on either engine: one text, by a block, by teams and by the whole grid.
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre_grouped_actors_sources.hpp>
#include <gyre_neighbours_actors_sources.hpp>
#include <support/actors/toolkit.official.hpp>

#include <vector>

#include "support/actors/grouped.hpp"
#include "support/actors/neighbours.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/without_toolkit.hpp"

using namespace gyre;
using namespace gyre_toolkit;

namespace {

bool groups_of_one() { return gyre_test::engine_under_test == EngineKind::cpu; }

std::vector<uint32_t> any_numbers(uint32_t count) {
  std::vector<uint32_t> numbers(count);
  uint32_t state = count;
  for (uint32_t& number : numbers) number = (state = state * 1664525 + 1013904223) >> 16;
  return numbers;
}

auto filling(const std::vector<uint32_t>& numbers) {
  return [&numbers](Numbers::Builder request) {
    auto values = request.initValues(uint32_t(numbers.size()));
    for (uint32_t i = 0; i < numbers.size(); ++i) values.set(i, numbers[i]);
  };
}

}  // namespace

TEST_CASE("tiles of cooperative groups reduce and scan, by blocks of any number of warps", "[gpu][toolkit]") {
  if (gyre_test::without_toolkit()) return;
  for (const uint32_t block : {32u, 64u, 256u}) {
    Runtime runtime = Runtime::launch(ActorSet::of<Grouped>(gyre_grouped_actors::sources),
                                      gyre_test::on_this_engine({.block = block, .slot_bytes = 1024}));
    Client client = runtime.client();
    for (const uint32_t count : {0u, 1u, 31u, 32u, 33u, 150u}) {
      INFO(fmt::format("{} numbers, block {}", count, block));
      const std::vector<uint32_t> numbers = any_numbers(count);
      const auto reply = client.ask<Numbers>(Address<Grouped>{}, filling(numbers)).get();
      REQUIRE(reply);
      uint32_t sum = 0;
      bool same = reply.value()->getValues().size() == count;
      for (uint32_t i = 0; i < count && same; ++i)
        same = reply.value()->getValues()[i] == (sum += numbers[i]);
      CHECK(same);
      CHECK(reply.value()->getSum() == sum);
      CHECK(reply.value()->getThreads() == (groups_of_one() ? 1 : block));
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("a grid-scoped actor's group is the grid, and its barrier shows what other blocks wrote",
          "[gpu][toolkit]") {
  if (gyre_test::without_toolkit()) return;
  for (const auto& [block, blocks] : {std::pair(32u, 7u), std::pair(256u, 20u), std::pair(128u, 0u)}) {
    INFO(fmt::format("{} blocks of {}", blocks, block));
    Runtime runtime =
        Runtime::launch(ActorSet::of<Neighbours>(gyre_neighbours_actors::sources).grid_scoped(),
                        gyre_test::on_this_engine({.block = block, .blocks = groups_of_one() ? 0 : blocks}));
    Client client = runtime.client();
    for (const uint64_t rounds : {1u, 2u, 100u}) {
      const auto reply =
          client
              .ask<Number>(Address<Neighbours>{}, [&](Number::Builder request) { request.setValue(rounds); })
              .get();
      REQUIRE(reply);
      const uint64_t threads = reply.value()->getThreads();
      if (blocks != 0) CHECK(threads == (groups_of_one() ? 1 : block * blocks));
      CHECK(reply.value()->getSum() ==
            rounds * (threads * (threads - 1) / 2) + threads * (rounds * (rounds - 1) / 2));
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("in a batch of messages the group is the message's team", "[gpu][toolkit]") {
  if (gyre_test::without_toolkit()) return;
  Runtime runtime = Runtime::launch(ActorSet::of<Teamed>(gyre_grouped_actors::sources),
                                    gyre_test::on_this_engine({.block = 32}));
  Client client = runtime.client();
  using Asked = Future<Reply<Results>>;
  uint64_t wrong = 0;
  for (uint64_t n = 0; n < 200; ++n) {
    std::vector<Asked> futures;
    for (uint64_t k = 0; k < 1 + n % 40; ++k) {
      futures.push_back(
          client.ask<Number>(Address<Teamed>{}, [&](Number::Builder request) { request.setValue(n + k); }));
    }
    for (uint64_t k = 0; k < futures.size(); ++k) {
      const auto reply = futures[k].get();
      REQUIRE(reply);
      const uint64_t threads = reply.value()->getThreads();
      if (reply.value()->getSum() != n + k + threads * (threads - 1) / 2) ++wrong;
      if (threads == 0 || threads > (groups_of_one() ? 1 : 32)) ++wrong;
    }
  }
  CHECK(wrong == 0);
  CHECK(runtime.terminate().books.balanced());
}
