// How a worker's thread and the threads that wait for it wake each other: both spin for a moment, then sleep
// until the other side has something for them. One a worker of the CPU engine.
//
// Each side has a word that says that it sleeps, or may. It sets the word, has all threads fenced
// (asymmetric_fence_heavy), looks once more for what it waits for, and sleeps. The other side stores what it
// has, and then reads the word. One of the two sees what the other did, and a message costs no more than a
// load.
#pragma once

#include <gyre/runtime/asymmetric_fence.hpp>
#include <gyre/runtime/cpu/worker_sleep.hpp>

namespace gyre {

class CallTable;

/// Thread-safe.
class Doorbell final : public WorkerSleep {
 public:
  /// How long a worker sleeps at the most: then it says that it is there (WorkerLine::heartbeat_ns).
  static constexpr int64_t heartbeat_ns = 20'000'000;
  /// How long either side sleeps where the system refuses the fence by now.
  static constexpr int64_t unfenced_ns = 50'000;

  Doorbell();

  /// Whose calls the worker answers. Before the worker runs.
  void set_calls(CallTable& calls) { calls_ = &calls; }

  /// After a message or a command was stored: wakes the worker, if it sleeps.
  void ring() {
    detail::asymmetric_fence_light();
    if (sleeping_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake_worker();
  }

  /// A thread that will sleep until the worker replies says so before asymmetric_fence_heavy(), and takes it
  /// back afterwards.
  void add_sleeper() { sleepers_.fetch_add(1, std::memory_order_acq_rel); }
  void remove_sleeper() { sleepers_.fetch_sub(1, std::memory_order_acq_rel); }

  void wake(uint64_t correlation) override;
  bool prepare_sleep() override;
  bool sleep() override;
  void end_sleep() override;

 private:
  void wake_worker();

  CallTable* calls_ = nullptr;
  alignas(128) std::atomic<uint32_t> sleeping_{0};  // the worker; a futex
};

}  // namespace gyre
