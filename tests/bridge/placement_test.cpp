#include <gyre/bridge/placement.hpp>

#include <algorithm>
#include <array>
#include <random>

#include "support/catch.hpp"

using gyre::Placement;

TEST_CASE("an actor's worker is its key modulo the workers") {
  std::mt19937_64 random(91);
  const auto check = [](uint32_t workers, uint64_t key) {
    INFO("key " << key << ", workers " << workers);
    REQUIRE(Placement(workers).worker_of(key) == key % workers);
  };
  for (uint32_t workers = 1; workers < 1200; ++workers) {
    for (const uint64_t key :
         std::array<uint64_t, 6>{0, 1, workers - 1, workers, ~uint64_t(0), ~uint64_t(0) - workers})
      check(workers, key);
    for (int i = 0; i < 50; ++i) check(workers, random() >> random() % 64);
  }
  for (int i = 0; i < 100'000; ++i) {
    const auto workers = std::max(uint32_t(1), uint32_t(random() >> (32 + random() % 32)));
    const uint64_t multiple = random() / workers * workers;  // where a quotient steps
    for (const uint64_t key : std::array<uint64_t, 3>{multiple, multiple - 1, multiple + workers - 1})
      check(workers, key);
  }
}
