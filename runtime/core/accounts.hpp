// The accounts: how many messages had which outcome, and the dead letters themselves.
#pragma once

#include <gyre/runtime/books.hpp>
#include <gyre/runtime/core/dead_letters.hpp>
#include <gyre/runtime/core/host_side.hpp>
#include <gyre/runtime/core/tally.hpp>
#include <gyre/runtime/system/timed_mutex.hpp>

#include <atomic>
#include <vector>

namespace gyre::detail {

/// What the host counts itself; workers count the tells that they process or fail.
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

/// Thread-safe.
class Accounts {
 public:
  /// `host` must outlive this.
  explicit Accounts(const HostSide& host);

  void add(Count what, uint64_t n = 1) { counts_.add(what, n); }
  /// Counts an outcome that this thread has begun, then completes it: a thread that sees the outcome finds it
  /// in the books. False, and not counted, where the ask timed out meanwhile (CallTable::overrule).
  template <class Complete>
  bool conclude(Count count, Complete&& complete) {
    counts_.add(count);
    if (complete()) [[likely]]
      return true;
    counts_.take_back(count);
    return false;
  }
  /// Concludes an answer; counts it as late where the ask timed out meanwhile.
  template <class Complete>
  void conclude_answered(Complete&& complete) {
    if (!conclude(Count::asks_answered, complete)) [[unlikely]]
      counts_.add(Count::asks_late);
  }
  /// Concludes a call in flight as a dead letter. Whether a worker handled it is unknown.
  template <class Complete>
  void conclude_inferred(Complete&& complete) {
    counts_.add(Count::asks_inferred);
    if (!conclude(Count::asks_dead, complete)) counts_.take_back(Count::asks_inferred);
  }

  /// Adds up the books now.
  Books books() const;
  /// Adds up the workers' counts of messages between actors, as they were published last.
  MailAccounts mail() const;
  /// Adds up their counts of timers, likewise.
  TimerAccounts timers() const;

  /// Counts a message that a worker never took, and keeps it as a dead letter. `payload`: envelope and body.
  void add_unprocessed(uint32_t worker, const Envelope& envelope, const uint32_t* payload, Status reason);
  /// Returns how many messages for a handler the worker never took. A count alone: relaxed, with no partner.
  /// @param handler  its number in the actor set
  uint64_t unprocessed(uint32_t worker, size_t handler) const {
    return unprocessed_[worker * host_.layout.counts_a_worker() + handler].load(std::memory_order_relaxed);
  }
  DeadLetters& dead_letters() { return dead_letters_; }
  /// Reads the workers' logs of failed tells, then returns the dead letters since the last call, oldest
  /// first. Throws std::bad_alloc.
  std::vector<DeadLetter> take_dead_letters();
  /// Moves the workers' logs to the dead letters, unless another thread holds that lock until the deadline.
  void collect_failed_tells_until(int64_t deadline_ns) noexcept;
  /// Called by a sender that is about to use slots again that the worker is done with. Moves what the slots'
  /// messages left in the worker's log to the dead letters: later messages could overwrite the log. Does not
  /// wait for a thread that is reading a log.
  void collect_before_reuse(uint32_t worker) noexcept;

 private:
  void collect_failed_tells() noexcept;
  void collect_failed_tells(uint32_t worker) noexcept;
  uint64_t failed_tells(uint32_t worker) const noexcept;

  const HostSide& host_;
  Tally<Count> counts_;
  // Messages that a worker never took, by worker and handler; one more a worker for those of no handler.
  std::vector<std::atomic<uint64_t>> unprocessed_;
  DeadLetters dead_letters_;
  TimedMutex failed_tells_mutex_;                         // held to store failed_tells_seen_
  std::vector<std::atomic<uint64_t>> failed_tells_seen_;  // by worker
};

}  // namespace gyre::detail
