// Which CPUs a thread may run on, and which of them are quick.
#include "bench/affinity.hpp"

#include <algorithm>
#include <filesystem>
#include <string>

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

TEST_CASE(
    "CPUs by speed are all those that the thread may run on, the quickest first, and it may run on them "
    "after") {
  const std::vector<int> before = allowed_cpus();
  const std::vector<CpuSpeed> speeds = cpus_by_speed();
  CHECK(allowed_cpus() == before);
  std::vector<int> cpus;
  for (size_t i = 0; i < speeds.size(); ++i) {
    cpus.push_back(speeds[i].cpu);
    CHECK(speeds[i].arithmetic_ns > 0);
    if (i != 0) CHECK(speeds[i - 1].arithmetic_ns <= speeds[i].arithmetic_ns);
  }
  std::sort(cpus.begin(), cpus.end());
  CHECK(cpus == before);
}

TEST_CASE("a CPU shares its core with itself, where the system says so, and with none that is not there") {
  const int cpu = allowed_cpus()[0];
  CHECK(share_a_core(cpu, cpu) ==
        std::filesystem::exists("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/core_id"));
  CHECK_FALSE(share_a_core(cpu, 1'000'000));
  CHECK_FALSE(share_a_core(1'000'000, 1'000'000));
}

}  // namespace
