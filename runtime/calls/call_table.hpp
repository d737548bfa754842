// The calls in flight: a fixed table, its free slots in a Boost.Lockfree pool, a few of them kept by each
// thread. An ask takes a slot before it is sent; whoever drains the reply completes it; the caller's Future
// or Reply gives it back.
#pragma once

#include <capnp/any.h>
#include <capnp/message.h>
#include <gyre/messages/envelope.hpp>
#include <gyre/runtime/async/completion_list.hpp>
#include <gyre/runtime/calls/call_id.hpp>
#include <gyre/runtime/calls/thread_number.hpp>
#include <gyre/runtime/core/packing.hpp>
#include <gyre/runtime/errors.hpp>
#include <gyre/runtime/memory/arena.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/lockfree/stack.hpp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace gyre {

/// Reads one Cap'n Proto segment in place. Refers to the bytes, owns nothing.
class SegmentReader final : public capnp::MessageReader {
 public:
  SegmentReader(const capnp::word* words, size_t count)
      : capnp::MessageReader(unlimited_reading()), words_(words, count) {}
  kj::ArrayPtr<const capnp::word> getSegment(uint id) override { return id == 0 ? words_ : nullptr; }

 private:
  // A reply may be read as often as its holder likes: its own worker made it, and nesting stays limited.
  static capnp::ReaderOptions unlimited_reading() {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = ~uint64_t(0);
    return options;
  }
  kj::ArrayPtr<const capnp::word> words_;
};

/// Thread-safe and lock-free throughout; nothing allocates after construction.
class CallTable {
 public:
  static constexpr uint32_t max_calls = 1u << 20;

  /// `calls`: how many may be in flight or unread, at most max_calls. `body_capacity`: largest reply body,
  /// bytes, a multiple of 16, but for those in blocks of `arena`.
  CallTable(uint32_t calls, uint32_t body_capacity, Arena& arena);

  uint32_t calls() const { return calls_; }
  /// The call's slot, from 0, below calls().
  static uint32_t index_of(CallId call) { return uint32_t(call & (max_calls - 1)); }

  /// Takes a free slot; empty if there is none. The call is not in flight yet: arm() or release() it. Up to
  /// half of the slots of a table of 128 and more may lie with threads that used some before.
  std::optional<CallId> acquire();
  /// The call is accepted: from now on it has exactly one outcome.
  void arm(CallId call, uint32_t worker, int64_t deadline_ns, uint64_t timeout_us);
  /// Changes the deadline of an armed call that its owner has not given back.
  void set_deadline(CallId call, int64_t deadline_ns) {
    slot(call).deadline_ns.store(deadline_ns, std::memory_order_relaxed);
  }

  /// Takes the right to decide the call's outcome: true for one caller only, false if it is decided, late, or
  /// not a call of this table. The one who got true calls complete_… at once.
  bool begin_outcome(CallId call);
  /// The call's deadline is past, and another thread has begun its outcome and not completed it: the outcome
  /// is `timed_out`, and what that thread completes is late. True for one caller only; false where the
  /// outcome is there, or nobody has begun it. `count()` is called before anybody sees the outcome.
  template <class Count>
  bool overrule(CallId call, Count&& count);
  /// Where an answer is unpacked to, envelope and body, 16-aligned: by who began the outcome, or, before
  /// complete_own, by the call's owner. Up to the next whole 48 bytes may be written.
  std::byte* place(CallId call) { return slot(call).place; }
  /// The answer lies in place(). This and the other complete_… but complete_own: false where the outcome was
  /// overruled.
  bool complete_answered(CallId call, uint32_t body_bytes);
  /// begin_outcome and complete_answered in one step, by the call's owner alone, who waits for it: nobody
  /// else can give the slot back meanwhile.
  bool complete_own(CallId call, uint32_t body_bytes);
  /// The answer is the first `body_bytes` of the block's reply; the block is freed with the call.
  bool complete_in_block(CallId call, const ArenaBlock& block, uint64_t body_bytes);
  bool complete_failed(CallId call, const Failure& failure);

  /// Waits until every outcome that has begun is there: as long as copying a reply takes. False where
  /// `give_up()` says so before that.
  template <class GiveUp>
  bool settle(GiveUp&& give_up) const {
    for (const SlotPage& page : pages_) {
      for (const CallSlot& s : page.slots) {
        while ((s.word.load(std::memory_order_acquire) & phase_mask) == deciding) {
          if (give_up()) return false;
          std::this_thread::yield();
        }
      }
    }
    return true;
  }
  /// True once the outcome is there; acquires it.
  bool done(CallId call) const;
  int64_t deadline_ns(CallId call) const { return slot(call).deadline_ns.load(std::memory_order_relaxed); }
  uint64_t timeout_us(CallId call) const { return slot(call).timeout_us.load(std::memory_order_relaxed); }
  /// The worker that an armed call was sent to.
  uint32_t worker(CallId call) const { return slot(call).worker.load(std::memory_order_relaxed); }
  /// Whether the outcome of a done() call is a failure; else there is a body.
  bool failed(CallId call) const {
    const CallSlot& s = slot(call);
    // What completes an overruled call may be writing the rest.
    return (s.word.load(std::memory_order_relaxed) & overruled) != 0 || s.failed;
  }
  /// The failure of a done() call; Status::ok where it did not fail.
  Failure failure(CallId call) const;
  /// The answer of a done() call without failure, as a `Response`, an official class; stays valid until
  /// release(). Throws kj::Exception where it is none. One thread at a time.
  template <class Response>
  typename Response::Reader read(CallId call) {
    if constexpr (capnp::kind<Response>() == capnp::Kind::STRUCT) {
      if (const auto words = plain_root(call); words != nullptr) [[likely]]
        return typename Response::Reader(capnp::_::StructReader(words));
    }
    return root(call).template getAs<Response>();
  }
  std::span<const std::byte> body_bytes(CallId call) const;

  /// Adds `deliverable` to completed() once the call is done; now if it is. Once for a call that its owner
  /// has not given back, and whose owner waits no more.
  void watch(CallId call, detail::Deliverable& deliverable);
  /// What was watched, and is done.
  detail::CompletionList& completed() { return completed_; }

  /// Sets the mark that the owner is about to sleep for the call. False where it is done() already. The owner
  /// checks once more for its reply before it sleeps.
  bool prepare_sleep(CallId call);
  /// Sleeps until wake() takes the mark away or the call is done(), at `until_ns` the latest; may return
  /// early. By the owner, after prepare_sleep().
  void sleep(CallId call, int64_t until_ns);
  /// Takes the mark away. By the owner, after prepare_sleep(), whatever that returned.
  void end_sleep(CallId call);
  /// The call's reply lies in the ring: ends its owner's sleep. Any `call`, of any generation. True where it
  /// is watched: somebody else may have to take it.
  bool wake(CallId call);

  /// Gives a never armed call back, or one whose outcome was completed, not overruled.
  void release(CallId call);
  /// The caller no longer wants the outcome: the slot goes back once it is decided.
  void abandon(CallId call);

  /// Calls that somebody holds: armed, and neither released nor abandoned. While nobody acquires any.
  uint32_t held() const;

  /// Calls `expire(call)` for each call in flight whose deadline lies before `now_ns`.
  template <class Expire>
  void for_each_overdue(int64_t now_ns, Expire&& expire) {
    for_each_in_flight([&](CallId call) {
      if (slot(call).deadline_ns.load(std::memory_order_relaxed) < now_ns) expire(call);
    });
  }
  /// Calls `visit(call)` for each call that had no outcome when it was read; it may have begun.
  template <class Visit>
  void for_each_in_flight(Visit&& visit) {
    for (uint32_t i = 0; i < calls_; ++i) {
      const uint64_t word = slot_at(i).word.load(std::memory_order_acquire);
      const uint64_t phase = word & outcome_mask;
      if (phase == pending || phase == deciding) visit(call_of(i, word >> generation_shift));
    }
  }

 private:
  // CallSlot::word: generation, bits, phase. Only a call whose outcome is being decided is overruled; that it
  // has an outcome is one comparison then.
  static constexpr uint64_t idle = 0, pending = 1, deciding = 2, decided = 3, phase_mask = 3, overruled = 4,
                            outcome_mask = 7, abandoned = 8, watched = 16, asleep = 32;
  static constexpr int generation_shift = 6;
  static constexpr bool has_outcome(uint64_t word) { return (word & outcome_mask) >= decided; }
  static constexpr int index_bits = 20;

  static constexpr size_t page_bytes = 4096;

  // What a message's way writes and reads, but for structs with pointers and what goes wrong.
  struct MessageWay {
    std::atomic<uint64_t> word{0};
    std::atomic<int64_t> deadline_ns{0};
    std::atomic<uint64_t> timeout_us{0};
    std::atomic<uint32_t> worker{0};
    uint32_t dirty_bytes = 0;    // of the body's place: the rest is zero
    std::byte* place = nullptr;  // the slot's own, for an envelope and a body
    uint64_t body_bytes = 0;
    bool failed = false;    // with CallSlot::failure
    bool in_block = false;  // the body is in CallSlot::block, not in the place
  };
  static_assert(sizeof(MessageWay) <= 64);  // one line

  struct alignas(128) CallSlot : MessageWay {
    const capnp::word* in_arena = nullptr;
    BlockId block = 0;
    Failure failure{};
    detail::Deliverable* when_decided = nullptr;  // of a watched call
    capnp::AnyPointer::Reader root;               // the reader's
    bool readable = false;                        // reader and root are there, of this answer
    // Of the whole place: root() sees to it that what a reply does not fill of it is zero. Or of a reply's
    // body in a block.
    std::optional<SegmentReader> reader;

    const capnp::word* answer() const {
      return in_block ? in_arena : reinterpret_cast<const capnp::word*>(place + sizeof(Envelope));
    }
  };

  // A page of slots, that one thread takes together: processors fetch lines of a page ahead, and take them
  // from whom they belong to.
  struct alignas(page_bytes) SlotPage {
    static constexpr uint32_t count = page_bytes / sizeof(CallSlot);
    std::array<CallSlot, count> slots;
  };
  static_assert(page_bytes % sizeof(CallSlot) == 0 && sizeof(SlotPage) == page_bytes);

  // Free slots that a thread keeps; a thread's number is its alone.
  struct alignas(128) Kept {
    static constexpr uint32_t most = 128;
    uint32_t count = 0;
    uint32_t limit = 0;  // of count, in whole pages: what this thread took of may_be_kept_
    std::array<uint32_t, most> indices;
  };
  static_assert(Kept::most % SlotPage::count == 0);

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  static CallId call_of(uint32_t index, uint64_t generation) { return generation << index_bits | index; }
  static uint64_t generation_of(CallId call) { return call >> index_bits; }
  // A page's places lie in pages of their own, as its slots do.
  std::byte* place_at(uint32_t index) const {
    return first_place_ + size_t(index / SlotPage::count) * page_of_places_ +
           index % SlotPage::count * place_stride_;
  }
  CallSlot& slot_at(uint32_t index) { return slots_[index]; }
  CallSlot& slot(CallId call) { return slot_at(index_of(call)); }
  const CallSlot& slot(CallId call) const { return const_cast<CallTable*>(this)->slot(call); }
  const capnp::AnyPointer::Reader& root(CallId call);
  void clear_behind_answer(CallSlot& slot);
  kj::ArrayPtr<const capnp::word> plain_root(CallId call) const;
  void keep_answer(CallSlot& slot, uint32_t body_bytes);
  bool decide(CallId call);
  bool decide_noted(CallId call, uint64_t before);
  void announce(CallSlot& slot, uint64_t before);
  void recycle(CallId call);
  bool take_free(uint32_t& index);
  void give_free(uint32_t index);
  bool take_shared(uint32_t& index);
  void give_shared(uint32_t index) { free_.bounded_push(index); }
  void free_block(CallSlot& slot);
  bool may_keep_more(Kept& kept);
  bool take_page(Kept& kept);

  const uint32_t calls_;
  std::vector<SlotPage> pages_;
  CallSlot* const slots_;  // all of pages_: they lie without gaps
  const uint32_t place_bytes_;
  const uint32_t place_stride_;
  const uint32_t page_of_places_;  // bytes: whole pages
  std::unique_ptr<std::byte[], Free> places_;
  std::byte* first_place_ = nullptr;
  Arena& arena_;
  const uint32_t kept_at_most_;        // by one thread: whole pages
  std::atomic<uint32_t> may_be_kept_;  // slots, by threads that do not keep so many yet
  std::array<Kept, detail::thread_numbers> kept_;
  detail::CompletionList completed_;
  // Reserved afterwards: a constructor that throws would leak.
  boost::lockfree::stack<uint32_t> free_{0};        // slots
  boost::lockfree::stack<uint32_t> free_pages_{0};  // whole pages of them
};

// What each ask does, inlined where it is done.

inline bool CallTable::take_free(uint32_t& index) {
  const uint32_t thread = detail::thread_number();
  if (thread < detail::thread_numbers) {
    Kept& kept = kept_[thread];
    if (kept.count != 0 || take_page(kept)) {
      index = kept.indices[--kept.count];
      return true;
    }
  }
  return take_shared(index);
}

inline void CallTable::give_free(uint32_t index) {
  const uint32_t thread = detail::thread_number();
  if (thread < detail::thread_numbers) {
    Kept& kept = kept_[thread];
    // Who takes none has no use for them.
    if (kept.count < kept.limit || (kept.limit != 0 && may_keep_more(kept))) {
      kept.indices[kept.count++] = index;
      return;
    }
  }
  give_shared(index);
}

inline std::optional<CallId> CallTable::acquire() {
  uint32_t index;
  if (!take_free(index)) return std::nullopt;
  CallSlot& slot = slot_at(index);
  const uint64_t generation = (slot.word.load(std::memory_order_relaxed) >> generation_shift) + 1;
  // The generation keeps within what a correlation holds; 2^44 uses of one slot take years.
  const uint64_t kept = generation & ((uint64_t(1) << (64 - index_bits)) - 1);
  slot.word.store(kept << generation_shift | idle, std::memory_order_relaxed);
  return call_of(index, kept);
}

inline void CallTable::arm(CallId call, uint32_t worker, int64_t deadline_ns, uint64_t timeout_us) {
  CallSlot& s = slot(call);
  s.failed = false;
  s.body_bytes = 0;
  s.worker.store(worker, std::memory_order_relaxed);
  s.timeout_us.store(timeout_us, std::memory_order_relaxed);
  s.deadline_ns.store(deadline_ns, std::memory_order_relaxed);
  s.word.store(generation_of(call) << generation_shift | pending, std::memory_order_release);
}

inline void CallTable::recycle(CallId call) {
  CallSlot& s = slot(call);
  if (s.in_block) [[unlikely]]
    free_block(s);
  s.word.store(generation_of(call) << generation_shift | idle, std::memory_order_release);
  give_free(index_of(call));
}

inline void CallTable::release(CallId call) { recycle(call); }

inline void CallTable::abandon(CallId call) {
  // Who decides a call that was overruled writes to its slot until then.
  if ((slot(call).word.load(std::memory_order_acquire) & phase_mask) != decided) {
    const uint64_t before = slot(call).word.fetch_or(abandoned, std::memory_order_acq_rel);
    if ((before & phase_mask) != decided) return;
  }
  recycle(call);
}

inline bool CallTable::begin_outcome(CallId call) {
  if (index_of(call) >= calls_) return false;
  std::atomic<uint64_t>& word = slot(call).word;
  uint64_t seen = word.load(std::memory_order_acquire);
  do {
    if (seen >> generation_shift != generation_of(call) || (seen & phase_mask) != pending) return false;
  } while (!word.compare_exchange_weak(seen, (seen & ~phase_mask) | deciding, std::memory_order_acq_rel,
                                       std::memory_order_acquire));
  return true;
}

inline void CallTable::keep_answer(CallSlot& s, uint32_t body_bytes) {
  const uint32_t unpacked = groups_for(body_bytes) * group_bytes - uint32_t(sizeof(Envelope));
  s.dirty_bytes = std::max(s.dirty_bytes, unpacked);
  s.body_bytes = body_bytes;
}

inline bool CallTable::decide(CallId call) {
  const uint64_t before =
      slot(call).word.fetch_or(decided, std::memory_order_acq_rel);  // deciding | decided = decided
  if ((before & (overruled | abandoned | watched | asleep)) == 0) [[likely]]
    return true;
  return decide_noted(call, before);
}

inline bool CallTable::complete_answered(CallId call, uint32_t body_bytes) {
  keep_answer(slot(call), body_bytes);
  return decide(call);
}

template <class Count>
bool CallTable::overrule(CallId call, Count&& count) {
  CallSlot& s = slot(call);
  uint64_t seen = s.word.load(std::memory_order_acquire);
  do {
    if (seen >> generation_shift != generation_of(call) || (seen & outcome_mask) != deciding) return false;
  } while (!s.word.compare_exchange_weak(seen, seen | overruled, std::memory_order_acq_rel,
                                         std::memory_order_acquire));
  count();
  announce(s, seen);
  return true;
}

inline bool CallTable::complete_own(CallId call, uint32_t body_bytes) {
  CallSlot& s = slot(call);
  keep_answer(s, body_bytes);
  uint64_t expected = generation_of(call) << generation_shift | pending;
  return s.word.compare_exchange_strong(expected, expected | decided, std::memory_order_acq_rel,
                                        std::memory_order_acquire);
}

// The root's words, where it is a struct without pointers right behind the pointer to it: nothing in it leads
// elsewhere. Else null. The encoding specification, capnproto.org/encoding.html: a struct's pointer has its
// offset and kind in the lower half, the words of its data and its number of pointers in the upper one.
inline kj::ArrayPtr<const capnp::word> CallTable::plain_root(CallId call) const {
  const CallSlot& s = slot(call);
  uint64_t pointer = ~uint64_t(0);
  if (s.body_bytes >= sizeof pointer) std::memcpy(&pointer, s.answer(), sizeof pointer);
  const uint64_t data_words = pointer >> 32;  // where there are no pointers
  if (uint32_t(pointer) != 0 || data_words > 0xffff || (data_words + 1) * sizeof(capnp::word) > s.body_bytes)
    return nullptr;
  return {s.answer() + 1, size_t(data_words)};
}

inline bool CallTable::done(CallId call) const {
  return has_outcome(slot(call).word.load(std::memory_order_acquire));
}

}  // namespace gyre
