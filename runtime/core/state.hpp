// Which state of its life a Core is in.
#pragma once

#include <gyre/messages/status.hpp>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/stats.hpp>

#include <atomic>

namespace gyre::detail {

/// The state, and whether the termination has begun. Nothing follows `failed` or `terminated`. Thread-safe,
/// lock-free.
class State {
 public:
  /// Pairs with each change of the state: a thread that reads it sees what was done before the change.
  Lifecycle get() const { return state_.load(std::memory_order_acquire); }
  double uptime_s() const { return double(host_now_ns() - launched_at_ns_) * 1e-9; }

  /// The workers have started. Before another thread has the Core.
  void launched() {
    launched_at_ns_ = host_now_ns();
    state_.store(Lifecycle::active, std::memory_order_release);
  }
  /// False where the Core has failed or has terminated.
  bool change(Lifecycle to) noexcept {
    Lifecycle from = get();
    do {
      if (from == Lifecycle::failed || from == Lifecycle::terminated) return false;
    } while (!state_.compare_exchange_weak(from, to, std::memory_order_acq_rel, std::memory_order_acquire));
    return true;
  }
  /// Changes `from` to `to`; true also where the state is `to` already. On false `from` is what it is.
  bool change(Lifecycle& from, Lifecycle to) noexcept {
    return state_.compare_exchange_strong(from, to, std::memory_order_acq_rel) || from == to;
  }

  /// True for one caller, which then ends the workers, alone.
  bool begin_terminating() noexcept { return !terminating_.exchange(true, std::memory_order_acq_rel); }
  /// Pairs with begin_terminating().
  bool terminating() const { return terminating_.load(std::memory_order_acquire); }

  /// Why a message is refused once the rings are closed: whatever closes the rings changes the state first.
  Status refusal() const {
    const Lifecycle state = get();
    if (state == Lifecycle::failed) return Status::engine_failed;
    return state == Lifecycle::draining && !terminating() ? Status::draining : Status::terminated;
  }

 private:
  std::atomic<Lifecycle> state_{Lifecycle::launched};
  std::atomic<bool> terminating_{false};
  int64_t launched_at_ns_ = 0;
};

}  // namespace gyre::detail
