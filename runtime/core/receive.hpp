// Takes replies, and waits for them: any thread that waits completes the calls of others too.
#pragma once

#include <gyre/runtime/core/accounts.hpp>
#include <gyre/runtime/core/clock.hpp>
#include <gyre/runtime/core/engine_failure.hpp>
#include <gyre/runtime/core/host_side.hpp>
#include <gyre/runtime/core/state.hpp>

#include <atomic>

namespace gyre::detail {

class Watcher;

/// Thread-safe. Only wait_until() waits, for the call's worker.
class Receiver {
 public:
  static constexpr CallId no_call = 0;

  /// All must outlive this.
  Receiver(HostSide& host, State& state, Accounts& accounts, Clock& clock, EngineFailure& engine_failure,
           Watcher& watcher)
      : host_(host),
        calls_(host.calls),
        state_(state),
        accounts_(accounts),
        clock_(clock),
        engine_failure_(engine_failure),
        watcher_(watcher) {}

  /// Waits until the call is done, `until_ns` of the steady clock, or the call's deadline, whichever is
  /// first; completes other threads' calls meanwhile.
  /// @returns whether the call is done
  bool wait_until(CallId call, int64_t until_ns) {
    return calls_.done(call) || wait_slow_path(call, until_ns);
  }
  /// Takes replies, expires overdue calls and does due work, without waiting.
  /// @returns whether the call is done
  bool poll(CallId call);
  /// Makes `cancelled` the call's outcome, if it has none yet: true then. Also where the call has been
  /// released.
  bool cancel(CallId call);
  /// Makes `timed_out` the outcome of a call whose deadline has passed, unless it has one.
  void expire(CallId call);
  /// Ends the calls in flight as dead letters whose outcome is unknown. Call it once the rings are closed.
  void end_calls_in_flight();

  /// Takes the replies that lie in the rings, unless other threads do; returns how many.
  uint32_t drain_replies();
  /// Takes one reply that HostBridge::drain hands out; null, a corrupt slot, fails the engine. `own`: the
  /// call that this thread owns and waits for.
  void take_reply(HostBridge& bridge, const ArrivedReply* reply, CallId own = no_call);
  /// Publishes the time, checks the engine and expires overdue calls, at most every 2 ms, in the first thread
  /// that calls.
  void do_due_work(int64_t now_ns);
  /// Takes replies, expires overdue calls, asks the engine, and takes the handlers' lines: what waiting
  /// threads and the Watcher do, where a test steps the workers.
  void do_work_of_threads();
  /// Returns how many workers have acknowledged a drain: they have done all that was sent before it.
  /// Pairs with the count of each acknowledgement.
  uint32_t drain_acknowledgements() const { return drain_acknowledgements_.load(std::memory_order_acquire); }

 private:
  bool wait_slow_path(CallId call, int64_t until_ns);
  bool wait_by_steps(CallId call, int64_t until_ns);
  void sleep_for_reply(CallId call, const HostBridge& bridge, int64_t now_ns, int64_t until_ns);
  uint32_t drain_replies(HostBridge& bridge, CallId own = no_call);
  void take_special_reply(HostBridge& bridge, const ArrivedReply& reply);
  void take_told(HostBridge& bridge, const ArrivedReply& message);
  void take_reply_in_block(const Envelope& envelope, const OutOfLineReply& reply, bool wanted);
  void take_expired(const Envelope& envelope, const ErrorBody& error, bool wanted);
  bool complete_timed_out(CallId call);

  HostSide& host_;
  CallTable& calls_;
  State& state_;
  Accounts& accounts_;
  Clock& clock_;
  EngineFailure& engine_failure_;
  Watcher& watcher_;
  std::atomic<uint32_t> drain_acknowledgements_{0};
  std::atomic<int64_t> next_due_work_ns_{0};
  std::atomic<int64_t> next_overdue_ns_{0};
};

}  // namespace gyre::detail
