// The calls in flight: a fixed table. An ask takes a slot before it is sent; the thread that takes the reply
// completes it; the caller's Future or Reply gives it back.
#pragma once

#include <gyre/runtime/async/completion_list.hpp>
#include <gyre/runtime/calls/pool.hpp>
#include <gyre/runtime/calls/slots.hpp>

#include <optional>
#include <span>
#include <thread>

namespace gyre {

/// Thread-safe and lock-free throughout; nothing allocates after construction. CallState says which operation
/// may follow which.
class CallTable {
 public:
  static constexpr uint32_t max_calls = 1u << detail::call_index_bits;
  /// Added to the timeout that arm() is given: the message has an expiry of its own, whose outcome is
  /// `expired`. No timeout is so long.
  static constexpr uint64_t receipt_bit = uint64_t(1) << 63;

  /// @param calls          how many may be in flight or unread, at most max_calls
  /// @param body_capacity  largest reply body, bytes, a multiple of 16, but for those in blocks of `arena`
  CallTable(uint32_t calls, uint32_t body_capacity, Arena& arena)
      : slots_(calls, body_capacity), pool_(calls), arena_(arena) {}

  uint32_t calls() const { return slots_.count(); }
  /// Returns the number of the call's slot, from 0, below calls().
  static uint32_t index_of(CallId call) { return detail::index_of(call); }

  /// Takes a free slot; empty if there is none. The call is not in flight yet: arm() or release() it. Up to
  /// half of the slots of a table of 128 and more may lie with threads that used some before.
  std::optional<CallId> acquire() {
    uint32_t index;
    if (!pool_.take(index)) return std::nullopt;
    return detail::call_id(index, slots_[index].state.next_use());
  }
  /// Accepts the call: from now on it has exactly one outcome.
  /// @param timeout_us  for the text of `timed_out`, with receipt_bit where a tell wants a receipt
  void arm(CallId call, uint32_t worker, int64_t deadline_ns, uint64_t timeout_us) {
    detail::CallSlot& s = slot(call);
    s.answer.clear();
    s.worker.store(worker, std::memory_order_relaxed);
    s.timeout_us.store(timeout_us, std::memory_order_relaxed);
    s.deadline_ns.store(deadline_ns, std::memory_order_relaxed);
    s.state.arm(call);
  }
  /// Changes the deadline of an armed call that its owner has not given back.
  void set_deadline(CallId call, int64_t deadline_ns) {
    slot(call).deadline_ns.store(deadline_ns, std::memory_order_relaxed);
  }

  /// Takes the right to decide the call's outcome: true for one caller only, false if it is decided, late, or
  /// not a call of this table. The one who got true calls complete_… at once.
  bool begin_outcome(CallId call) { return index_of(call) < calls() && slot(call).state.begin(call); }
  /// The call's deadline is past, and another thread has begun its outcome and not completed it: the outcome
  /// is `timed_out`, and what that thread completes is late. True for one caller only; false where the
  /// outcome is there, or nobody has begun it. `count()` is called before anybody is woken for the outcome.
  template <class Count>
  bool overrule(CallId call, Count&& count) {
    detail::CallWord before;
    if (!slot(call).state.overrule(call, before)) return false;
    count();
    announce(slot(call), before);
    return true;
  }
  /// Where an answer is unpacked to, envelope and body, 16-aligned: by who began the outcome, or, before
  /// complete_own, by the call's owner. Up to the next whole 48 bytes may be written.
  std::byte* place(CallId call) { return slot(call).answer.place(); }
  /// The answer lies in place(). This and the other complete_… but complete_own: false where the outcome was
  /// overruled.
  bool complete_answered(CallId call, uint32_t body_bytes) {
    slot(call).answer.keep(body_bytes);
    return decide(call);
  }
  /// begin_outcome and complete_answered in one step, by the call's owner alone, who waits for it: nobody
  /// else can give the slot back meanwhile.
  bool complete_own(CallId call, uint32_t body_bytes) {
    slot(call).answer.keep(body_bytes);
    return slot(call).state.decide_own(call);
  }
  /// The answer is the first `body_bytes` of the block's reply; the block is freed with the call.
  bool complete_in_block(CallId call, const ArenaBlock& block, uint64_t body_bytes) {
    slot(call).answer.keep_in_block(static_cast<const capnp::word*>(arena_.at(block.reply_offset)), block.id,
                                    body_bytes);
    return decide(call);
  }
  bool complete_failed(CallId call, const Failure& failure) {
    slot(call).answer.keep_failure(failure);
    return decide(call);
  }

  /// Waits until every outcome that has begun is there: as long as copying a reply takes. False where
  /// `give_up()` says so before that.
  template <class GiveUp>
  bool wait_for_begun_outcomes(GiveUp&& give_up) const {
    for (uint32_t i = 0; i < calls(); ++i) {
      while (slots_[i].state.load().phase() == detail::Phase::deciding) {
        if (give_up()) return false;
        std::this_thread::yield();
      }
    }
    return true;
  }
  /// True once the outcome is there; acquires it.
  bool done(CallId call) const { return slot(call).state.load().has_outcome(); }
  int64_t deadline_ns(CallId call) const { return slot(call).deadline_ns.load(std::memory_order_relaxed); }
  uint64_t timeout_us(CallId call) const {
    return slot(call).timeout_us.load(std::memory_order_relaxed) & ~receipt_bit;
  }
  /// Returns true if the call is a tell's receipt.
  bool is_receipt(CallId call) const {
    return (slot(call).timeout_us.load(std::memory_order_relaxed) & receipt_bit) != 0;
  }
  /// Returns the worker that an armed call was sent to.
  uint32_t worker(CallId call) const { return slot(call).worker.load(std::memory_order_relaxed); }
  /// Whether the outcome of a done() call is a failure; else there is a body.
  bool failed(CallId call) const { return overruled(call) || slot(call).answer.failed(); }
  /// Returns the failure of a done() call; Status::ok where it did not fail.
  Failure failure(CallId call) const;
  /// Reads the answer of a done() call without failure, as a `Response`, an official class; stays valid until
  /// release(). Throws kj::Exception where it is none. One thread at a time.
  template <class Response>
  typename Response::Reader read(CallId call) {
    return slot(call).answer.template read<Response>();
  }
  std::span<const std::byte> body_bytes(CallId call) const { return slot(call).answer.body(); }

  /// Adds `deliverable` to completed() once the call is done; now if it is. Once for a call that its owner
  /// has not given back, and whose owner waits no more.
  void watch(CallId call, detail::Deliverable& deliverable);
  /// What was watched, and is done.
  detail::CompletionList& completed() { return completed_; }

  /// Sets the mark that the owner is about to sleep for the call. False where it is done() already. The owner
  /// checks once more for its reply before it sleeps.
  bool prepare_sleep(CallId call) { return !slot(call).state.mark(detail::CallWord::asleep).has_outcome(); }
  /// Sleeps until wake() takes the mark away or the call is done(), at `until_ns` the latest; may return
  /// early. By the owner, after prepare_sleep().
  void sleep(CallId call, int64_t until_ns);
  /// Takes the mark away. By the owner, after prepare_sleep(), whatever that returned.
  void end_sleep(CallId call) { slot(call).state.clear_asleep(); }
  /// The call's reply lies in the ring: ends its owner's sleep. Any `call`, of any generation. True where it
  /// is watched: somebody else may have to take it.
  bool wake(CallId call);

  /// Gives a never armed call back, or one whose outcome was completed, not overruled.
  void release(CallId call) { recycle(call); }
  /// The caller no longer wants the outcome: the slot goes back once it is decided.
  void abandon(CallId call) {
    if (slot(call).state.abandon(call)) recycle(call);
  }

  /// Calls that somebody holds: armed, and neither released nor abandoned. While nobody acquires any.
  uint32_t held() const;

  /// Calls `expire(call)` for each call in flight whose deadline lies before `now_ns`.
  template <class Expire>
  void for_each_overdue(int64_t now_ns, Expire&& expire) {
    for_each_in_flight([&](CallId call) {
      if (deadline_ns(call) < now_ns) expire(call);
    });
  }
  /// Calls `visit(call)` for each call that had no outcome when it was read; it may have begun.
  template <class Visit>
  void for_each_in_flight(Visit&& visit) {
    for (uint32_t i = 0; i < calls(); ++i) {
      const detail::CallWord word = slots_[i].state.load();
      if (word.phase() != detail::Phase::idle && !word.has_outcome())
        visit(detail::call_id(i, word.generation()));
    }
  }

 private:
  detail::CallSlot& slot(CallId call) { return slots_[index_of(call)]; }
  const detail::CallSlot& slot(CallId call) const { return slots_[index_of(call)]; }
  // The thread that completes an overruled call may be writing the rest of the slot.
  bool overruled(CallId call) const {
    return slot(call).state.load_relaxed().has(detail::CallWord::overruled);
  }
  bool decide(CallId call) {
    const detail::CallWord before = slot(call).state.decide(call);
    if (!before.has(detail::CallWord::marks)) [[likely]]
      return true;
    return act_on_marks(call, before);
  }
  bool act_on_marks(CallId call, detail::CallWord before);
  void announce(detail::CallSlot& slot, detail::CallWord before);
  void recycle(CallId call) {
    detail::CallSlot& s = slot(call);
    if (s.answer.in_block()) [[unlikely]]
      s.answer.free_block(arena_);
    s.state.recycle(call);
    pool_.give(index_of(call));
  }

  detail::Slots slots_;
  detail::SlotPool pool_;
  Arena& arena_;
  detail::CompletionList completed_;
};

}  // namespace gyre
