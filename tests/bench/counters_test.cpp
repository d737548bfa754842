// The numbers that gyre-bench counters counts, and its kernel. No GPU is needed.
#include <bench/counters/counters.hpp>
#include <gyre/gyre.hpp>
#include <gyre_bench_counters_sources.hpp>

#include <algorithm>
#include <vector>

#include "support/catch.hpp"

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/program.hpp>

#include "support/without_nvrtc.hpp"
#endif

namespace {

using namespace gyre_counting;

TEST_CASE("a shuffled range has each of its numbers once") {
  for (const uint64_t count : {1u, 2u, 3u, 4u, 5u, 63u, 64u, 65u, 1000u, 65'537u, 100'000u}) {
    INFO(count);
    std::vector<uint32_t> seen(count);
    for (uint64_t n = 0; n < count; ++n) {
      const uint64_t place = shuffled(n, count);
      REQUIRE(place < count);
      ++seen[place];
    }
    CHECK(std::count(seen.begin(), seen.end(), 1u) == int64_t(count));
  }
}

TEST_CASE("a shuffled range has its numbers in another order, which is spread over workers") {
  constexpr uint64_t count = 100'000, workers = 528, first = 10'000;
  std::vector<uint32_t> of_worker(workers);
  for (uint64_t n = 0; n < first; ++n) ++of_worker[shuffled(n, count) % workers];
  // 19 on average.
  CHECK(*std::max_element(of_worker.begin(), of_worker.end()) < 60);
  CHECK(*std::min_element(of_worker.begin(), of_worker.end()) > 0);
}

TEST_CASE("increments go to every counter about as often, and evenly where that is asked for") {
  constexpr uint64_t counters = 100, increments = 100'000;
  std::vector<uint32_t> random(counters), even(counters);
  for (uint64_t n = 0; n < increments; ++n) {
    ++random[counter_of(n, counters, false)];
    ++even[counter_of(n, counters, true)];
  }
  CHECK(*std::max_element(random.begin(), random.end()) < 1200);
  CHECK(*std::min_element(random.begin(), random.end()) > 800);
  CHECK(std::count(even.begin(), even.end(), increments / counters) == int64_t(counters));
}

#if defined(GYRE_WITH_CUDA)
TEST_CASE("the counters' kernel compiles for a GPU", "[.kernel]") {
  if (gyre_test::without_nvrtc()) return;
  const gyre::cuda::CompiledKernel kernel =
      gyre::cuda::compile(gyre::ActorSet::of<Counter, Sender>(gyre_bench_counters::sources), 90, 32);
  CHECK(kernel.log == "");
  CHECK(!kernel.cubin.empty());
}
#endif

}  // namespace
