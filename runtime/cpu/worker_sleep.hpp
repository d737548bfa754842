// Lets a worker that is a thread sleep, and wake the threads that sleep until it replies.
#pragma once

#include <atomic>
#include <cstdint>

namespace gyre {

/// The worker's side of a Doorbell; only the worker's thread uses it. Functions are inline or virtual:
/// workers are also compiled into shared objects, which refer to no symbol of the runtime.
class WorkerSleep {
 public:
  virtual ~WorkerSleep() = default;
  WorkerSleep(const WorkerSleep&) = delete;
  WorkerSleep& operator=(const WorkerSleep&) = delete;

  /// Returns true if a thread sleeps until the worker replies, or is about to. Call it after storing a reply.
  /// The fence is that of asymmetric_fence_light(); the load pairs with Doorbell::add_sleeper().
  bool somebody_sleeps() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (must_fence_) [[unlikely]]
      std::atomic_thread_fence(std::memory_order_seq_cst);
    return sleepers_.load(std::memory_order_acquire) != 0;
  }
  /// Wakes the thread that sleeps until the reply with this correlation arrives; 0: the poller.
  virtual void wake(uint64_t correlation) = 0;

  /// Wakes another worker if it sleeps: it has mail. Call it after storing a message for it.
  virtual void ring_worker(uint32_t worker) { (void)worker; }

  /// Returns true if the worker should spin before the next sleep: the last spin met a message.
  bool spin_pays() const { return spin_pays_; }
  /// Yields the processor. Call it before prepare_sleep(), in place of a spin: a thread that waits for the
  /// reply may be queued for this processor, and should run before the worker spends time on going to sleep.
  virtual void yield() = 0;
  /// Makes messages and commands wake the worker from now on. Call it before the last poll. Returns false if
  /// the system refuses the fence; it has slept for a moment then.
  virtual bool prepare_sleep() = 0;
  /// Sleeps until woken, at most until the next heartbeat or for `most_ns` nanoseconds. Call it after
  /// prepare_sleep() and a poll that found nothing. Returns true if the worker may sleep again; false if it
  /// was woken and must prepare again.
  virtual bool sleep(uint64_t most_ns) = 0;
  /// Ends the preparation. Call it when a poll after prepare_sleep() found something.
  virtual void end_sleep() = 0;

 protected:
  explicit WorkerSleep(bool must_fence) : must_fence_(must_fence) {}

  const bool must_fence_;
  bool spin_pays_ = true;
  alignas(128) std::atomic<uint32_t> sleepers_{0};  // threads that sleep for the worker's replies
};

}  // namespace gyre
