// Waits on a CPU thread for memory to change.
#pragma once

#include <gyre/runtime/options.hpp>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <thread>

namespace gyre {

/// Waits a little longer at each pause, as the policy allows. The first pauses do not wait at all, so that a
/// reply that is about to come is seen at once. Used by one thread.
class Backoff {
 public:
  /// Turns that found replies between two reads of the clock. Such turns do not pause, so the clock must be
  /// read in some of them: deadlines pass.
  static constexpr uint32_t busy_turns_per_clock_read = 16;

  explicit Backoff(WaitPolicy policy) : policy_(policy) {}

  void pause() {
    ++pauses_;
    if (pauses_ < polls) return;
    if (policy_ == WaitPolicy::spin || pauses_ < polls + spins) {
      __builtin_ia32_pause();
    } else if (pauses_ < polls + spins + yields) {
      std::this_thread::yield();
    } else {
      // Not sleep_for(), which starts again after each signal: frequent signals would make it endless. Not
      // nanosleep(), which is a cancellation point (cancellation.hpp).
      constexpr timespec nap{0, 50'000};
      syscall(SYS_nanosleep, &nap, nullptr);
    }
  }
  /// Yields the processor; called instead of pause() where the awaited thread may be queued for this
  /// processor. Counts as 16 pauses, which take about as long.
  void yield() {
    pauses_ = (pauses_ + 16) | 15;
    std::this_thread::yield();
  }
  /// Counts as a pause, without one. Returns true if it is the first of the sequence.
  bool begin() { return pauses_++ == 0; }
  /// Begins the sequence of pauses again, after progress.
  void reset() { pauses_ = 0; }
  /// Returns true at every 64th pause, and at each pause once spun(). Reading the clock at every pause would
  /// delay the next poll.
  bool should_read_clock() const { return pauses_ % 64 == 63 || spun(); }
  /// Returns true if the next pause would yield or sleep: a thread that can be woken sleeps on its futex
  /// instead. Always false with WaitPolicy::spin.
  bool spun() const { return pauses_ >= polls + spins && policy_ == WaitPolicy::polite; }

 private:
  static constexpr uint32_t polls = 1024;  // some microseconds: as long as a round trip to a GPU
  static constexpr uint32_t spins = 1000;  // some 20 to 50 µs
  static constexpr uint32_t yields = 100;

  WaitPolicy policy_;
  uint32_t pauses_ = 0;
};

}  // namespace gyre
