// Percentiles by nearest rank, on contents whose answers are known.
#include "bench/samples.hpp"

#include <numeric>

#include "support/catch.hpp"

namespace {

using gyre::bench::nearest_rank;
using gyre::bench::summarise;
using gyre::bench::Summary;

// `last`, …, 2, 1: the worst order there is.
std::vector<uint64_t> down_from(uint64_t last) {
  std::vector<uint64_t> samples(last);
  std::iota(samples.rbegin(), samples.rend(), uint64_t(1));
  return samples;
}

TEST_CASE("percentiles of 1 to 1000 are their ranks") {
  const Summary summary = summarise(down_from(1000));
  CHECK(summary.messages == 1000);
  CHECK(summary.p50_ns == 500);
  CHECK(summary.p99_ns == 990);
  CHECK(summary.p999_ns == 999);
  CHECK(summary.max_ns == 1000);
  CHECK(summary.mean_ns == 500.5);
  CHECK(summary.messages_per_s() == 1e9 / 500.5);
}

TEST_CASE("a rank between two samples is the upper one") {
  const Summary summary = summarise(down_from(101));
  CHECK(summary.p50_ns == 51);    // 50.5
  CHECK(summary.p99_ns == 100);   // 99.99
  CHECK(summary.p999_ns == 101);  // 100.899
}

TEST_CASE("one outlier in a thousand is the maximum, not p99.9") {
  std::vector<uint64_t> samples(1000, 7);
  samples[3] = 1'000'000;
  const Summary summary = summarise(samples);
  CHECK(summary.p50_ns == 7);
  CHECK(summary.p999_ns == 7);
  CHECK(summary.max_ns == 1'000'000);
  samples[900] = 2'000'000;
  CHECK(summarise(samples).p999_ns == 1'000'000);
}

TEST_CASE("one sample is every percentile") {
  const Summary summary = summarise({42});
  CHECK(summary.messages == 1);
  CHECK(summary.p50_ns == 42);
  CHECK(summary.p99_ns == 42);
  CHECK(summary.p999_ns == 42);
  CHECK(summary.max_ns == 42);
  CHECK(summary.mean_ns == 42);
}

TEST_CASE("no samples give zeros, and no division by them") {
  const Summary summary = summarise({});
  CHECK(summary.messages == 0);
  CHECK(summary.max_ns == 0);
  CHECK(summary.messages_per_s() == 0);
}

TEST_CASE("the lowest and the highest rank are the first and the last sample") {
  const std::vector<uint64_t> sorted = {10, 20, 30};
  CHECK(nearest_rank(sorted, 1) == 10);
  CHECK(nearest_rank(sorted, 333) == 10);
  CHECK(nearest_rank(sorted, 334) == 20);
  CHECK(nearest_rank(sorted, 1000) == 30);
}

TEST_CASE("times longer than 32 bits of nanoseconds are kept") {
  const Summary summary = summarise({1, uint64_t(10'000'000'000)});
  CHECK(summary.p50_ns == 1);
  CHECK(summary.max_ns == 10'000'000'000);
}

}  // namespace
