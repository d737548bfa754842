// What a handler that sets timers handles: spans of time, and the timers that it set.
#pragma once

#include <gyre/device/platform.hpp>

namespace gyre {

/// A span of time: `gyre::Duration::milliseconds(5)`. A plain value.
struct Duration {
  uint64_t ns = 0;  ///< nanoseconds

  /// Returns `count` nanoseconds.
  GYRE_DEVICE static constexpr Duration nanoseconds(uint64_t count) { return {count}; }
  /// Returns `count` microseconds.
  GYRE_DEVICE static constexpr Duration microseconds(uint64_t count) { return of(count, 1'000); }
  /// Returns `count` milliseconds.
  GYRE_DEVICE static constexpr Duration milliseconds(uint64_t count) { return of(count, 1'000'000); }
  /// Returns `count` seconds.
  GYRE_DEVICE static constexpr Duration seconds(uint64_t count) { return of(count, 1'000'000'000); }
  /// Returns `count` times `unit_ns` nanoseconds, 2^64 - 1 at most: 584 years.
  GYRE_DEVICE static constexpr Duration of(uint64_t count, uint64_t unit_ns) {
    return {count > ~uint64_t(0) / unit_ns ? ~uint64_t(0) : count * unit_ns};
  }
};

/// Names a timer that send_after() or send_every() set, for cancel(). A plain value of 8 bytes that an actor
/// may keep in its state.
struct Timer {
  uint64_t id = 0;  ///< 0: of no timer
};

}  // namespace gyre
