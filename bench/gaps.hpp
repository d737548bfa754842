// Random pauses between messages: a loop without them meets the other side's polls always at the same moment.
#pragma once

#include <chrono>
#include <cstdint>

namespace gyre::bench {

/// A cheap generator of numbers that look random (Marsaglia's xorshift64). The same sequence each time.
class Xorshift {
 public:
  explicit Xorshift(uint64_t seed = 0x9e3779b97f4a7c15u) : state_(seed == 0 ? 1 : seed) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  /// Below `limit`, which is below 2^32.
  uint32_t below(uint32_t limit) { return uint32_t(((next() >> 32) * limit) >> 32); }

 private:
  uint64_t state_;
};

/// Gaps of 0 to 3 µs, uniform.
class RandomGaps {
 public:
  static constexpr uint32_t longest_ns = 3000;
  /// Spins for the next gap.
  void wait() {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::nanoseconds(random_.below(longest_ns + 1));
    while (Clock::now() < end) {
    }
  }

 private:
  Xorshift random_;
};

}  // namespace gyre::bench
