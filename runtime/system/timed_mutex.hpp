// A mutex that is waited for until a deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace gyre::detail {

/// Like std::timed_mutex, which ThreadSanitizer of g++ 12 does not follow: it does not know the call by which
/// that mutex waits for a deadline of the steady clock (pthread_mutex_clocklock), and reports the unlock
/// after it. For what is locked seldom: an uncontended lock and unlock cost two pairs of a std::mutex.
class TimedMutex {
 public:
  void lock() {
    std::unique_lock inner(mutex_);
    unlocked_.wait(inner, [this] { return !locked_; });
    locked_ = true;
  }
  bool try_lock() {
    const std::lock_guard inner(mutex_);
    return !locked_ && (locked_ = true);
  }
  /// False at the deadline.
  bool try_lock_until(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock inner(mutex_);
    if (!unlocked_.wait_until(inner, deadline, [this] { return !locked_; })) return false;
    return locked_ = true;
  }
  void unlock() {
    {
      const std::lock_guard inner(mutex_);
      locked_ = false;
    }
    unlocked_.notify_one();
  }

 private:
  std::mutex mutex_;  // guards locked_
  std::condition_variable unlocked_;
  bool locked_ = false;
};

}  // namespace gyre::detail
