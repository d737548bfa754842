// Workers without threads: whoever waits for them moves them, in virtual time.
#pragma once

#include <cstdint>

namespace gyre::detail {

/// Moves the workers of an engine that has no threads, and their clock. The runtime starts no thread beside
/// such an engine: what its threads do elsewhere, Core::do_work_of_threads() does. One thread at a time.
class Stepper {
 public:
  virtual ~Stepper() = default;

  /// Returns nanoseconds of the clock that judges deadlines, in place of host_now_ns().
  virtual int64_t now_ns() const = 0;
  /// Moves a worker by one message, for a thread that waits. Each worker has polled, and so obeyed commands,
  /// where none can move: false then.
  virtual bool move() = 0;
  /// Lets time pass up to `time_ns`: nothing else happens before.
  virtual void pass_until(int64_t time_ns) = 0;
};

}  // namespace gyre::detail
