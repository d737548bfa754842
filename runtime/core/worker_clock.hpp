// From the workers' clock to the host's, for what is shown. No deadline depends on it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace gyre::detail {

/// How far a GPU's clock is ahead of the host's, roughly. A sample is a time when the host asked and what the
/// worker's clock said afterwards, so their difference is too much by as long as the worker took to answer.
/// The least of the last 4 to 8 samples holds: one that a long handler delayed does no harm, and a step of
/// the clock is forgotten. Thread-safe, but for sample.
class WorkerClock {
 public:
  /// One thread at a time.
  void sample(int64_t asked_ns, int64_t worker_ns) {
    if (samples_++ % window == 0) {
      before_ = now_;
      now_ = none;
    }
    now_ = std::min(now_, worker_ns - asked_ns);
    ahead_ns_.store(std::min(now_, before_), std::memory_order_relaxed);
  }

  /// The host's clock when the workers' was `worker_ns`.
  int64_t host_ns(int64_t worker_ns) const { return worker_ns - ahead_ns_.load(std::memory_order_relaxed); }

 private:
  static constexpr int64_t none = INT64_MAX;
  static constexpr uint64_t window = 4;

  uint64_t samples_ = 0;
  int64_t before_ = none, now_ = none;  // the least of the window before, and of this one
  std::atomic<int64_t> ahead_ns_{0};    // the least of both; 0 while the clocks are one
};

}  // namespace gyre::detail
