// The calls that a worker waits for: asks of its actors, and asks that one of them is to answer later.
#pragma once

#include <gyre/device/worker/mail_memory.hpp>

namespace gyre {

/// One open call. 80 bytes; all 0: never opened.
struct OpenCall {
  enum class Kind : uint8_t {
    ask,       ///< of an actor of this worker: `content` is the state for its on_reply()
    promise,   ///< an actor of this worker is to answer it: `content` is a KeptAsk
    forwarded  ///< of the host, passed on to another actor: `content` is a KeptAsk
  };
  enum : uint32_t { content_words = 12 };

  uint64_t key;          ///< of the actor that asked or promised
  uint64_t state_type;   ///< of an ask: detail::type_hash() of its state
  uint32_t generation;   ///< of the ids that are good for it
  uint32_t incarnation;  ///< of that actor
  uint16_t actor_type;   ///< of that actor
  Kind kind;
  uint8_t asked_by_actor;  ///< 1: a promise to another actor, not to the host
  uint16_t is_open;        ///< 1: the handler that wrote it has ended well, and it is not closed yet
  uint16_t failure;        ///< of a promise: the Status that it is to end with; 0: none
  alignas(16) uint32_t content[content_words];
};
static_assert(sizeof(OpenCall) == MailLayout::open_call_bytes, "MailLayout reserves room for open calls");

/// An ask that is answered later, once its request is gone.
struct KeptAsk {
  Envelope envelope;        ///< of the host's with bodies in the arena the key is OutOfLine::block
  uint64_t reply_offset;    ///< of such an ask: OutOfLine's
  uint32_t reply_capacity;  ///< as reply_offset; 0: the reply must fit a slot
  uint32_t reserved;
};
static_assert(sizeof(KeptAsk) == sizeof(OpenCall::content));

/// The open calls of one worker, in a table of its own. A handler writes calls that do not count until
/// open(): one that fails leaves none. A plain value; refers to the table.
class OpenCalls {
 public:
  enum : uint32_t { capacity = MailLayout::open_calls };

  /// An id names one call: worker (16 bits), place in the table (16), generation (32). A place gives it again
  /// after 2^32 calls.
  GYRE_DEVICE static uint32_t worker_of(uint64_t id) { return uint32_t(id >> 48); }

  OpenCalls() = default;
  /// @param memory  of the worker: MailLayout::open_call_table_bytes(), zeroed
  /// @param count   of open calls: a word of the group's own memory, zeroed
  GYRE_DEVICE OpenCalls(uint8_t* memory, uint32_t* count, uint32_t worker)
      : calls_(reinterpret_cast<OpenCall*>(memory)),
        free_(reinterpret_cast<uint16_t*>(memory + capacity * sizeof(OpenCall))),
        count_(count),
        worker_(worker) {}
  /// Before the first message. Collective over PollGroup.
  GYRE_DEVICE void start() {
    GYRE_ROLLED
    for (uint32_t i = PollGroup::rank(); i < capacity; i += PollGroup::size()) free_[i] = uint16_t(i);
    PollGroup::sync();
  }

  GYRE_DEVICE uint32_t count() const { return *count_; }
  /// Whether the n-th call from now on has room. Any thread.
  GYRE_DEVICE bool has_room(uint32_t n) const { return *count_ + n < capacity; }
  /// The n-th call that would be opened next, for a handler to write. There must be room for it.
  GYRE_DEVICE OpenCall& next(uint32_t n) const { return calls_[free_[*count_ + n]]; }
  /// Its id.
  GYRE_DEVICE uint64_t next_id(uint32_t n) const {
    const uint32_t place = free_[*count_ + n];
    // Not 0: no id is.
    return uint64_t(worker_) << 48 | uint64_t(place) << 32 | (calls_[place].generation + 1);
  }

  /// Opens the next `n` calls, which a handler wrote. One thread, and then a barrier.
  /// @param incarnation  of the handler's actor
  GYRE_DEVICE void open(uint32_t n, uint32_t incarnation) const {
    GYRE_ROLLED
    for (uint32_t i = 0; i < n; ++i) {
      next(i).is_open = 1;
      next(i).failure = 0;
      next(i).incarnation = incarnation;
    }
    *count_ += n;
  }
  /// Makes the ids of the next `n` calls, those that there is room for, good for nothing: the handler that
  /// wrote them has failed. One thread.
  GYRE_DEVICE void discard(uint32_t n) const {
    GYRE_ROLLED
    for (uint32_t i = 0; i < n && has_room(i); ++i) advance(next(i));
  }
  /// Returns the open call with that id; null if there is none any more. Any thread.
  GYRE_DEVICE OpenCall* find(uint64_t id) const {
    const uint32_t place = uint32_t(id >> 32) & 0xffff;
    if (worker_of(id) != worker_ || place >= capacity) return nullptr;
    OpenCall& call = calls_[place];
    return call.is_open != 0 && call.generation + 1 == uint32_t(id) ? &call : nullptr;
  }
  /// Closes an open call, which every thread has read. One thread, and then a barrier.
  GYRE_DEVICE void close(OpenCall& call) const {
    call.is_open = 0;
    advance(call);
    free_[--*count_] = uint16_t(&call - calls_);
  }
  /// The call in a place of the table, below `capacity`; open or not.
  GYRE_DEVICE OpenCall& at(uint32_t place) const { return calls_[place]; }

 private:
  GYRE_DEVICE static void advance(OpenCall& call) {
    if (++call.generation == 0xffffffff) call.generation = 0;
  }

  OpenCall* calls_ = nullptr;
  uint16_t* free_ = nullptr;  // places; of the open calls as many as count() come first, without meaning
  uint32_t* count_ = nullptr;
  uint32_t worker_ = 0;
};

}  // namespace gyre
