// From the host's clock to the workers': what a deadline is by theirs.
#pragma once

#include <atomic>
#include <cstdint>

namespace gyre::detail {

/// How far a GPU's clock is ahead of the host's, never too little: a message must not expire early. A sample
/// is a time when the host asked and what the worker's clock said afterwards, so that their difference is too
/// much by as long as the worker took to look (50 µs). Clocks drift: the bound grows by 200 millionths of the
/// time since its sample, and the least of the last 32 to 64 holds, so that a step of a clock is forgotten.
/// Thread-safe, but for sample.
class WorkerClock {
 public:
  /// The workers' clock is the host's own.
  void set_same() { same_ = true; }

  /// One thread at a time.
  void sample(int64_t asked_ns, int64_t worker_ns) {
    const int64_t bound = worker_ns - asked_ns - asked_ns / drift;
    if (samples_++ % window == 0) {
      before_ = now_;
      now_ = none;
    }
    now_ = bound < now_ ? bound : now_;
    least_.store(now_ < before_ ? now_ : before_, std::memory_order_relaxed);
  }

  /// The workers' clock at the host's `time_ns`, or later.
  int64_t latest(int64_t time_ns) const {
    return same_ ? time_ns : time_ns + time_ns / drift + least_.load(std::memory_order_relaxed);
  }

  /// Envelope::deadline_us for a message sent at `now_ns`, by the host's clock: 0, none, if the deadline is
  /// so far away that half the range of the serial comparison would not do.
  uint32_t deadline_us(int64_t now_ns, int64_t deadline_ns) const {
    if (deadline_ns - now_ns > comparable_ns) return 0;
    const uint32_t deadline = uint32_t(uint64_t(latest(deadline_ns)) / 1000);
    return deadline == 0 ? 1 : deadline;
  }

 private:
  static constexpr int64_t drift = 5000;
  static constexpr int64_t comparable_ns = int64_t(30) * 60 * 1'000'000'000;  // 2^31 µs are 35 minutes

  static constexpr int64_t none = INT64_MAX / 2;
  static constexpr uint64_t window = 32;

  uint64_t samples_ = 0;
  int64_t before_ = none, now_ = none;  // the least of the window before, and of this one
  std::atomic<int64_t> least_{none};    // of both
  bool same_ = false;
};

}  // namespace gyre::detail
