// Times a piece of a handler.
#pragma once

#include <gyre/device/worker/handler_meter.hpp>

namespace gyre {

class Context;

/// Measures the time since its construction, in the calling thread, by the clock of its multiprocessor or
/// processor: a reading takes some cycles, and the clock steps by one. The worker measures the length of a
/// tick every 32 ms, so a time is wrong by as much as the clock's frequency has changed since. A value.
class Stopwatch {
 public:
  GYRE_DEVICE explicit Stopwatch(const Context& ctx);

  /// Nanoseconds since the construction.
  GYRE_DEVICE uint64_t ns() const { return tick_.ns_of(clock_ticks() - began_); }

 private:
  TickLength tick_;
  uint64_t began_;
};

}  // namespace gyre
