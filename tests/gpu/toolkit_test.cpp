// Actors that use the CUDA toolkit, each result held against a computation on the host. Cooperative groups:
// runtime/grouped_test.cpp.
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre_barriers_actors_sources.hpp>
#include <gyre_halves_actors_sources.hpp>
#include <gyre_matrices_actors_sources.hpp>
#include <gyre_sorted_actors_sources.hpp>
#include <gyre_their_barriers_actors_sources.hpp>
#include <support/actors/toolkit.official.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/actors/barriers.hpp"
#include "support/actors/halves.hpp"
#include "support/actors/matrices.hpp"
#include "support/actors/sorted.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/without_toolkit.hpp"

using namespace gyre;
using namespace gyre_toolkit;

namespace {

class AnyNumbers {
 public:
  explicit AnyNumbers(uint32_t seed) : state_(seed) {}
  uint32_t next(uint32_t bits) { return (state_ = state_ * 1664525 + 1013904223) >> (32 - bits); }
  std::vector<float> floats(uint32_t count, uint32_t bits) {
    std::vector<float> numbers(count);
    for (float& number : numbers) number = float(next(bits));
    return numbers;
  }

 private:
  uint32_t state_;
};

auto pair_of(const std::vector<float>& a, const std::vector<float>& b) {
  return [&a, &b](Pair::Builder request) {
    auto left = request.initA(uint32_t(a.size())), right = request.initB(uint32_t(b.size()));
    for (uint32_t i = 0; i < a.size(); ++i) left.set(i, a[i]);
    for (uint32_t i = 0; i < b.size(); ++i) right.set(i, b[i]);
  };
}

Options options_of(uint32_t block) { return gyre_test::on_this_engine({.block = block, .slot_bytes = 4096}); }

// Nanoseconds of one barrier of the grid, of ten thousand.
double barrier_ns(const ActorSources& sources, uint32_t block, uint32_t blocks) {
  constexpr uint64_t barriers = 10'000;
  Options options = options_of(block);
  options.blocks = blocks;
  Runtime runtime = Runtime::launch(ActorSet::of<Barriers>(sources).grid_scoped(), options);
  const auto reply =
      runtime.client()
          .ask<Number>(Address<Barriers>{}, [](Number::Builder request) { request.setValue(barriers); })
          .get();
  REQUIRE(reply);
  CHECK(reply.value()->getThreads() == block * blocks);
  CHECK(runtime.terminate().books.balanced());
  return double(reply.value()->getSum()) / double(barriers);
}

}  // namespace

// Whole numbers that both formats hold exactly, in every partial sum.
TEST_CASE("an actor computes with half and bfloat16 numbers", "[gpu][toolkit]") {
  if (gyre_test::without_toolkit()) return;
  for (const uint32_t block : {32u, 128u}) {
    Runtime runtime = Runtime::launch(ActorSet::of<Halves>(gyre_halves_actors::sources), options_of(block));
    Client client = runtime.client();
    AnyNumbers any(block);
    for (const uint32_t count : {1u, 31u, 64u, 200u}) {
      const std::vector<float> a = any.floats(count, 2), b = any.floats(count, 2);
      const auto reply = client.ask<Pair>(Address<Halves>{}, pair_of(a, b)).get();
      REQUIRE(reply);
      const float product = std::inner_product(a.begin(), a.end(), b.begin(), 0.0f);
      INFO(fmt::format("{} numbers, block {}", count, block));
      CHECK(reply.value()->getValues()[0] == product);
      CHECK(reply.value()->getValues()[1] == product);
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("an actor multiplies matrices on tensor cores", "[gpu][toolkit]") {
  if (gyre_test::without_toolkit()) return;
  constexpr uint32_t side = 16;
  for (const uint32_t block : {32u, 128u}) {
    Runtime runtime =
        Runtime::launch(ActorSet::of<Matrices>(gyre_matrices_actors::sources), options_of(block));
    Client client = runtime.client();
    AnyNumbers any(block);
    for (int n = 0; n < 20; ++n) {
      const std::vector<float> a = any.floats(side * side, 4), b = any.floats(side * side, 4);
      const auto reply = client.ask<Pair>(Address<Matrices>{}, pair_of(a, b)).get();
      REQUIRE(reply);
      REQUIRE(reply.value()->getValues().size() == side * side);
      uint32_t wrong = 0;
      for (uint32_t row = 0; row < side; ++row) {
        for (uint32_t column = 0; column < side; ++column) {
          float sum = 0;
          for (uint32_t k = 0; k < side; ++k) sum += a[row * side + k] * b[k * side + column];
          wrong += reply.value()->getValues()[row * side + column] != sum;
        }
      }
      CHECK(wrong == 0);
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("an actor sorts and adds up by CUB", "[gpu][toolkit]") {
  if (gyre_test::without_toolkit()) return;
  for (const uint32_t block : {32u, 128u}) {
    Runtime runtime = Runtime::launch(ActorSet::of<Sorted>(gyre_sorted_actors::sources), options_of(block));
    Client client = runtime.client();
    AnyNumbers any(block);
    for (const uint32_t count : {0u, 1u, 33u, 100u, 4 * block}) {
      INFO(fmt::format("{} numbers, block {}", count, block));
      std::vector<uint32_t> numbers(count);
      for (uint32_t& number : numbers) number = any.next(32);
      const auto reply = client
                             .ask<Numbers>(Address<Sorted>{},
                                           [&](Numbers::Builder request) {
                                             auto values = request.initValues(count);
                                             for (uint32_t i = 0; i < count; ++i) values.set(i, numbers[i]);
                                           })
                             .get();
      REQUIRE(reply);
      std::sort(numbers.begin(), numbers.end());
      const auto sorted = reply.value()->getValues();
      REQUIRE(sorted.size() == count);
      CHECK(std::equal(numbers.begin(), numbers.end(), sorted.begin()));
      CHECK(reply.value()->getSum() == std::accumulate(numbers.begin(), numbers.end(), uint64_t(0)));
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

// gyre-gpu-tests "[barriers]", which tools/gpu_test.sh runs.
TEST_CASE("the barrier of a grid costs this, Gyre's and cooperative groups'", "[.][barriers]") {
  if (gyre_test::without_toolkit()) return;
  for (const uint32_t block : {32u, 256u}) {
    for (const uint32_t blocks : {1u, 16u, 132u}) {
      const double own = barrier_ns(gyre_barriers_actors::sources, block, blocks);
      const double theirs = barrier_ns(gyre_their_barriers_actors::sources, block, blocks);
      WARN(
          fmt::format("a barrier of {} blocks of {} threads: Gyre's {:.0f} ns, cooperative groups' {:.0f} ns",
                      blocks, block, own, theirs));
    }
  }
}
