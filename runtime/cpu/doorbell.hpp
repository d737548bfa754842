// Wakes a worker's thread and the threads that wait for the worker: both sides spin for a moment, then sleep
// until the other side has work for them. One per worker of the CPU engine.
//
// Each side has a word that says that it sleeps or is about to: state_ and sleepers_. A side that goes to
// sleep sets its word, fences all threads (asymmetric_fence_heavy), polls once more, and sleeps. The other
// side stores its message, fences (asymmetric_fence_light), and reads the word. At least one of the two sees
// the other's store, and a message costs one load more.
//
// If messages are sparse, the scheduler often puts both threads on one processor, where the spinning thread
// keeps the other from running. Therefore a caller yields while its worker is woken but does not run yet. A
// worker whose last spin met no message yields once and sleeps, until a spin would have met a message.
#pragma once

#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/cpu/worker_sleep.hpp>
#include <gyre/runtime/system/asymmetric_fence.hpp>

#include <memory>
#include <span>

namespace gyre {

class CallTable;

/// Thread-safe.
class Doorbell final : public WorkerSleep {
 public:
  /// The longest sleep of a worker; it publishes its heartbeat then (WorkerLine::heartbeat_ns).
  static constexpr int64_t heartbeat_ns = 20'000'000;
  /// The longest sleep of either side if the system refuses the heavy fence.
  static constexpr int64_t unfenced_ns = 50'000;
  /// A spin would have met a message that arrives this soon after its worker went to sleep. About as long as
  /// a Backoff spins.
  static constexpr int64_t soon_ns = 50'000;

  /// `clock_ns`: the steady clock, or a test's.
  explicit Doorbell(int64_t (*clock_ns)() = detail::host_now_ns);

  /// Sets the table of the calls that the worker answers. Call it before the worker runs.
  void set_calls(CallTable& calls) { calls_ = &calls; }

  /// Sets the doorbells of all workers, by their numbers, which outlive this one's use. Call it before the
  /// worker runs.
  void set_others(std::span<const std::unique_ptr<Doorbell>> others) { others_ = others; }

  /// Wakes the worker if it sleeps. Call it after storing a message or a command. The fence pairs with the
  /// heavy one in prepare_sleep(): the worker finds the message, or this finds the worker asleep.
  void ring() {
    detail::asymmetric_fence_light();
    if (state_.load(std::memory_order_relaxed) == asleep) [[unlikely]]
      wake_worker();
  }

  /// Returns true if the worker seems to wait for a processor: it was woken and does not run yet, or it has
  /// yielded. A thread that waits for its reply should yield: the worker may wait for that processor. A hint:
  /// relaxed, with no partner.
  bool queued() const { return state_.load(std::memory_order_relaxed) > asleep; }

  /// Counts a thread that is about to sleep until the worker replies. Call it before
  /// asymmetric_fence_heavy(), and remove_sleeper() after the sleep. Pairs with the load in
  /// somebody_sleeps().
  void add_sleeper() { sleepers_.fetch_add(1, std::memory_order_acq_rel); }
  void remove_sleeper() { sleepers_.fetch_sub(1, std::memory_order_acq_rel); }

  void wake(uint64_t correlation) override;
  void yield() override;
  bool prepare_sleep() override;
  bool sleep(uint64_t most_ns) override;
  void end_sleep() override;
  void ring_worker(uint32_t worker) override { others_[worker]->ring(); }

 private:
  // Of the worker, which alone stores the first three. A thread that wakes it turns `asleep` into one of the
  // last two.
  enum State : uint32_t { awake, asleep, yielding, woken, woken_soon };

  void wake_worker();

  int64_t (*const clock_ns_)();
  CallTable* calls_ = nullptr;
  std::span<const std::unique_ptr<Doorbell>> others_;
  alignas(128) std::atomic<uint32_t> state_{awake};  // a futex
  std::atomic<int64_t> slept_at_ns_{0};              // when the worker last went to sleep; an estimate
};

}  // namespace gyre
