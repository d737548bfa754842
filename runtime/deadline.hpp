// From timeouts to deadlines, by the host's steady clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace gyre::detail {

/// Nanoseconds of the host's steady clock.
int64_t host_now_ns();

/// The deadline `timeout` after `now_ns`, however long or short that is; below zero is none.
inline int64_t after(int64_t now_ns, std::chrono::nanoseconds timeout) {
  constexpr int64_t centuries = int64_t(1) << 62;
  return now_ns + std::clamp<int64_t>(timeout.count(), 0, centuries - now_ns);
}

inline uint64_t microseconds(std::chrono::nanoseconds timeout) {
  return uint64_t(std::max<int64_t>(timeout.count(), 0)) / 1000;
}

}  // namespace gyre::detail
