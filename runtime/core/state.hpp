// The lifecycle of a Core.
#pragma once

#include <gyre/messages/status.hpp>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/stats.hpp>

#include <atomic>

namespace gyre::detail {

/// Holds the state, and whether the termination has begun. `failed` and `terminated` are final. Thread-safe,
/// lock-free. Each change pairs with get(), and with the next change.
class State {
 public:
  /// Pairs with each change of the state: a thread that reads it sees what was done before the change.
  Lifecycle get() const { return state_.load(std::memory_order_acquire); }
  double uptime_s() const { return double(host_now_ns() - launched_at_ns_) * 1e-9; }

  /// Notes that the workers have started. Call it before another thread has the Core.
  void launched() {
    launched_at_ns_ = host_now_ns();
    state_.store(Lifecycle::active, std::memory_order_release);
  }
  /// Changes the state. Returns false if the Core has failed or has terminated.
  bool change(Lifecycle to) noexcept {
    Lifecycle from = get();
    do {
      if (from == Lifecycle::failed || from == Lifecycle::terminated) return false;
    } while (!state_.compare_exchange_weak(from, to, std::memory_order_acq_rel, std::memory_order_acquire));
    return true;
  }
  /// Changes `from` to `to`. Returns true also if the state is `to` already. If false, `from` receives the
  /// state.
  bool change(Lifecycle& from, Lifecycle to) noexcept {
    return state_.compare_exchange_strong(from, to, std::memory_order_acq_rel) || from == to;
  }

  /// Returns true to one caller, which then ends the workers. Pairs with terminating().
  bool begin_terminating() noexcept { return !terminating_.exchange(true, std::memory_order_acq_rel); }
  /// Pairs with begin_terminating().
  bool terminating() const { return terminating_.load(std::memory_order_acquire); }

  /// Returns why a message is refused once the rings are closed. The state is changed before the rings are
  /// closed.
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
