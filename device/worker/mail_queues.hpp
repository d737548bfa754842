// Where messages between actors wait: the outbox of a worker, and its queue of messages to handle, which
// grows by chunks that all workers share.
#pragma once

#include <gyre/bridge/chunk_pool.hpp>
#include <gyre/device/compiler_steering.hpp>
#include <gyre/device/platform.hpp>
#include <gyre/device/worker/mail_memory.hpp>
#include <gyre/device/worker/staging.hpp>

namespace gyre {

/// Copies a message to `to`; both are 16-aligned. Collective over PollGroup.
GYRE_DEVICE inline void copy_message(uint32_t* to, const uint32_t* from, uint32_t body_bytes) {
  const uint32_t words = uint32_t(sizeof(Envelope) + body_bytes) / sizeof(uint32_t);
  GYRE_ROLLED
  for (uint32_t i = PollGroup::rank(); i < words; i += PollGroup::size()) to[i] = from[i];
  PollGroup::sync();
}

/// Messages that one worker is to handle, first in, first out: those to its own actors, and those that it
/// moved out of its mailbox. Has a ring of its own; what finds that full lies in chunks of the pool, until
/// they are empty again. Collective over PollGroup; each thread has an object of its own with equal members.
class MailQueue {
 public:
  using Pool = ChunkPool<WorkersMemory>;
  enum : uint32_t { messages_a_chunk = MailLayout::messages_a_chunk, capacity = messages_a_chunk };

  /// @param ring    of this worker, for `capacity` messages
  /// @param chunks  the pool's
  /// @param next    a word for each chunk: the one behind it in a queue
  /// @param stride  words from one message to the next
  GYRE_DEVICE MailQueue(uint8_t* ring, uint8_t* chunks, uint32_t* next, const Pool& pool, uint32_t stride)
      : ring_(reinterpret_cast<uint32_t*>(ring)),
        chunks_(reinterpret_cast<uint32_t*>(chunks)),
        next_(next),
        pool_(pool),
        stride_(stride) {}

  GYRE_DEVICE bool empty() const { return in_ring_ == 0 && last_ == Pool::no_chunk; }
  /// Messages that its ring has room for.
  GYRE_DEVICE uint32_t room() const { return last_ == Pool::no_chunk ? capacity - in_ring_ : 0; }
  /// Whether half of its ring or more is in use.
  GYRE_DEVICE bool is_long() const { return in_ring_ >= capacity / 2 || last_ != Pool::no_chunk; }
  /// The oldest message. Not if empty().
  GYRE_DEVICE const uint32_t* front() const {
    return in_ring_ != 0 ? ring_ + ring_begin_ * stride_ : of_chunk(first_, begin_);
  }
  /// Appends a copy.
  /// @returns false if there is no memory for it
  GYRE_DEVICE bool push(const uint32_t* message, uint32_t body_bytes) {
    if (last_ == Pool::no_chunk && in_ring_ < capacity) {
      copy_message(ring_ + (ring_begin_ + in_ring_) % capacity * stride_, message, body_bytes);
      ++in_ring_;
      return true;
    }
    if ((last_ == Pool::no_chunk || end_ == messages_a_chunk) && !append_chunk()) return false;
    copy_message(of_chunk(last_, end_), message, body_bytes);
    ++end_;
    return true;
  }
  /// Removes the oldest message, which every thread has read. Not if empty().
  GYRE_DEVICE void pop() {
    if (in_ring_ != 0) {
      ring_begin_ = (ring_begin_ + 1) % capacity;
      --in_ring_;
      return;
    }
    ++begin_;
    if (first_ == last_ ? begin_ == end_ : begin_ == messages_a_chunk) remove_chunk();
  }

 private:
  GYRE_DEVICE uint32_t* of_chunk(uint32_t chunk, uint32_t n) const {
    return chunks_ + (uint64_t(chunk) * messages_a_chunk + n) * stride_;
  }
  GYRE_DEVICE bool append_chunk() {
    uint32_t chunk = Pool::no_chunk;
    if (PollGroup::rank() == 0) {
      chunk = pool_.take();
      if (chunk != Pool::no_chunk && last_ != Pool::no_chunk) next_[last_] = chunk;
    }
    chunk = PollGroup::broadcast(chunk);
    if (chunk == Pool::no_chunk) return false;
    if (last_ == Pool::no_chunk) {
      first_ = chunk;
      begin_ = 0;
    }
    last_ = chunk;
    end_ = 0;
    return true;
  }
  GYRE_DEVICE void remove_chunk() {
    const uint32_t done = first_;
    begin_ = 0;
    uint32_t next = Pool::no_chunk;
    PollGroup::sync();  // every thread has read the chunk
    if (PollGroup::rank() == 0) {
      if (done != last_) next = next_[done];
      pool_.give(done);
    }
    first_ = PollGroup::broadcast(next);
    if (done == last_) last_ = Pool::no_chunk;
  }

  uint32_t* ring_;
  uint32_t* chunks_;
  uint32_t* next_;
  Pool pool_;
  uint32_t stride_;
  uint32_t ring_begin_ = 0, in_ring_ = 0;                    // messages
  uint32_t first_ = Pool::no_chunk, last_ = Pool::no_chunk;  // chunks; both are no_chunk, or neither is
  uint32_t begin_ = 0, end_ = 0;                             // messages in the first and in the last chunk
};

/// Messages of one worker to others that no slot could be claimed for yet. Those to one worker stay in their
/// order; those to different workers do not wait for each other. Collective over PollGroup; each thread has
/// an object of its own with equal members.
class Outbox {
 public:
  enum : uint32_t { capacity = MailLayout::outbox_messages };

  /// The messages of the threads of a group.
  struct MessageOf {
    const uint32_t* messages;
    const uint16_t* order;
    uint32_t stride;
    GYRE_DEVICE const uint32_t* operator()(uint32_t thread) const {
      return messages + order[thread] * stride;
    }
  };

  /// @param memory  of this worker: MailLayout::outbox_bytes()
  /// @param waits   a bitmap of the workers, zeroed
  GYRE_DEVICE Outbox(uint8_t* memory, uint32_t* waits, const MailLayout& layout)
      : memory_(memory),
        waits_(waits),
        stride_(layout.queue_stride()),
        wait_words_(MailLayout::Consumer::owed_words(layout.workers)) {}
  /// Before the first message.
  GYRE_DEVICE void start() {
    GYRE_ROLLED
    for (uint32_t i = PollGroup::rank(); i < capacity; i += PollGroup::size()) order()[i] = uint16_t(i);
    PollGroup::sync();
  }

  GYRE_DEVICE uint32_t count() const { return count_; }
  GYRE_DEVICE uint32_t room() const { return capacity - count_; }
  /// The largest count() so far.
  GYRE_DEVICE uint32_t most() const { return most_; }
  /// Whether a message to `worker` waits: later ones must wait behind it. Any thread.
  GYRE_DEVICE bool has_one_for(uint32_t worker) const {
    return (waits_[worker / 32] >> worker % 32 & 1) != 0;
  }
  /// Appends a copy of a message to `worker`. There must be room().
  GYRE_DEVICE void push(uint32_t worker, const uint32_t* message, uint32_t body_bytes) {
    if (PollGroup::rank() == 0) waits_[worker / 32] |= 1u << worker % 32;
    uint32_t* const copy = messages() + order()[count_] * stride_;
    copy_message(copy, message, body_bytes);
    if (PollGroup::rank() == 0) MailHead::mark_waited(copy);  // send_each() begins with a barrier
    ++count_;
    if (count_ > most_) most_ = count_;
  }
  /// Sends what can be sent, oldest first, up to as many at once as the group has threads.
  /// @param worker_of  worker_of(message): where a message goes
  /// @param send  send(has_one, to, MessageOf): whether this thread has a message, and to which worker; and
  ///              where the threads' messages are. Returns a mask of the threads whose message was sent: of
  ///              those to one worker, the first ones
  /// @returns how many were sent
  template <class WorkerOf, class Send>
  GYRE_DEVICE uint32_t send_each(WorkerOf&& worker_of, Send&& send) {
    GYRE_ROLLED
    for (uint32_t i = PollGroup::rank(); i < wait_words_; i += PollGroup::size()) waits_[i] = 0;
    PollGroup::sync();
    Pass pass;
    GYRE_ROLLED
    for (uint32_t first = 0; first < count_; first += PollGroup::size()) {
      const bool has_one = first + PollGroup::rank() < count_;
      const uint16_t place = order()[has_one ? first + PollGroup::rank() : 0];
      const uint32_t to = worker_of(messages() + place * stride_);
      const bool may_go = has_one && !has_one_for(to);
      uint32_t sent_now = 0;
      if (PollGroup::any(may_go)) {
        sent_now = send(may_go, to, MessageOf{messages(), order() + first, stride_});
      }
      end_row(pass, has_one, sent_now, place, to);
    }
    end_pass(pass);
    return pass.gone;
  }

 protected:
  // What a pass over the messages has found so far: how many stay, and how many have left.
  struct Pass {
    uint32_t kept = 0, gone = 0;
  };
  // Ends a row of a pass, of a message a thread: those that stay keep their order, and later messages to
  // their workers wait.
  // @param sent  a mask of the threads whose message was sent
  GYRE_DEVICE_INLINE void end_row(Pass& pass, bool has_one, uint32_t sent, uint16_t place, uint32_t to) {
    const bool stays = has_one && (sent >> PollGroup::rank() & 1) == 0;
    const uint32_t staying = PollGroup::ballot(stays);
    PollGroup::sync();  // every thread has read its place, and whether it may go
    if (stays) detail::set_bits_in_group(waits_[to / 32], 1u << to % 32);
    sort(pass, has_one, staying, sent, place);
  }
  // Keeps the places of those that stay, in their order, and frees the others. After a barrier.
  // @param staying, gone  masks of threads
  GYRE_DEVICE_INLINE void sort(Pass& pass, bool has_one, uint32_t staying, uint32_t gone, uint16_t place) {
    const uint32_t below = (1u << PollGroup::rank()) - 1;
    if ((staying >> PollGroup::rank() & 1) != 0) {
      order()[pass.kept + detail::count_bits(staying & below)] = place;
    } else if (has_one) {
      freed()[pass.gone + detail::count_bits(gone & below)] = place;
    }
    pass.kept += detail::count_bits(staying);
    pass.gone += detail::count_bits(gone);
    PollGroup::sync();
  }
  GYRE_DEVICE_INLINE void end_pass(const Pass& pass) {
    GYRE_ROLLED
    for (uint32_t i = PollGroup::rank(); i < pass.gone; i += PollGroup::size())
      order()[pass.kept + i] = freed()[i];
    count_ = pass.kept;
    PollGroup::sync();
  }

  // A permutation of the places: of the messages in their order, then the free ones.
  GYRE_DEVICE uint16_t* order() const { return reinterpret_cast<uint16_t*>(memory_); }
  // Places that a pass over the messages freed.
  GYRE_DEVICE uint16_t* freed() const { return order() + capacity; }
  GYRE_DEVICE uint32_t* messages() const {
    return reinterpret_cast<uint32_t*>(memory_ + MailLayout::outbox_begin());
  }

  uint8_t* memory_;
  uint32_t* waits_;  // a bitmap of the workers that messages wait for
  uint32_t stride_, wait_words_;
  uint32_t count_ = 0, most_ = 0;
};

}  // namespace gyre
