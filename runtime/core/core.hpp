// What Runtime, Client and Future share: the message path of the host, and its end. Not for users.
#pragma once

#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/async/poller.hpp>
#include <gyre/runtime/books.hpp>
#include <gyre/runtime/calls/call_table.hpp>
#include <gyre/runtime/calls/teardown.hpp>
#include <gyre/runtime/core/backoff.hpp>
#include <gyre/runtime/core/dead_letters.hpp>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/core/engine.hpp>
#include <gyre/runtime/core/host_bridge.hpp>
#include <gyre/runtime/core/tally.hpp>
#include <gyre/runtime/core/watcher.hpp>
#include <gyre/runtime/core/worker_clock.hpp>
#include <gyre/runtime/memory/arena.hpp>
#include <gyre/runtime/memory/buffers.hpp>
#include <gyre/runtime/memory/scratch.hpp>
#include <gyre/runtime/stats.hpp>
#include <gyre/runtime/system/timed_mutex.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace gyre {

/// What Runtime::terminate reports.
struct Termination {
  Books books;
  double uptime_s = 0;
  double terminate_ms = 0;
  bool worker_stuck = false;    ///< a worker did not stop in time; its memory was left allocated
  bool sender_stuck = false;    ///< a thread did not finish sending in time: Books::inferred has its message
  bool reader_stuck = false;    ///< a thread did not finish taking replies in time: Books::inferred has what
                                ///< lies behind it
  bool callback_stuck = false;  ///< a callback did not return in time: others may still come, or never
  bool unfinished = false;      ///< the time was up while another call was still ending the workers: the
                                ///< books are of that moment, and a later call has the rest
};

namespace detail {

/// Where a message goes.
struct Destination {
  uint32_t worker;
  uint16_t actor_type;
  uint16_t message_type;
  uint64_t key;
  uint32_t max_reply_bytes = 0;  // what the actor says; 0: nothing
};

/// A message and where it goes.
struct Addressed {
  Destination to;
  Outgoing message;
};

enum class WhenFull { refuse, wait };

/// What Core counts.
enum class Count {
  asks_accepted,
  asks_answered,
  asks_error_replies,
  asks_timed_out,
  asks_dead,
  asks_inferred,
  asks_cancelled,
  asks_late,
  tells_accepted,
  tells_unprocessed,
  corrupt_unprocessed,
  count
};

/// What one ask may take.
struct AskLimits {
  std::chrono::nanoseconds timeout;
  uint32_t max_reply_bytes;  // 0: see AskOptions::max_reply_bytes
};

/// What one tell may take.
struct TellLimits {
  std::chrono::nanoseconds timeout;        // for room
  std::chrono::nanoseconds expires_after;  // 0: never
};

class Core : public std::enable_shared_from_this<Core> {
 public:
  /// Initialises the region and launches the engine's workers. Throws Error.
  Core(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const ActorSet& actors() const { return actors_; }
  const Options& options() const { return options_; }
  Engine& engine() { return *engine_; }
  CallTable& calls() { return calls_; }
  Poller& poller() { return poller_; }
  Buffers& buffers() { return buffers_; }
  const RingShape& shape() const { return layout_.shape; }
  const Arena& arena() const { return arena_; }
  const RegionLayout& layout() const { return layout_; }
  /// A worker's bridge, for tests that stand for a thread that is suspended at it.
  HostBridge& bridge(uint32_t worker) { return bridges_[worker]; }
  /// Largest request body that could be sent, in bytes.
  uint64_t max_body_bytes() const { return max_body_bytes_; }
  uint64_t region_bytes() const { return layout_.region_bytes(); }
  /// The key modulo the workers, without a division for keys that are less.
  uint32_t worker_of(uint64_t key) const {
    return uint32_t(key < layout_.workers ? key : key % layout_.workers);
  }
  /// True in a forked child: the workers, and the region, are the parent's, and nothing here touches them.
  bool forked() const noexcept { return fork_.forked(); }
  Teardown& teardown() { return teardown_; }
  /// Throws Error with Status::forked in such a child.
  void refuse_if_forked(const char* doing) const;
  Lifecycle state() const { return state_.load(std::memory_order_acquire); }
  /// Why a message is refused once the rings are closed.
  Status refusal() const;
  double uptime_s() const;

  /// Sends a request, in a slot if it fits one and in a block of the arena if not. Takes nothing and loses
  /// nothing unless the result has a value. Blocks up to the timeout for room, if it may wait.
  Result<CallId> ask(const Destination& to, Outgoing message, const AskLimits& limits, WhenFull when_full);
  Result<void> tell(const Destination& to, Outgoing message, const TellLimits& limits, WhenFull when_full);
  /// Sends requests in their order, those next to each other to one worker together; waits for room. Returns
  /// how many were sent: their calls are in `calls`, which has room for all; `refused` says why the others
  /// were not.
  size_t ask_many(std::span<const Addressed> messages, const AskLimits& limits, CallId* calls,
                  Failure& refused);
  size_t tell_many(std::span<const Addressed> messages, const TellLimits& limits, Failure& refused);
  /// Asks for lifecycle_message start or stop, and waits for the answer.
  Result<void> ask_lifecycle(const Destination& to, std::chrono::nanoseconds timeout);

  /// Waits until the call is done, at its deadline the latest; completes for others what it finds meanwhile.
  void wait(CallId call) {
    if (!calls_.done(call)) wait_longer(call, INT64_MAX);
  }
  /// The same, at `until_ns` of the steady clock the latest; true if the call is done.
  bool wait_until(CallId call, int64_t until_ns) { return calls_.done(call) || wait_longer(call, until_ns); }
  /// Completes what is there, without waiting; true if the call is done.
  bool poll(CallId call);
  /// The call's outcome is `cancelled`, if it has none yet: true then. Any thread, also when the call has
  /// been given back.
  bool cancel(CallId call);

  /// Commands the workers to take messages or to answer `inactive`, and waits until all obey, at most the
  /// timeout, whatever other threads do. Failure: worker_stuck, draining, terminated, engine_failed.
  Result<void> set_active(bool active, std::chrono::nanoseconds timeout);
  /// Refuses new messages, and waits until the workers have done all they accepted, at most the timeout,
  /// whatever other threads do. Failure: worker_stuck, engine_failed, terminated.
  Result<void> drain(std::chrono::nanoseconds timeout);
  /// The least time that terminate allows its workers: a healthy one needs some of it, whatever the timeout.
  static constexpr std::chrono::milliseconds terminate_grace{250};
  /// Ends the workers after the message in hand; the rest become dead letters. Then waits for callbacks.
  /// Each of the two waits ends with its deadline, whatever other threads do; Termination says what was given
  /// up. Repeatable: later calls report the first. Throws Error in a forked child, and nothing else.
  Termination terminate(std::chrono::nanoseconds timeout);

  /// Notices from now on that the engine died, though nobody waits; for an engine that can die by itself.
  /// Ends with terminate(), which must be called. Throws Error where there can be no thread.
  void watch_engine();

  /// Waits until every worker is past all that was sent before the call, and completes what it finds
  /// meanwhile. Failures: worker_stuck, engine_failed.
  Result<void> wait_for_workers(std::chrono::nanoseconds timeout);

  Books books() const;
  /// Throws Error in a forked child, and std::bad_alloc.
  Stats stats() const;
  const Timings& timings() const { return timings_; }
  /// Before anybody else has the core.
  void set_timings(const Timings& timings) { timings_ = timings; }
  /// Dead letters since the last call, oldest first.
  std::vector<DeadLetter> take_dead_letters();
  /// Dead letters that the bounded log had no room for.
  uint64_t dead_letters_dropped() const { return dead_letters_.dropped(); }
  /// Why the engine failed, for the first time; empty if it did not.
  std::string failure() const;

 private:
  friend class Poller;
  friend class Watcher;
  friend struct SuspendedDrainer;  // of the tests
  Termination end_workers(std::chrono::nanoseconds timeout, int64_t deadline_ns);
  Termination wait_for_end(int64_t deadline_ns) const;
  void wait_until_started();
  void abandon_launch() noexcept;
  std::optional<std::string> engine_failure() noexcept;
  // What a message takes of the arena.
  struct Room {
    uint32_t request_bytes = 0;  // 0: the body goes in the slot
    uint32_t reply_bytes = 0;    // 0: the reply must fit a slot
    bool any() const { return request_bytes != 0 || reply_bytes != 0; }
  };
  Failure refused(Status status, uint64_t waited_us, const Room& room) const;
  Result<Room> room_for(uint32_t body_bytes, uint32_t reply_bytes) const;
  std::optional<ArenaBlock> take_block(const Room& room, Outgoing message);
  static HostBridge::Message with_heads(const Envelope& envelope, Outgoing message, const Room& room,
                                        const std::optional<ArenaBlock>& block);
  static HostBridge::Message with_block_heads(Envelope envelope, Outgoing message, const Room& room,
                                              const ArenaBlock& block);
  template <class Attempt>
  Status attempt_until(Attempt&& attempt, std::chrono::nanoseconds timeout, int64_t& deadline_ns,
                       WhenFull when_full);
  template <class Attempt>
  Status keep_attempting(Status status, Attempt& attempt, std::chrono::nanoseconds timeout,
                         int64_t& deadline_ns, WhenFull when_full);
  size_t ask_run(std::span<const Addressed> run, const AskLimits& limits, CallId* calls, Failure& refused);
  size_t tell_run(std::span<const Addressed> run, const TellLimits& limits, Failure& refused);
  template <class Fits>
  static size_t run_of(std::span<const Addressed> messages, Fits&& fits);
  Status status_of(ClaimOutcome outcome) const;
  Status full_or_closed(const HostBridge& bridge, Status full) const;
  uint32_t reply_bytes(const Destination& to, const AskLimits& limits, uint32_t request_bytes) const;
  bool wait_longer(CallId call, int64_t until_ns);
  void sleep_for_reply(CallId call, const HostBridge& bridge, int64_t now_ns, int64_t until_ns);
  static constexpr CallId no_call = 0;
  uint32_t drain_replies();
  uint32_t drain_replies(HostBridge& bridge, CallId own = no_call);
  void take_reply(HostBridge& bridge, const ArrivedReply* reply, CallId own);
  void take_special_reply(HostBridge& bridge, const ArrivedReply& reply);
  void take_reply_in_block(const Envelope& envelope, const OutOfLineReply& reply, bool wanted);
  void take_expired(const Envelope& envelope, const ErrorBody& error, bool wanted);
  void expire(CallId call);
  // Counts an outcome that this thread has begun, and completes it: whoever sees the outcome finds it in the
  // books. False, and not counted, where the ask timed out while this thread was at it (CallTable::overrule).
  template <class Complete>
  bool conclude(Count count, Complete&& complete) {
    books_.add(count);
    if (complete()) [[likely]]
      return true;
    books_.take_back(count);
    return false;
  }
  template <class Complete>
  void conclude_answered(Complete&& complete) {
    if (!conclude(Count::asks_answered, complete)) [[unlikely]]
      books_.add(Count::asks_late);
  }
  uint32_t worker_deadline_us(HostBridge& bridge, int64_t now_ns, int64_t deadline_ns) {
    // An engine that shares the host's clock is never due.
    if (now_ns - bridge.published_time_ns() > time_interval_ns) [[unlikely]]
      return publish_time_first(bridge, now_ns, deadline_ns);
    return deadline_us(now_ns, deadline_ns);
  }
  static uint32_t publish_time_first(HostBridge& bridge, int64_t now_ns, int64_t deadline_ns);
  void publish_time(int64_t now_ns);
  static constexpr int64_t time_interval_ns = 2'000'000;  // between times that the host publishes to a worker
  void calibrate_clock();
  void sample_clock(int64_t now_ns);
  std::string last_words() const;
  Failure engine_failed(uint32_t worker) const;
  void do_due_work(int64_t now_ns);
  void check_engine();
  void fail(std::string_view cause) noexcept;
  bool change_state(Lifecycle to) noexcept;
  bool record_failure(std::string_view cause) noexcept;
  void send_drain_messages();
  void collect_failed_tells() noexcept;
  void collect_failed_tells(uint32_t worker) noexcept;
  void collect_before_reuse(uint32_t worker) noexcept;
  uint64_t failed_tells(uint32_t worker) const noexcept;
  bool bury_unprocessed(uint32_t worker, Status reason, int64_t deadline_ns);
  static void infer(Books& books);
  void end_calls_in_flight(Status reason);
  Books count_books() const;
  size_t handler_number(const Envelope& envelope) const;
  void count_unprocessed(uint32_t worker, const Envelope& envelope);
  WorkerStats worker_stats(uint32_t worker, int64_t now_ns) const;

  const ForkGuard fork_;
  Teardown teardown_;
  const ActorSet actors_;
  const Options options_;
  const RegionLayout layout_;
  std::unique_ptr<Engine> engine_;
  std::deque<HostBridge> bridges_;  // one a worker; never moved
  Buffers buffers_;
  Arena arena_;
  const uint64_t max_body_bytes_;
  CallTable calls_;

  std::atomic<Lifecycle> state_{Lifecycle::launched};
  std::atomic<uint32_t> drain_acknowledgements_{0};
  std::atomic<int64_t> next_due_work_ns_{0};
  std::atomic<int64_t> next_overdue_ns_{0};
  WorkerClock clock_;
  std::mutex clock_mutex_;      // tried, never waited for
  int64_t clock_asked_ns_ = 0;  // when worker 0 was commanded clock_asked_; 0: it was not
  int64_t next_clock_ns_ = 0;
  CommandWord clock_asked_;
  int64_t launched_at_ns_ = 0;

  Tally<Count> books_;
  // Messages that a worker never took, by worker and handler; one more a worker for those of no handler.
  std::vector<std::atomic<uint64_t>> unprocessed_;
  Timings timings_;

  DeadLetters dead_letters_;
  TimedMutex active_mutex_;               // set_active's state and commands belong together
  std::mutex drain_mutex_;                // of drain_sent_; tried, never waited for
  std::vector<bool> drain_sent_;          // by worker
  std::atomic<bool> terminating_{false};  // whoever set it ends the workers, alone
  Termination termination_;               // that thread's, until ended_
  std::atomic<bool> ended_{false};
  TimedMutex failed_tells_mutex_;  // who stores failed_tells_seen_
  std::vector<std::atomic<uint64_t>> failed_tells_seen_;
  std::vector<Packet> buried_;  // what terminate reads back: it must not fail for lack of memory
  std::atomic<const std::string*> failure_{nullptr};  // of the first fail(), for good; owned
  const std::string out_of_memory_{"out of memory"};  // a failure_ that needs no allocation
  Poller poller_{*this};
  Watcher watcher_{*this};
};

/// Makes a Core with shares. Calls keep it without one; see Teardown. Throws what Core's constructor throws,
/// and std::bad_alloc.
std::shared_ptr<Core> make_core(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine);

}  // namespace detail
}  // namespace gyre
