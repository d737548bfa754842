// How a CPU thread waits for memory to change.
#pragma once

#include <gyre/runtime/options.hpp>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <thread>

namespace gyre {

/// Waits a little longer at each pause, as the policy allows: at first not at all, so that what is about to
/// come is seen at once. One thread's; not shared.
class Backoff {
 public:
  explicit Backoff(WaitPolicy policy) : policy_(policy) {}

  void pause() {
    ++pauses_;
    if (pauses_ < looks) return;
    if (policy_ == WaitPolicy::spin || pauses_ < looks + spins) {
      __builtin_ia32_pause();
    } else if (pauses_ < looks + spins + yields) {
      std::this_thread::yield();
    } else {
      // Not sleep_for: it begins again after each signal, and signals that come quickly would hold it for
      // ever. Not nanosleep(): a thread could be cancelled there (see cancellation.hpp).
      constexpr timespec nap{0, 50'000};
      syscall(SYS_nanosleep, &nap, nullptr);
    }
  }
  /// Instead of pause() where who is waited for may be queued for this processor: yields it. Counts as 16
  /// pauses, about as long.
  void yield() {
    pauses_ = (pauses_ + 16) | 15;
    std::this_thread::yield();
  }
  /// Progress was made: wait from the beginning again.
  void reset() { pauses_ = 0; }
  /// True at every 64th pause and once it has spun: the time for what must not be done at every turn.
  bool worth_a_look() const { return pauses_ % 64 == 63 || spun(); }
  /// True where the next pauses yield, then sleep: who can sleep until woken does so instead. Never where the
  /// policy is to spin.
  bool spun() const { return pauses_ >= looks + spins && policy_ == WaitPolicy::polite; }

 private:
  static constexpr uint32_t looks = 1024;  // some microseconds: as long as a round trip to a GPU
  static constexpr uint32_t spins = 1000;  // some 20 to 50 µs
  static constexpr uint32_t yields = 100;

  WaitPolicy policy_;
  uint32_t pauses_ = 0;
};

}  // namespace gyre
