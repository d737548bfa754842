// A mutex that is waited for until a deadline.
#pragma once

#include <gyre/runtime/system/futex.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace gyre::detail {

/// A mutex of one word (Drepper, "Futexes are tricky", mutex 2). Meets TimedLockable for deadlines of the
/// steady clock. An uncontended lock or unlock costs one locked instruction. No cancellation point.
///
/// Replaces std::timed_mutex: g++ 12's ThreadSanitizer does not know pthread_mutex_clocklock, by which
/// std::timed_mutex waits, and reports the unlock after it.
class TimedMutex {
 public:
  void lock() { lock_until(INT64_MAX); }
  bool try_lock() {
    uint32_t found = free;
    return word_.compare_exchange_strong(found, locked, std::memory_order_acquire);  // pairs with unlock()
  }
  /// Locks the mutex. Returns false at the deadline, even if the thread that holds the mutex is suspended.
  bool try_lock_until(std::chrono::steady_clock::time_point deadline) {
    return lock_until(std::chrono::nanoseconds(deadline.time_since_epoch()).count());
  }
  void unlock() {
    // Pairs with the exchanges that lock.
    if (word_.exchange(free, std::memory_order_release) == contended) futex_wake(whole(word_));
  }

 private:
  static constexpr uint32_t free = 0, locked = 1, contended = 2;  // contended: a thread may sleep

  bool lock_until(int64_t deadline_ns) {
    if (try_lock()) return true;
    // A thread that waited holds the mutex as contended: it does not know whether others still sleep.
    while (word_.exchange(contended, std::memory_order_acquire) != free) {  // pairs with unlock()
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      if (std::chrono::nanoseconds(now).count() >= deadline_ns) return false;
      futex_wait(whole(word_), contended, deadline_ns);
    }
    return true;
  }

  std::atomic<uint32_t> word_{free};
};

}  // namespace gyre::detail
