// The state machine of a call slot.
#pragma once

#include <gyre/runtime/calls/call_id.hpp>
#include <gyre/runtime/system/assert.hpp>

#include <atomic>
#include <cstdint>

namespace gyre::detail {

/// Where a call is on its way to its one outcome.
enum class Phase : uint64_t {
  idle,      ///< not in flight: free, or acquired and not armed yet
  pending,   ///< armed; nobody has begun its outcome
  deciding,  ///< one thread has begun the outcome, and writes it to the slot
  decided    ///< the outcome is there
};

/// The value of a slot's word: a phase, marks, and the generation of the use that they belong to.
struct CallWord {
  static constexpr uint64_t phase_mask = 3;
  // Only a call whose outcome is being decided is overruled. So one comparison tells whether there is an
  // outcome: decided, or deciding and overruled.
  static constexpr uint64_t overruled = 4;  // the deadline passed; the outcome is timed_out
  static constexpr uint64_t abandoned = 8;  // the owner has released the call before its outcome
  static constexpr uint64_t watched = 16;   // to be delivered once decided
  static constexpr uint64_t asleep = 32;    // the owner sleeps on the word, or is about to
  static constexpr uint64_t marks = overruled | abandoned | watched | asleep;
  static constexpr uint64_t outcome_mask = phase_mask | overruled;
  static constexpr int generation_shift = 6;

  static constexpr CallWord of(uint64_t generation, Phase phase) {
    return {generation << generation_shift | uint64_t(phase)};
  }
  constexpr Phase phase() const { return Phase(bits & phase_mask); }
  constexpr uint64_t generation() const { return bits >> generation_shift; }
  constexpr bool has(uint64_t marks) const { return (bits & marks) != 0; }
  constexpr bool has_outcome() const { return (bits & outcome_mask) >= uint64_t(Phase::decided); }
  constexpr CallWord in(Phase phase) const { return {(bits & ~phase_mask) | uint64_t(phase)}; }

  uint64_t bits = 0;
};

/// Moves one call slot through its phases.
///
/// | operation     | from                | to                     | by | | ------------- |
/// ------------------- | ---------------------- | ------------------------------------------- | | next_use |
/// idle                | idle, next generation  | the sender that took the slot from the pool | | arm | idle
/// | pending                | that sender; its Future owns the call then  | | begin         | pending |
/// deciding               | one thread that has the call's outcome      | | decide        | deciding |
/// decided                | that thread                                 | | decide_own    | pending | decided
/// | the owner, with an answer that it found     | | overrule      | deciding            | deciding and
/// overruled | one thread that finds the deadline passed   | | abandon       | pending or deciding | the same
/// and abandoned | the owner                                   | | recycle       | idle or decided     | idle
/// | the owner; of an abandoned call, the thread that decides it |
///
/// The owner also sets and clears the marks `watched` and `asleep`. Invariants, asserted in debug builds: an
/// operation finds the call's own generation; only a call in `deciding` gets overruled; who decides a call
/// has begun it; nobody recycles a call in flight.
class CallState {
 public:
  /// Pairs with whatever set the phase: what was written to the slot before is seen.
  CallWord load() const { return {word_.load(std::memory_order_acquire)}; }
  /// For the owner of a done call, which has acquired the outcome, and for a thread that took the slot.
  CallWord load_relaxed() const { return {word_.load(std::memory_order_relaxed)}; }
  const std::atomic<uint64_t>& word() const { return word_; }

  /// Begins the slot's next use; returns its generation, never more bits than a CallId holds.
  uint64_t next_use() {
    const CallWord last = load_relaxed();
    GYRE_ASSERT(last.phase() == Phase::idle);
    const uint64_t generation = (last.generation() + 1) & call_generation_mask;
    word_.store(CallWord::of(generation, Phase::idle).bits, std::memory_order_relaxed);
    return generation;
  }
  void arm(CallId call) {
    GYRE_ASSERT(load_relaxed().bits == CallWord::of(generation_of(call), Phase::idle).bits);
    // Pairs with the load in begin(): that thread sees the call's deadline and worker.
    word_.store(CallWord::of(generation_of(call), Phase::pending).bits, std::memory_order_release);
  }
  /// False where another thread has begun, or the call is of another use.
  bool begin(CallId call) {
    CallWord seen = load();
    do {
      if (seen.generation() != generation_of(call) || seen.phase() != Phase::pending) return false;
    } while (!exchange(seen, seen.in(Phase::deciding)));
    return true;
  }
  /// Returns the word before, with the marks that the thread must act on.
  CallWord decide(CallId call) {
    // Deciding or decided make decided. Releases the outcome; acquires what came with marks: when_decided.
    const CallWord before{word_.fetch_or(uint64_t(Phase::decided), std::memory_order_acq_rel)};
    GYRE_ASSERT(before.phase() == Phase::deciding && before.generation() == generation_of(call));
    return before;
  }
  /// begin() and decide() in one step, where the owner has set no mark; false where another thread has begun.
  bool decide_own(CallId call) {
    CallWord expected = CallWord::of(generation_of(call), Phase::pending);
    // Pairs with the loads of threads that iterate over calls in flight; the owner itself needs no order.
    return word_.compare_exchange_strong(expected.bits, expected.in(Phase::decided).bits,
                                         std::memory_order_acq_rel, std::memory_order_acquire);
  }
  /// False where nobody has begun the outcome, or it is there. `before`: gets the marks that the thread must
  /// act on.
  bool overrule(CallId call, CallWord& before) {
    before = load();
    do {
      if (before.generation() != generation_of(call) || before.phase() != Phase::deciding ||
          before.has(CallWord::overruled)) {
        return false;
      }
    } while (!exchange(before, {before.bits | CallWord::overruled}));
    return true;
  }
  /// True where the call is decided: the caller recycles the slot. Else the thread that decides it will. The
  /// thread that decides an overruled call writes to the slot until it has decided.
  bool abandon(CallId call) {
    if (load().phase() == Phase::decided) return true;
    // Pairs with decide(): exactly one of the two threads sees the other's bit.
    const CallWord before{word_.fetch_or(CallWord::abandoned, std::memory_order_acq_rel)};
    GYRE_ASSERT(before.generation() == generation_of(call) && before.phase() != Phase::idle &&
                !before.has(CallWord::abandoned));
    return before.phase() == Phase::decided;
  }
  void recycle(CallId call) {
    GYRE_ASSERT(load_relaxed().generation() == generation_of(call) &&
                (load_relaxed().phase() == Phase::idle || load_relaxed().phase() == Phase::decided));
    // Pairs with load(): a late thread that sees the slot idle does not touch it. The pool orders reuse.
    word_.store(CallWord::of(generation_of(call), Phase::idle).bits, std::memory_order_release);
  }

  /// Sets a mark; returns the word before. Pairs with decide(): that thread sees the mark, or this one sees
  /// the outcome.
  CallWord mark(uint64_t mark) { return {word_.fetch_or(mark, std::memory_order_acq_rel)}; }
  /// Clears the owner's mark `asleep`.
  void clear_asleep() { word_.fetch_and(~CallWord::asleep, std::memory_order_acq_rel); }
  /// Clears the mark `asleep` of the call's owner for it; false where it is not set. `seen`: gets the word.
  bool take_asleep(CallId call, CallWord& seen) {
    seen = load();
    do {
      if (seen.generation() != generation_of(call) || !seen.has(CallWord::asleep)) return false;
    } while (!exchange(seen, {seen.bits & ~CallWord::asleep}));
    return true;
  }

 private:
  // Releases what the thread wrote before, and acquires what the last change released.
  bool exchange(CallWord& seen, CallWord next) {
    return word_.compare_exchange_weak(seen.bits, next.bits, std::memory_order_acq_rel,
                                       std::memory_order_acquire);
  }

  std::atomic<uint64_t> word_{0};
};

}  // namespace gyre::detail
