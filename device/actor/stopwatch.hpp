// A stopwatch for parts of a handler.
#pragma once

#include <gyre/device/worker/handler_meter.hpp>

namespace gyre {

class Context;

/// Measures the time since its construction, in one thread. It reads the cycle counter of the thread's
/// multiprocessor or processor; a reading takes a few cycles. The worker measures the length of a cycle
/// every 32 ms; if the clock frequency changed since, the result is off by as much. Copyable.
class Stopwatch {
 public:
  /// Starts the stopwatch.
  GYRE_DEVICE explicit Stopwatch(const Context& ctx);

  /// Returns the nanoseconds since construction.
  GYRE_DEVICE uint64_t ns() const { return tick_.ns_of(clock_ticks() - began_); }

 private:
  TickLength tick_;
  uint64_t began_;
};

}  // namespace gyre
