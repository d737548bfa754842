// The watcher: one thread of a runtime whose engine can die by itself. It asks the engine now and then, for
// programs in which nobody waits.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace gyre::detail {

class Core;

/// Costs nothing until it is started: then a thread that wakes each `interval`, and asks the engine once.
/// The thread keeps the Core until it ends.
class Watcher {
 public:
  /// The runtime knows of a fault this long after the engine at the latest, plus the time to wake a thread.
  static constexpr std::chrono::milliseconds interval{5};

  explicit Watcher(Core& core) : core_(core) {}
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// Starts the thread. At most once. Throws Error where there can be no thread.
  void start();
  /// Ends the thread, if there is one. On that thread itself it does not wait. False where the thread has not
  /// ended by `deadline_ns`: a driver call, or the program's logger, does not return. Repeatable; any thread.
  bool end(int64_t deadline_ns);

 private:
  void run();

  Core& core_;
  std::atomic<bool> started_{false};
  std::atomic<bool> ending_{false};
  std::atomic<bool> finished_{false};
  std::mutex sleep_mutex_;  // the thread's own
  std::condition_variable wake_;
  std::mutex join_mutex_;  // tried, never waited for
  std::thread thread_;
};

}  // namespace gyre::detail
