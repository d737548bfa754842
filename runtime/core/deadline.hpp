// From timeouts to deadlines, by the host's steady clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace gyre::detail {

/// Nanoseconds of the host's steady clock.
int64_t host_now_ns();
/// The same clock as the kernel last noted it, milliseconds ago: a third of the time to read.
int64_t coarse_now_ns();

/// The deadline `timeout` after `now_ns`, however long or short that is; below zero is none.
inline int64_t after(int64_t now_ns, std::chrono::nanoseconds timeout) {
  constexpr int64_t centuries = int64_t(1) << 62;
  return now_ns + std::clamp<int64_t>(timeout.count(), 0, centuries - now_ns);
}

/// The same moment for the standard library, whose steady clock is the host's.
inline std::chrono::steady_clock::time_point steady_time(int64_t time_ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time_ns));
}

inline uint64_t microseconds(std::chrono::nanoseconds timeout) {
  return uint64_t(std::max<int64_t>(timeout.count(), 0)) / 1000;
}

/// When an ask is sent, for the deadline that its worker gets: never too early. Of timeouts of a second and
/// more it is known roughly, to save reading the clock before the message is sent; the deadline is a
/// sixteenth of the timeout later then, which is far more than what a kernel's note is old.
struct SendTime {
  int64_t now_ns;
  std::chrono::nanoseconds timeout;

  static constexpr std::chrono::seconds roughly_from{1};

  static SendTime now(std::chrono::nanoseconds timeout) {
    return {timeout >= roughly_from ? coarse_now_ns() : host_now_ns(), timeout};
  }
  bool exact() const { return timeout < roughly_from; }
  int64_t deadline_ns() const {
    const int64_t deadline = after(now_ns, timeout);
    return exact() ? deadline : after(deadline, timeout / 16);
  }
};

/// Envelope::deadline_us for a message sent at `now_ns`: 0, none, if the deadline is so far away that half
/// the range of the serial comparison, 35 minutes, would not do.
inline uint32_t deadline_us(int64_t now_ns, int64_t deadline_ns) {
  constexpr int64_t comparable_ns = int64_t(30) * 60 * 1'000'000'000;
  if (deadline_ns - now_ns > comparable_ns) return 0;
  const uint32_t deadline = uint32_t(uint64_t(deadline_ns) / 1000);
  return deadline == 0 ? 1 : deadline;
}

}  // namespace gyre::detail
