// The books: what became of every message. Each accepted ask has exactly one outcome. Each accepted tell
// is processed or becomes a dead letter. Refused messages are not counted as accepted.
#pragma once

#include <cstdint>

namespace gyre {

/// Counts what became of asks. Each accepted ask has one of five outcomes, or is in flight.
struct AskAccounts {
  uint64_t accepted = 0;
  uint64_t answered = 0;
  uint64_t error_replies = 0;
  uint64_t timed_out = 0;
  uint64_t dead_letters = 0;
  uint64_t cancelled = 0;
  uint64_t late_replies = 0;  ///< replies to asks that had another outcome; not part of `accepted`
  uint64_t inferred = 0;      ///< dead letters that a worker may have handled; part of `dead_letters`

  /// Returns the number of accepted asks without an outcome.
  uint64_t in_flight() const {
    return accepted - answered - error_replies - timed_out - dead_letters - cancelled;
  }
};

/// Counts what became of tells. Each accepted tell was processed, is a dead letter, or is in flight.
struct TellAccounts {
  uint64_t accepted = 0;
  uint64_t processed = 0;
  uint64_t dead_letters = 0;
  uint64_t inferred = 0;  ///< dead letters that a worker may have handled; part of `dead_letters`

  /// Returns the number of accepted tells without an outcome.
  uint64_t in_flight() const { return accepted - processed - dead_letters; }
};

/// Counts what became of the messages that actors sent to each other. Each was processed, failed, was
/// refused, was lost, or is under way. As the workers published their counts: when they have nothing to do,
/// when they are drained, and when they stop. A broadcast or published message counts once
/// for each worker, and once for each actor that gets it.
struct MailAccounts {
  uint64_t sent = 0;
  uint64_t processed = 0;
  uint64_t failed = 0;   ///< reached no handler, or its handler failed
  uint64_t refused = 0;  ///< there was no memory to keep it: Options::spill_bytes
  /// Were under way when the workers ended; by subtraction. After a fault, or where a worker did not stop,
  /// the workers' last counts are old, and so is this number.
  uint64_t lost = 0;

  /// Returns the number of messages without an outcome; 0 while more outcomes were published than messages.
  uint64_t under_way() const {
    const uint64_t ended = processed + failed + refused + lost;
    return sent > ended ? sent - ended : 0;
  }
};

/// Counts what became of the messages that actors sent to the host by tell_host(). Each was handled, dropped,
/// or is under way. `sent` and `refused` lag as the counts of MailAccounts do.
struct ToldAccounts {
  uint64_t sent = 0;
  uint64_t handled = 0;  ///< the handler of Runtime::on() was called; it may have thrown
  uint64_t dropped = 0;  ///< there was no handler, or terminate() did not wait for it any longer
  uint64_t refused = 0;  ///< calls of tell_host() that returned false; not part of `sent`

  /// Returns the number of messages without an outcome; 0 while more outcomes are known than messages.
  uint64_t under_way() const { return sent > handled + dropped ? sent - handled - dropped : 0; }
};

/// Counts what became of the timers that actors set by send_after() and send_every(). Each is done, was
/// cancelled, was lost, or is pending. Counts lag as those of MailAccounts do. What timers send counts as
/// mail.
struct TimerAccounts {
  uint64_t set = 0;
  uint64_t done = 0;       ///< of send_after(): have sent their message
  uint64_t cancelled = 0;  ///< by a handler, by Runtime::drain(), or because their actor stopped
  uint64_t lost = 0;       ///< were pending when the workers ended; by subtraction, as MailAccounts::lost

  /// Returns the number of timers that may still send.
  uint64_t pending() const {
    const uint64_t ended = done + cancelled + lost;
    return set > ended ? set - ended : 0;
  }
};

/// Counts what became of every message of a runtime. Exact once the runtime has terminated. While it runs,
/// the counts lag: workers report theirs with their credits.
///
/// The outcome of some messages is unknown after a device fault, or if a worker or thread did not finish
/// in time (Termination). These messages count as dead letters and as inferred(), which is 0 otherwise.
struct Books {
  AskAccounts asks;
  TellAccounts tells;
  MailAccounts mail;
  ToldAccounts told;
  TimerAccounts timers;
  /// Dead letters and expired asks that the bounded log had no room for.
  uint64_t dead_letters_dropped = 0;
  uint64_t corrupt_slots = 0;  ///< slots that held no message; 0 unless memory was overwritten

  /// Adds the counts of `other`.
  Books& operator+=(const Books& other) {
    asks.accepted += other.asks.accepted;
    asks.answered += other.asks.answered;
    asks.error_replies += other.asks.error_replies;
    asks.timed_out += other.asks.timed_out;
    asks.dead_letters += other.asks.dead_letters;
    asks.cancelled += other.asks.cancelled;
    asks.late_replies += other.asks.late_replies;
    asks.inferred += other.asks.inferred;
    tells.accepted += other.tells.accepted;
    tells.processed += other.tells.processed;
    tells.dead_letters += other.tells.dead_letters;
    tells.inferred += other.tells.inferred;
    mail.sent += other.mail.sent;
    mail.processed += other.mail.processed;
    mail.failed += other.mail.failed;
    mail.refused += other.mail.refused;
    mail.lost += other.mail.lost;
    told.sent += other.told.sent;
    told.handled += other.told.handled;
    told.dropped += other.told.dropped;
    told.refused += other.told.refused;
    timers.set += other.timers.set;
    timers.done += other.timers.done;
    timers.cancelled += other.timers.cancelled;
    timers.lost += other.timers.lost;
    dead_letters_dropped += other.dead_letters_dropped;
    corrupt_slots += other.corrupt_slots;
    return *this;
  }
  /// Returns the number of messages whose outcome is unknown.
  uint64_t inferred() const { return asks.inferred + tells.inferred; }
  /// Returns true if every message has its outcome, no slot was corrupt, and at most as many replies were
  /// late as asks were given up. One more late reply would be a duplicated reply.
  bool balanced() const {
    return asks.in_flight() == 0 && tells.in_flight() == 0 && mail.under_way() == 0 && corrupt_slots == 0 &&
           asks.late_replies <= asks.timed_out + asks.dead_letters + asks.cancelled;
  }
};

}  // namespace gyre
