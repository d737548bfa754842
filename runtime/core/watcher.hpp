// The watcher: one thread of a runtime whose engine can die by itself, or whose handlers log. It asks the
// engine now and then, for programs in which nobody waits, and gives the handlers' lines to the program's
// log, which may take its time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
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

  /// Starts the thread, unless it was started. Throws Error where there can be no thread.
  void start();
  /// Returns whether it was started.
  bool started() const { return phase_.load(std::memory_order_relaxed) != Phase::none; }
  /// Starts the thread for lines that handlers have logged, unless it was started, or ended. Never throws:
  /// without a thread the lines wait until the runtime ends. Any thread; does not wait.
  void start_for_lines() noexcept;
  /// Ends the thread, if there is one. On that thread itself it does not wait. False where the thread has not
  /// ended by `deadline_ns`: a driver call, or the program's logger, does not return. Repeatable; any thread.
  bool end(int64_t deadline_ns);

 private:
  enum class Phase { none, starting, started, never };

  void run();
  bool begin() noexcept;
  void start_thread(std::shared_ptr<Core> core);

  Core& core_;
  std::atomic<Phase> phase_{Phase::none};
  std::atomic<bool> ending_{false};
  std::atomic<bool> finished_{false};
  std::mutex sleep_mutex_;  // the thread's own
  std::condition_variable wake_;
  std::mutex join_mutex_;  // tried, never waited for
  std::thread thread_;
};

}  // namespace gyre::detail
