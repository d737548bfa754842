// The histogram keeps two significant digits, counts all, and says percentiles as the exact ones do.
#include "bench/histogram.hpp"

#include "bench/gaps.hpp"
#include "bench/samples.hpp"
#include "support/catch.hpp"

namespace {

using gyre::bench::Histogram;
using gyre::bench::Xorshift;

TEST_CASE("every number lies in one bucket, narrower than a hundredth of it") {
  Xorshift random;
  for (int i = 0; i < 2000; ++i) {
    const uint64_t value = random.next() >> (i % 64);
    Histogram histogram;
    histogram.add(value);
    int buckets = 0;
    histogram.for_each([&](uint64_t lowest, uint64_t highest, uint64_t count) {
      ++buckets;
      REQUIRE(count == 1);
      REQUIRE(lowest <= value);
      REQUIRE(value <= highest);
      REQUIRE(highest - lowest <= lowest / 100);
    });
    REQUIRE(buckets == 1);
  }
}

TEST_CASE("buckets follow each other without a gap") {
  Histogram histogram;
  for (uint64_t value = 0; value < 100'000; ++value) histogram.add(value);
  uint64_t next = 0;
  histogram.for_each([&](uint64_t lowest, uint64_t highest, uint64_t count) {
    CHECK(lowest == next);
    if (highest < 100'000) CHECK(count == highest - lowest + 1);
    next = highest + 1;
  });
  CHECK(next >= 100'000);
}

TEST_CASE("the largest number has a bucket") {
  Histogram histogram;
  histogram.add(UINT64_MAX);
  CHECK(histogram.max() == UINT64_MAX);
  CHECK(histogram.percentile(500) == UINT64_MAX);
}

TEST_CASE("percentiles are those of the samples, within a hundredth and never below") {
  Xorshift random(7);
  Histogram histogram;
  std::vector<uint64_t> samples;
  for (int i = 0; i < 10'000; ++i) {
    samples.push_back(1000 + random.below(1'000'000));
    histogram.add(samples.back());
  }
  std::sort(samples.begin(), samples.end());
  for (const uint64_t per_mille : {1u, 500u, 990u, 999u, 1000u}) {
    const uint64_t exact = gyre::bench::nearest_rank(samples, per_mille);
    CHECK(histogram.percentile(per_mille) >= exact);
    CHECK(histogram.percentile(per_mille) <= exact + exact / 100);
  }
  CHECK(histogram.max() == samples.back());
}

TEST_CASE("merged histograms count what both counted") {
  Histogram first, second;
  first.add(10, 3);
  second.add(10);
  second.add(5000);
  first.merge(second);
  CHECK(first.count() == 5);
  CHECK(first.max() == 5000);
  CHECK(first.text() == "10:4 4992:1");
  CHECK(first.percentile(800) == 10);
  CHECK(first.percentile(1000) == 5000);
}

TEST_CASE("an empty histogram has no percentile") {
  const Histogram histogram;
  CHECK(histogram.count() == 0);
  CHECK(histogram.percentile(999) == 0);
  CHECK(histogram.text().empty());
}

}  // namespace
