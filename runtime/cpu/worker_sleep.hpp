// What a worker that is a thread needs in order to sleep, and to wake who sleeps for its replies.
#pragma once

#include <atomic>
#include <cstdint>

namespace gyre {

/// One worker's, used by its thread; Doorbell is the host's side of it. What is not inline here is virtual:
/// workers are compiled into shared objects too, which refer to no symbol of the runtime.
class WorkerSleep {
 public:
  virtual ~WorkerSleep() = default;
  WorkerSleep(const WorkerSleep&) = delete;
  WorkerSleep& operator=(const WorkerSleep&) = delete;

  /// After a reply was stored: whether somebody sleeps, or is about to.
  bool somebody_sleeps() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (must_fence_) [[unlikely]]
      std::atomic_thread_fence(std::memory_order_seq_cst);
    return sleepers_.load(std::memory_order_acquire) != 0;
  }
  /// Wakes who sleeps for the reply with that correlation.
  virtual void wake(uint64_t correlation) = 0;

  /// Whether to spin before the next sleep: not where the last spin was in vain.
  bool spin_pays() const { return spin_pays_; }
  /// Before prepare_sleep() instead of a spin: whoever waits for the reply may be queued for this processor,
  /// and runs before the worker spends time on its sleep.
  virtual void yield() = 0;
  /// Before the last poll: messages and commands that it does not find wake the worker. False where the
  /// system refuses that by now; then this slept for a moment instead.
  virtual bool prepare_sleep() = 0;
  /// After prepare_sleep() and a poll that found nothing: sleeps until woken, and from time to time for no
  /// reason, so that the worker says that it is there. True where it is still prepared to sleep; false where
  /// it was woken, and is not any more.
  virtual bool sleep() = 0;
  /// A poll after prepare_sleep() found something: it is not woken any more.
  virtual void end_sleep() = 0;

 protected:
  explicit WorkerSleep(bool must_fence) : must_fence_(must_fence) {}

  const bool must_fence_;
  bool spin_pays_ = true;
  alignas(128) std::atomic<uint32_t> sleepers_{0};  // threads that sleep for the worker's replies
};

}  // namespace gyre
