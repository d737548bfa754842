// How long a thread that waits politely sleeps once it has spun.
#pragma once

#include <sys/prctl.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace gyre::detail {

/// Reduces the calling thread's timer slack (PR_SET_TIMERSLACK) while it lives: sleeps end at most 1 µs late,
/// not
/// 50. Never throws. Destroy it on the thread that made it.
class PreciseTimers {
 public:
  PreciseTimers() : before_ns_(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) {
    if (before_ns_ > slack_ns) prctl(PR_SET_TIMERSLACK, slack_ns, 0, 0, 0);
  }
  ~PreciseTimers() {
    if (before_ns_ > slack_ns) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_ns_), 0, 0, 0);
  }
  PreciseTimers(const PreciseTimers&) = delete;
  PreciseTimers& operator=(const PreciseTimers&) = delete;

 private:
  static constexpr long slack_ns = 1000;
  const long before_ns_;  // 0 where timers have no slack, -1 where the system does not say
};

/// Chooses how long one waiting thread sleeps at a time. If the end of the wait wakes the thread, a sleep
/// ends at the next deadline or when waiting threads have other work, whichever is earlier. If nothing can
/// wake the thread, as on CUDA, a sleep lasts a tenth of the time waited so far: it makes no wait more than a
/// tenth longer, apart from the system's delay.
class WaitedSleep {
 public:
  static constexpr int64_t longest_ns = 10'000'000;  ///< for threads that are woken
  /// For other threads: waiting threads serve a GPU's workers every 2 ms.
  static constexpr int64_t longest_unwoken_ns = 2'000'000;
  /// A shorter sleep would cost more than it saves.
  static constexpr int64_t shortest_ns = 5'000;

  explicit WaitedSleep(bool woken) : woken_(woken) {}

  /// Returns when a sleep that begins at `now_ns` should end, at most `deadline_ns`; 0: it is too early to
  /// sleep. The first call marks the beginning of the wait.
  int64_t end(int64_t now_ns, int64_t deadline_ns) {
    if (began_ns_ == 0) began_ns_ = now_ns;
    int64_t ns = longest_ns;
    if (!woken_) {
      ns = std::min(longest_unwoken_ns, (now_ns - began_ns_) / 10);
      if (ns < shortest_ns) return 0;
      if (!timers_) timers_.emplace();
    }
    return std::min(now_ns + ns, deadline_ns);
  }

 private:
  const bool woken_;
  int64_t began_ns_ = 0;
  std::optional<PreciseTimers> timers_;
};

}  // namespace gyre::detail
