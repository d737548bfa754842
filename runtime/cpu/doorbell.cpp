#include <gyre/runtime/calls/call_table.hpp>
#include <gyre/runtime/cpu/doorbell.hpp>
#include <gyre/runtime/system/futex.hpp>

#include <chrono>
#include <thread>

namespace gyre {

Doorbell::Doorbell(int64_t (*clock_ns)())
    : WorkerSleep(detail::must_fence.load(std::memory_order_relaxed)), clock_ns_(clock_ns) {}

void Doorbell::wake_worker() {
  // Measured by the waking thread: the worker would add the time that the system takes to wake it. Relaxed: a
  // time alone.
  const bool soon = clock_ns_() - slept_at_ns_.load(std::memory_order_relaxed) < soon_ns;
  uint32_t expected = asleep;
  // Pairs with the load in sleep().
  if (state_.compare_exchange_strong(expected, soon ? woken_soon : woken, std::memory_order_acq_rel))
    detail::futex_wake(detail::whole(state_));
}

void Doorbell::wake(uint64_t correlation) {
  if (correlation == 0 || calls_->wake(correlation)) calls_->completed().wake();
}

void Doorbell::yield() {
  state_.store(yielding, std::memory_order_relaxed);
  std::this_thread::yield();
  state_.store(awake, std::memory_order_relaxed);
}

bool Doorbell::prepare_sleep() {
  slept_at_ns_.store(clock_ns_(), std::memory_order_relaxed);
  state_.store(asleep, std::memory_order_relaxed);  // ordered by the fences: see ring()
  if (detail::asymmetric_fence_heavy()) return true;
  state_.store(awake, std::memory_order_relaxed);
  std::this_thread::sleep_for(std::chrono::nanoseconds(unfenced_ns));
  return false;
}

bool Doorbell::sleep(uint64_t most_ns) {
  const int64_t longest_ns = most_ns < uint64_t(heartbeat_ns) ? int64_t(most_ns) : heartbeat_ns;
  detail::futex_wait(detail::whole(state_), asleep, clock_ns_() + longest_ns);
  const uint32_t state = state_.load(std::memory_order_acquire);  // pairs with the exchange in wake_worker()
  if (state == asleep) return true;
  spin_pays_ = !spin_pays_ && state == woken_soon;
  state_.store(awake, std::memory_order_relaxed);
  return false;
}

void Doorbell::end_sleep() {
  spin_pays_ = true;
  state_.store(awake, std::memory_order_relaxed);
}

}  // namespace gyre
