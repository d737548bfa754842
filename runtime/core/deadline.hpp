// From timeouts to deadlines, by the host's steady clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace gyre::detail {

/// Returns nanoseconds of the host's steady clock.
int64_t host_now_ns();
/// Returns the steady clock as the kernel updated it up to some milliseconds ago, in a third of
/// host_now_ns()'s time.
int64_t coarse_now_ns();

/// Returns the deadline `timeout` after `now_ns`. A negative timeout counts as 0; none overflows.
inline int64_t after(int64_t now_ns, std::chrono::nanoseconds timeout) {
  constexpr int64_t centuries = int64_t(1) << 62;
  return now_ns + std::clamp<int64_t>(timeout.count(), 0, centuries - now_ns);
}

/// Returns `time_ns` as a time of std::chrono::steady_clock, which is the same clock.
inline std::chrono::steady_clock::time_point steady_time(int64_t time_ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time_ns));
}

inline uint64_t microseconds(std::chrono::nanoseconds timeout) {
  return uint64_t(std::max<int64_t>(timeout.count(), 0)) / 1000;
}

/// The time when an ask is sent, from which its worker's deadline follows. That deadline is never too early.
/// For timeouts of at least a second the coarse clock is read, which saves time before the message is sent.
/// The worker's deadline is then a sixteenth of the timeout later: far more than the coarse clock's lag.
struct SendTime {
  int64_t now_ns;
  std::chrono::nanoseconds timeout;
  bool exact;

  static constexpr std::chrono::seconds roughly_from{1};

  static SendTime now(std::chrono::nanoseconds timeout) {
    const bool exact = timeout < roughly_from;
    return {exact ? host_now_ns() : coarse_now_ns(), timeout, exact};
  }
  /// The time of an exact clock.
  static SendTime at(int64_t now_ns, std::chrono::nanoseconds timeout) { return {now_ns, timeout, true}; }
  int64_t deadline_ns() const {
    const int64_t deadline = after(now_ns, timeout);
    return exact ? deadline : after(deadline, timeout / 16);
  }
};

/// Returns Envelope::deadline_us for a message sent at `now_ns`. 0, no deadline, if the deadline lies beyond
/// half the range of the serial comparison, 35 minutes.
inline uint32_t deadline_us(int64_t now_ns, int64_t deadline_ns) {
  constexpr int64_t comparable_ns = int64_t(30) * 60 * 1'000'000'000;
  if (deadline_ns - now_ns > comparable_ns) return 0;
  const uint32_t deadline = uint32_t(uint64_t(deadline_ns) / 1000);
  return deadline == 0 ? 1 : deadline;
}

}  // namespace gyre::detail
