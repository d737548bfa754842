// The clocks of host and workers: the host publishes its time to workers that cannot read it, and estimates
// theirs.
#pragma once

#include <gyre/runtime/core/host_side.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace gyre::detail {

/// Estimates how far a GPU's clock is ahead of the host's, for what is shown; no deadline depends on it. A
/// sample is a time when the host asked and what the worker's clock said afterwards, so their difference is
/// too large by as long as the worker took to answer. The least of the last 4 to 8 samples holds: a sample
/// that a long handler delayed does no harm, and a step of the clock is forgotten. Thread-safe, but for
/// sample().
class WorkerClock {
 public:
  /// One thread at a time.
  void sample(int64_t asked_ns, int64_t worker_ns) {
    if (samples_++ % window == 0) {
      before_ = now_;
      now_ = none;
    }
    now_ = std::min(now_, worker_ns - asked_ns);
    ahead_ns_.store(std::min(now_, before_), std::memory_order_relaxed);  // a number alone, for host_ns()
  }

  /// Returns the host's clock when the workers' was `worker_ns`.
  int64_t host_ns(int64_t worker_ns) const { return worker_ns - ahead_ns_.load(std::memory_order_relaxed); }

 private:
  static constexpr int64_t none = INT64_MAX;
  static constexpr uint64_t window = 4;

  uint64_t samples_ = 0;
  int64_t before_ = none, now_ = none;  // the least of the window before, and of this one
  std::atomic<int64_t> ahead_ns_{0};    // the least of both; 0 while the clocks are one
};

/// Thread-safe. Does nothing where workers read the host's clock (Engine::shares_host_clock).
class Clock {
 public:
  /// `host` must outlive this.
  explicit Clock(HostSide& host) : host_(host) {}

  /// Publishes the first time to each worker, and takes the first samples of their clock. Once, after the
  /// workers have started. Blocks at most Options::timeout; throws Error.
  void calibrate();
  /// Asks for a sample each second, and takes what was asked for. Never waits.
  void sample(int64_t now_ns);
  /// Publishes the time to workers that may have work.
  void publish_time(int64_t now_ns);
  /// Returns Envelope::deadline_us for a message that is sent to the bridge's worker now.
  uint32_t worker_deadline_us(HostBridge& bridge, int64_t now_ns, int64_t deadline_ns) {
    // Never due where the worker reads the host's clock.
    if (now_ns - bridge.commands().published_time_ns() > time_interval_ns) [[unlikely]]
      return publish_time_first(bridge, now_ns, deadline_ns);
    return deadline_us(now_ns, deadline_ns);
  }
  /// Returns the host's clock when the workers' was `worker_ns`, roughly.
  int64_t host_ns(int64_t worker_ns) const { return worker_clock_.host_ns(worker_ns); }

 private:
  static uint32_t publish_time_first(HostBridge& bridge, int64_t now_ns, int64_t deadline_ns);

  static constexpr int64_t time_interval_ns = 2'000'000;  // between times that a worker gets

  HostSide& host_;
  WorkerClock worker_clock_;
  std::mutex sample_mutex_;      // of what follows; tried, never waited for
  CommandWord sample_command_;   // that worker 0 answers with its clock
  int64_t sample_asked_ns_ = 0;  // when sample_command_ was sent; 0: no sample is under way
  int64_t next_sample_ns_ = 0;
};

}  // namespace gyre::detail
