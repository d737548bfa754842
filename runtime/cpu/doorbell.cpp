#include <gyre/runtime/call_table.hpp>
#include <gyre/runtime/cpu/doorbell.hpp>
#include <gyre/runtime/deadline.hpp>
#include <gyre/runtime/futex.hpp>

#include <chrono>
#include <thread>

namespace gyre {

Doorbell::Doorbell() : WorkerSleep(detail::must_fence.load(std::memory_order_relaxed)) {}

void Doorbell::wake_worker() {
  if (sleeping_.exchange(0, std::memory_order_acq_rel) != 0) detail::futex_wake(detail::whole(sleeping_));
}

void Doorbell::wake(uint64_t correlation) {
  if (calls_->wake(correlation)) calls_->completed().wake();
}

bool Doorbell::prepare_sleep() {
  sleeping_.store(1, std::memory_order_relaxed);
  if (detail::asymmetric_fence_heavy()) return true;
  end_sleep();
  std::this_thread::sleep_for(std::chrono::nanoseconds(unfenced_ns));
  return false;
}

bool Doorbell::sleep() {
  detail::futex_wait(detail::whole(sleeping_), 1, detail::host_now_ns() + heartbeat_ns);
  return sleeping_.load(std::memory_order_acquire) != 0;
}

void Doorbell::end_sleep() { sleeping_.store(0, std::memory_order_relaxed); }

}  // namespace gyre
