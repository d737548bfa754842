// Which CPUs a thread may run on, and which of them are quick.
#include "bench/affinity.hpp"

#include <algorithm>

#include "support/catch.hpp"

namespace {

using namespace gyre::bench;

TEST_CASE(
    "a pinned thread may run on that CPU alone, and where it could before once it is not pinned any more") {
  const std::vector<int> before = allowed_cpus();
  REQUIRE_FALSE(before.empty());
  {
    const Pinned here(pthread_self(), before.back());
    CHECK(allowed_cpus() == std::vector<int>{before.back()});
    const Pinned nowhere(pthread_self(), std::nullopt);
    CHECK(allowed_cpus() == std::vector<int>{before.back()});
  }
  CHECK(allowed_cpus() == before);
}

TEST_CASE("CPUs by speed are all those that the thread may run on, and it may run on them afterwards") {
  const std::vector<int> before = allowed_cpus();
  std::vector<int> by_speed = cpus_by_speed();
  CHECK(allowed_cpus() == before);
  std::sort(by_speed.begin(), by_speed.end());
  CHECK(by_speed == before);
  CHECK(arithmetic_ns() > 0);
}

}  // namespace
