// The books: what became of every message. Each accepted ask has exactly one outcome, each accepted tell is
// processed or a dead letter; what was refused is not accepted.
#pragma once

#include <cstdint>

namespace gyre {

/// What became of asks: each that was accepted has one of the five outcomes, or is in flight.
struct AskAccounts {
  uint64_t accepted = 0;
  uint64_t answered = 0;
  uint64_t error_replies = 0;
  uint64_t timed_out = 0;
  uint64_t dead_letters = 0;
  uint64_t cancelled = 0;
  uint64_t late_replies = 0;  ///< replies to asks that had another outcome: outside the sum
  uint64_t inferred = 0;      ///< of the dead letters: it is not known whether a worker handled them

  uint64_t in_flight() const {
    return accepted - answered - error_replies - timed_out - dead_letters - cancelled;
  }
};

/// What became of tells: each that was accepted was processed, is a dead letter, or is in flight.
struct TellAccounts {
  uint64_t accepted = 0;
  uint64_t processed = 0;
  uint64_t dead_letters = 0;
  uint64_t inferred = 0;  ///< of the dead letters: it is not known whether a worker handled them

  uint64_t in_flight() const { return accepted - processed - dead_letters; }
};

/// A value. Exact once the runtime has terminated; while it runs, workers report their counts with their
/// credits.
///
/// After a fault, or where a worker or a thread of the program was given up (Termination), some messages have
/// no outcome that anybody knows. They count as dead letters, and as `inferred`: 0 wherever all ended well.
struct Books {
  AskAccounts asks;
  TellAccounts tells;
  uint64_t dead_letters_dropped =
      0;                       ///< dead letters, and asks that expired, that the bounded log had no room for
  uint64_t corrupt_slots = 0;  ///< slots that held no message: 0 unless memory was overwritten

  uint64_t inferred() const { return asks.inferred + tells.inferred; }
  /// Every message has its outcome, no slot was corrupt, and no more replies came late than asks were given
  /// up: one more would be a reply that came twice.
  bool balanced() const {
    return asks.in_flight() == 0 && tells.in_flight() == 0 && corrupt_slots == 0 &&
           asks.late_replies <= asks.timed_out + asks.dead_letters + asks.cancelled;
  }
};

}  // namespace gyre
