// From the times of single round trips to the figures of a row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gyre::bench {

/// The figures of one row. All zero where there are no samples.
struct Summary {
  uint64_t messages = 0;
  uint64_t p50_ns = 0;
  uint64_t p99_ns = 0;
  uint64_t p999_ns = 0;
  uint64_t max_ns = 0;
  double mean_ns = 0;

  /// Of one thread with one message in flight.
  double messages_per_s() const { return mean_ns > 0 ? 1e9 / mean_ns : 0; }
};

/// The nearest-rank percentile: the smallest sample that at least `per_mille` thousandths of all samples do
/// not exceed. `sorted`: ascending, not empty. `per_mille`: 1 to 1000.
inline uint64_t nearest_rank(const std::vector<uint64_t>& sorted, uint64_t per_mille) {
  const uint64_t rank = (sorted.size() * per_mille + 999) / 1000;  // from 1
  return sorted[rank - 1];
}

/// Exact: sorts all samples, in nanoseconds.
inline Summary summarise(std::vector<uint64_t> samples_ns) {
  if (samples_ns.empty()) return {};
  std::sort(samples_ns.begin(), samples_ns.end());
  double sum = 0;
  for (const uint64_t sample : samples_ns) sum += double(sample);
  return {.messages = samples_ns.size(),
          .p50_ns = nearest_rank(samples_ns, 500),
          .p99_ns = nearest_rank(samples_ns, 990),
          .p999_ns = nearest_rank(samples_ns, 999),
          .max_ns = samples_ns.back(),
          .mean_ns = sum / double(samples_ns.size())};
}

}  // namespace gyre::bench
