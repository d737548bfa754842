// What arrives on other threads, for a test to wait for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace gyre_test {

/// Any thread adds; the test waits.
template <class T>
class Arrivals {
 public:
  void add(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  /// Waits until `count` are there; false if they are not within a minute.
  bool wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return values_.size() >= count; });
  }
  size_t count() const {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }
  /// Those so far.
  std::vector<T> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(values_, {});
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> values_;
};

}  // namespace gyre_test
