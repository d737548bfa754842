// The core that Runtime, Client and Future share: the host's message path, and its end. Not for users.
#pragma once

#include <gyre/bridge/placement.hpp>
#include <gyre/runtime/async/poller.hpp>
#include <gyre/runtime/calls/teardown.hpp>
#include <gyre/runtime/core/accounts.hpp>
#include <gyre/runtime/core/clock.hpp>
#include <gyre/runtime/core/engine_failure.hpp>
#include <gyre/runtime/core/host_side.hpp>
#include <gyre/runtime/core/lifecycle.hpp>
#include <gyre/runtime/core/receive.hpp>
#include <gyre/runtime/core/send.hpp>
#include <gyre/runtime/core/state.hpp>
#include <gyre/runtime/core/terminate.hpp>
#include <gyre/runtime/core/told.hpp>
#include <gyre/runtime/core/watcher.hpp>
#include <gyre/runtime/memory/buffers.hpp>
#include <gyre/runtime/stats.hpp>

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace gyre::detail {

/// One runtime, put together from parts that each do one thing:
///
/// | part          | does                                                             |
/// | ------------- | ---------------------------------------------------------------- |
/// | HostSide      | holds the engine, its region, the rings' ends, the call table    |
/// | State         | says which state the runtime is in                               |
/// | Accounts      | counts outcomes, keeps dead letters                              |
/// | Clock         | publishes the host's time to workers, estimates theirs           |
/// | Receiver      | takes replies, waits for them, ends calls that will get none     |
/// | EngineFailure | fails the runtime when its engine died                           |
/// | Sender        | sends asks and tells                                             |
/// | WorkerControl | launches, activates and drains the workers                       |
/// | Terminator    | ends the workers and settles every message                       |
/// | ToldMessages  | calls the handlers of what actors send to the host               |
/// | Poller        | polls for callbacks on its own thread, and calls them            |
/// | Watcher       | asks an engine that can die, and logs handlers' lines: a thread  |
/// | Teardown      | decides who destroys the Core                                    |
///
/// Thread-safe. In a child of fork() sending, and everything else that needs the workers, fails.
class Core : public std::enable_shared_from_this<Core> {
 public:
  /// Initialises the region and launches the engine's workers. Throws Error.
  Core(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  HostSide& host() { return host_; }
  Engine& engine() { return *host_.engine; }
  const ActorSet& actors() const { return host_.actors; }
  const Options& options() const { return host_.options; }
  const RegionLayout& layout() const { return host_.layout; }
  const RingShape& shape() const { return host_.shape(); }
  const Arena& arena() const { return host_.arena; }
  CallTable& calls() { return host_.calls; }
  bool forked() const noexcept { return host_.forked(); }
  /// Throws Error with Status::forked in a forked child.
  void refuse_if_forked(const char* doing) const;
  Buffers& buffers() { return buffers_; }
  Accounts& accounts() { return accounts_; }
  Receiver& receiver() { return receiver_; }
  EngineFailure& engine_failure() { return engine_failure_; }
  ToldMessages& told() { return told_; }
  Poller& poller() { return poller_; }
  Teardown& teardown() { return teardown_; }
  Lifecycle state() const { return state_.get(); }
  double uptime_s() const { return state_.uptime_s(); }
  uint64_t region_bytes() const { return host_.layout.region_bytes(); }

  /// Returns the worker of a key.
  uint32_t worker_of(uint64_t key) const { return placement_.worker_of(key); }
  uint64_t max_body_bytes() const { return sender_.max_body_bytes(); }
  template <class Limits = AskLimits>
  Result<CallId> ask(const Destination& to, Outgoing message, const Limits& limits, WhenFull when_full) {
    return sender_.ask(to, message, limits, when_full);
  }
  Result<void> tell(const Destination& to, Outgoing message, const TellLimits& limits, WhenFull when_full) {
    return sender_.tell(to, message, limits, when_full);
  }
  size_t ask_many(std::span<const Addressed> messages, const AskLimits& limits, CallId* calls,
                  Failure& failure) {
    return sender_.ask_many(messages, limits, calls, failure);
  }
  size_t tell_many(std::span<const Addressed> messages, const TellLimits& limits, Failure& failure) {
    return sender_.tell_many(messages, limits, failure);
  }
  /// Asks for lifecycle_message start or stop, and waits for the answer.
  Result<void> ask_lifecycle(const Destination& to, std::chrono::nanoseconds timeout);

  /// Asks a worker for memory of its actors, and waits for the answer: see Control::read_state.
  /// @returns  the reply's body: an ActorsRead, and what it says
  Result<std::vector<std::byte>> read_actors(const Destination& to, const ReadLimits& limits);

  /// Waits until the call is done, at most until its deadline.
  void wait(CallId call) { receiver_.wait_until(call, INT64_MAX); }
  bool wait_until(CallId call, int64_t until_ns) { return receiver_.wait_until(call, until_ns); }
  bool poll(CallId call) { return receiver_.poll(call); }
  bool cancel(CallId call) { return receiver_.cancel(call); }

  /// The next three functions fail with worker_stuck at the deadline, even if other threads are suspended;
  /// with engine_failed; with terminated; set_active() also with draining.
  Result<void> set_active(bool active, std::chrono::nanoseconds timeout);
  Result<void> drain(std::chrono::nanoseconds timeout);
  Result<void> wait_for_workers(std::chrono::nanoseconds timeout);
  /// The least time that terminate() gives its workers: a healthy worker needs some of it to stop.
  static constexpr std::chrono::milliseconds terminate_grace{250};
  /// Ends the workers after the message in hand; the other messages become dead letters. Then waits for
  /// callbacks. Each of the two waits ends at its deadline, even if other threads are suspended; Termination
  /// says what did not end. Repeatable: later calls report the first. Throws Error in a forked child, and
  /// nothing else.
  Termination terminate(std::chrono::nanoseconds timeout);
  /// Sets what the watching thread calls, at most once, when the engine has failed. Before watch_engine().
  void on_failure(std::function<void()> callback) { on_failure_ = std::move(callback); }
  const std::function<void()>& on_failure() const { return on_failure_; }
  /// Starts the thread that notices the death of an engine that can die by itself. terminate(), which must be
  /// called, ends the thread. Throws Error if no thread can be started.
  void watch_engine();
  /// Where actors tell the host, calls these handlers from now on, on the poller's thread. terminate() ends
  /// that. Throws Error if the thread cannot be started.
  void listen(std::shared_ptr<ToldHandlers> handlers);

  /// Does what the runtime's own threads do elsewhere, and calls back on this thread: after each step of a
  /// test that steps the workers.
  void do_work_of_threads();

  /// These throw Error in a forked child.
  Books books() const;
  Stats stats() const;
  std::vector<DeadLetter> take_dead_letters();
  /// Returns why the engine failed, for the first time; empty if it did not.
  std::string failure() const;

  const Timings& timings() const { return timings_; }
  /// Records messages from now on. Before another thread has the Core.
  void record(std::shared_ptr<Recorder> recorder) { host_.recorder = std::move(recorder); }
  /// Before another thread has the Core.
  void set_timings(const Timings& timings) { timings_ = timings; }

 private:
  HostSide host_;
  const Placement placement_{host_.layout.workers};
  Teardown teardown_;
  Buffers buffers_;
  State state_;
  Accounts accounts_;
  Clock clock_;
  EngineFailure engine_failure_;
  Receiver receiver_;
  Sender sender_;
  WorkerControl workers_;
  ToldMessages told_;
  Terminator terminator_;
  Timings timings_;
  std::function<void()> on_failure_;
  Poller poller_;
  Watcher watcher_;
};

/// Makes a Core owned by shared_ptr. Calls in flight keep it alive without one; see Teardown. Throws what
/// Core's constructor throws, and std::bad_alloc.
std::shared_ptr<Core> make_core(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine);

}  // namespace gyre::detail
