#include <gyre/runtime/core/accounts.hpp>

#include <algorithm>
#include <mutex>

namespace gyre::detail {

Accounts::Accounts(const HostSide& host)
    : host_(host),
      unprocessed_(size_t(host.layout.workers) * host.layout.counts_a_worker()),
      dead_letters_(host.actors),
      failed_tells_seen_(host.layout.workers) {}

Books Accounts::books() const {
  Books books;
  books.corrupt_slots = counts_.sum(Count::corrupt_unprocessed);
  // Outcomes before acceptances: an ask is counted as accepted first, so in flight is never negative.
  books.asks.answered = counts_.sum(Count::asks_answered);
  books.asks.error_replies = counts_.sum(Count::asks_error_replies);
  books.asks.timed_out = counts_.sum(Count::asks_timed_out);
  books.asks.dead_letters = counts_.sum(Count::asks_dead);
  books.asks.inferred = counts_.sum(Count::asks_inferred);
  books.asks.cancelled = counts_.sum(Count::asks_cancelled);
  books.asks.late_replies = counts_.sum(Count::asks_late);
  books.tells.dead_letters = counts_.sum(Count::tells_unprocessed);
  for (const HostBridge& bridge : host_.bridges) {
    const WorkerLine& line = *bridge.bridge().worker_line;
    // Pairs with the worker's store of its credit, before which it stored the counters.
    (void)Memory::load_acquire(line.h2d_credit);
    books.tells.processed += Memory::load_relaxed(line.tells_processed);
    books.tells.dead_letters += Memory::load_relaxed(line.tells_failed);
    books.corrupt_slots += Memory::load_relaxed(line.corrupt);
  }
  books.mail = mail();
  books.timers = timers();
  books.asks.accepted = counts_.sum(Count::asks_accepted);
  books.tells.accepted = counts_.sum(Count::tells_accepted);
  books.dead_letters_dropped = dead_letters_.dropped();
  return books;
}

MailAccounts Accounts::mail() const {
  MailAccounts mail;
  // Outcomes before messages, as above.
  for (const HostBridge& bridge : host_.bridges) {
    const WorkerLine& line = *bridge.bridge().worker_line;
    mail.processed += Memory::load_relaxed(line.mail_processed);
    mail.failed += Memory::load_relaxed(line.mail_failed);
    mail.refused += Memory::load_relaxed(line.mail_refused);
  }
  for (const HostBridge& bridge : host_.bridges) {
    mail.sent += Memory::load_relaxed(bridge.bridge().worker_line->mail_sent);
  }
  return mail;
}

TimerAccounts Accounts::timers() const {
  TimerAccounts timers;
  for (const HostBridge& bridge : host_.bridges) {
    const WorkerLine& line = *bridge.bridge().worker_line;
    timers.done += Memory::load_relaxed(line.timers_done);
    timers.cancelled += Memory::load_relaxed(line.timers_cancelled);
  }
  for (const HostBridge& bridge : host_.bridges) {
    timers.set += Memory::load_relaxed(bridge.bridge().worker_line->timers_set);
  }
  return timers;
}

void Accounts::add_unprocessed(uint32_t worker, const Envelope& envelope, const uint32_t* payload,
                               Status reason) {
  const std::vector<Handler>& handlers = host_.actors.handlers();
  const auto found = std::find_if(handlers.begin(), handlers.end(), [&](const Handler& handler) {
    return handler.actor_type == envelope.actor_type && handler.message_type == envelope.message_type;
  });
  const size_t number = size_t(found - handlers.begin());
  unprocessed_[worker * host_.layout.counts_a_worker() + number].fetch_add(1, std::memory_order_relaxed);
  dead_letters_.add(as_sent(envelope, payload), {reason, 0, 0}, body_in_slot(envelope, payload));
}

std::vector<DeadLetter> Accounts::take_dead_letters() {
  {
    const std::lock_guard lock(failed_tells_mutex_);
    collect_failed_tells();
  }
  return dead_letters_.take();
}

void Accounts::collect_failed_tells_until(int64_t deadline_ns) noexcept {
  std::unique_lock lock(failed_tells_mutex_, std::defer_lock);
  if (lock.try_lock_until(steady_time(deadline_ns))) collect_failed_tells();
}

void Accounts::collect_before_reuse(uint32_t worker) noexcept {
  // A guess: an old number takes the mutex in vain. failed_tells_mutex_ orders the changes.
  if (failed_tells(worker) == failed_tells_seen_[worker].load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(failed_tells_mutex_, std::try_to_lock);
  if (lock) collect_failed_tells(worker);
}

// The caller holds failed_tells_mutex_, here and below.
void Accounts::collect_failed_tells() noexcept {
  for (uint32_t worker = 0; worker < host_.layout.workers; ++worker) collect_failed_tells(worker);
}

void Accounts::collect_failed_tells(uint32_t worker) noexcept {
  const uint64_t failed = failed_tells(worker);
  std::atomic<uint64_t>& seen = failed_tells_seen_[worker];
  dead_letters_.collect(host_.bridges[worker].bridge(), seen.load(std::memory_order_relaxed), failed);
  seen.store(failed, std::memory_order_relaxed);
}

uint64_t Accounts::failed_tells(uint32_t worker) const noexcept {
  const WorkerLine& line = *host_.bridges[worker].bridge().worker_line;
  // Pairs with the worker's store of its credit, before which it stored count and log.
  (void)Memory::load_acquire(line.h2d_credit);
  return Memory::load_relaxed(line.tells_failed);
}

}  // namespace gyre::detail
