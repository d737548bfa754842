// How a worker's thread and the threads that wait for it wake each other: both spin for a moment, then sleep
// until the other side has something for them. One a worker of the CPU engine.
//
// Each side has a word that says that it sleeps, or may. It sets the word, has all threads fenced
// (asymmetric_fence_heavy), looks once more for what it waits for, and sleeps. The other side stores what it
// has, and then reads the word. One of the two sees what the other did, and a message costs no more than a
// load.
//
// Where messages are sparse the scheduler often has both threads on one processor, and the one that spins
// there keeps the other from running. So a caller yields while its worker was woken and does not run yet. And
// a worker whose last spin was in vain yields once and sleeps, until a spin would have met a message again.
#pragma once

#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/cpu/worker_sleep.hpp>
#include <gyre/runtime/system/asymmetric_fence.hpp>

namespace gyre {

class CallTable;

/// Thread-safe.
class Doorbell final : public WorkerSleep {
 public:
  /// How long a worker sleeps at the most: then it says that it is there (WorkerLine::heartbeat_ns).
  static constexpr int64_t heartbeat_ns = 20'000'000;
  /// How long either side sleeps where the system refuses the fence by now.
  static constexpr int64_t unfenced_ns = 50'000;
  /// A message that comes this soon after its worker went to sleep: a spin would have met it. About as long
  /// as a Backoff spins.
  static constexpr int64_t soon_ns = 50'000;

  /// `clock_ns`: the steady clock, or a test's.
  explicit Doorbell(int64_t (*clock_ns)() = detail::host_now_ns);

  /// Whose calls the worker answers. Before the worker runs.
  void set_calls(CallTable& calls) { calls_ = &calls; }

  /// After a message or a command was stored: wakes the worker, if it sleeps.
  void ring() {
    detail::asymmetric_fence_light();
    if (state_.load(std::memory_order_relaxed) == asleep) [[unlikely]]
      wake_worker();
  }

  /// Whether the worker waits for a processor, as far as is known: it was woken and does not run yet, or has
  /// yielded. Who waits for its reply yields too: it may be this processor.
  bool queued() const { return state_.load(std::memory_order_relaxed) > asleep; }

  /// A thread that will sleep until the worker replies says so before asymmetric_fence_heavy(), and takes it
  /// back afterwards.
  void add_sleeper() { sleepers_.fetch_add(1, std::memory_order_acq_rel); }
  void remove_sleeper() { sleepers_.fetch_sub(1, std::memory_order_acq_rel); }

  void wake(uint64_t correlation) override;
  void yield() override;
  bool prepare_sleep() override;
  bool sleep() override;
  void end_sleep() override;

 private:
  // The worker's. It alone stores the first three; who wakes it turns asleep into one of the last two.
  enum State : uint32_t { awake, asleep, yielding, woken, woken_soon };

  void wake_worker();

  int64_t (*const clock_ns_)();
  CallTable* calls_ = nullptr;
  alignas(128) std::atomic<uint32_t> state_{awake};  // a futex
  std::atomic<int64_t> slept_at_ns_{0};              // when it was asleep last
};

}  // namespace gyre
