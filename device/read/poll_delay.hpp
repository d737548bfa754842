// When to poll first after a message, where each poll crosses the bus.
#pragma once

#include <gyre/device/platform.hpp>

namespace gyre {

/// How long the first poll after a message waits, in clock_ticks(). In a conversation the host's next message
/// comes a fixed time after the reply, and a poll that just misses it costs a whole crossing of the bus. So
/// the first poll waits until it finds its message most of the time: each miss by one poll lengthens the wait
/// by miss_step, each hit shortens it by one tick, and about one poll in a hundred misses. A stream of
/// messages ends the wait.
class PollDelay {
 public:
  static constexpr uint32_t miss_step = 96;
  static constexpr uint32_t longest = 1600;  ///< about what a poll over the bus takes

  /// @param polls_cross_bus  false: the delay stays 0
  GYRE_DEVICE explicit PollDelay(bool polls_cross_bus) : longest_(polls_cross_bus ? longest : 0) {}
  GYRE_DEVICE uint32_t ticks() const { return ticks_; }
  GYRE_DEVICE bool enabled() const { return longest_ != 0; }

  /// Adapts to a message that was found.
  /// @param empty_polls  polls since the last message that found none
  /// @param in_stream    the same poll found an earlier message too
  GYRE_DEVICE void adapt(uint32_t empty_polls, bool in_stream) {
    if (in_stream) {
      ticks_ = 0;
    } else if (empty_polls == 1) {
      ticks_ = ticks_ + miss_step < longest_ ? ticks_ + miss_step : longest_;
    } else if (empty_polls == 0 && ticks_ != 0) {
      --ticks_;
    }
  }

 private:
  uint32_t ticks_ = 0;
  uint32_t longest_;
};

}  // namespace gyre
