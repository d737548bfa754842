// The bodies of messages between actors that do not fit a slot. Such a body lies in a chunk of a pool in the
// engine's memory; the message has a BodyPlace in its place. Compiled only into sets with a handler that
// lists gyre::LargeMessages. A chunk has one owner at a time:
//
//   the handler in hand   builds the body there. A BodyRecord says which chunk; if it fails, all go back
//   the message           wherever it waits: staged, in a mailbox, a queue, an outbox, a reply ring, a timer
//   its receiver          once it has ended, the worker gives the chunk back, or passes it on
//
// A free chunk is all 0, for builders never zero: whoever gives one back clears what was written. Who
// publishes a BodyPlace has a fence before, and who has loaded one a fence behind: packets order nothing.
#pragma once

#include <gyre/bridge/chunk_pool.hpp>
#include <gyre/device/compiler_steering.hpp>
#include <gyre/device/platform.hpp>
#include <gyre/device/worker/mail_memory.hpp>
#include <gyre/device/worker/staging.hpp>

namespace gyre {

namespace detail {

/// Loads a word of the group's own memory that another thread of the group may store at the same time. What
/// that one wrote, or has seen, before its store_in_group() is there.
GYRE_DEVICE inline uint32_t load_in_group(const uint32_t& word) {
#if defined(__CUDACC_RTC__)
  uint32_t value;
  asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(value) : "l"(&word) : "memory");
  return value;
#else
  return word;
#endif
}
/// Pairs with load_in_group().
GYRE_DEVICE inline void store_in_group(uint32_t& word, uint32_t value) {
#if defined(__CUDACC_RTC__)
  asm volatile("st.release.cta.u32 [%0], %1;" : : "l"(&word), "r"(value) : "memory");
#else
  word = value;
#endif
}
/// Makes a word of the group's own memory as large as `value`, if it is smaller. Threads of one group may do
/// so at once.
GYRE_DEVICE inline void raise_in_group(uint32_t& word, uint32_t value) {
#if defined(__CUDACC_RTC__)
  atomicMax(&word, value);
#else
  if (word < value) word = value;
#endif
}

}  // namespace detail

/// The chunks, all of one size, and who may take them. Each worker takes from one list of free chunks, and
/// from the others once that is empty; a chunk returns to the list it is of. A list is a ChunkPool: take and
/// give are lock-free, and a count in its head tells a head that was away and is back. A plain value, the
/// same for every worker; refers to the engine's memory.
class BodyPool {
 public:
  using List = ChunkPool<WorkersMemory>;
  enum : uint32_t { no_chunk = List::no_chunk };

  /// @param begin  of the memory that `layout` is of
  GYRE_DEVICE BodyPool(uint8_t* begin, const MailLayout& layout)
      : states_(begin + layout.body_states()),
        links_(reinterpret_cast<WorkersMemory::Word*>(begin + layout.body_links())),
        bodies_(begin + layout.bodies()),
        chunks_(layout.body_chunks),
        body_bytes_(layout.body_chunks == 0 ? 0 : layout.body_bytes),
        lists_(layout.lists_of_bodies()) {}

  /// Bytes of the largest body; 0: there are no chunks.
  GYRE_DEVICE uint32_t body_bytes() const { return body_bytes_; }
  GYRE_DEVICE uint8_t* at(uint32_t chunk) const { return bodies_ + uint64_t(chunk) * body_bytes_; }
  /// Whether it names a body of the pool: always, unless memory was overwritten.
  GYRE_DEVICE bool has(const BodyPlace& place) const {
    return place.chunk < chunks_ && place.bytes <= body_bytes_;
  }

  /// Takes a chunk, which is all 0. Never waits for another thread. One thread.
  /// @param worker  that takes it
  /// @returns no_chunk if none was free
  GYRE_DEVICE uint32_t take(uint32_t worker) const {
    const uint32_t own = lists_ == 0 ? 0 : worker % lists_;
    GYRE_ROLLED
    for (uint32_t k = 0; k < lists_; ++k) {
      const uint32_t n = own + k < lists_ ? own + k : own + k - lists_;
      const uint32_t chunk = list(n).take();
      if (chunk != no_chunk) return first_of(n) + chunk;
    }
    return no_chunk;
  }
  /// Takes a chunk for a message that several threads build. The first of them takes it; others wait no
  /// longer than that takes. Any thread of those; it has no barrier.
  /// @param record  of the message, all 0 at first
  /// @returns BodyRecord::chunk, equal in all threads: none_free, or that of a chunk
  GYRE_DEVICE_NOINLINE uint32_t take_for_team(BodyRecord& record, uint32_t worker) const {
    if (HandlerGroup::first_to_set(record.chunk, uint32_t(BodyRecord::being_taken))) {
      const uint32_t chunk = take(worker);
      // The other threads have seen what take() has: the zeros of the chunk's last owner.
      detail::store_in_group(record.chunk,
                             chunk == no_chunk ? uint32_t(BodyRecord::none_free) : BodyRecord::first + chunk);
    }
    uint32_t taken = BodyRecord::being_taken;
    while (taken == BodyRecord::being_taken) taken = detail::load_in_group(record.chunk);
    return taken;
  }
  /// Clears the first `bytes` bytes of a chunk, which are all that was written of it, and gives it back.
  /// Collective over PollGroup. All threads that read or wrote it have met at a barrier since.
  GYRE_DEVICE void give(uint32_t chunk, uint32_t bytes) const {
    auto* const packets = reinterpret_cast<Packet*>(at(chunk));
    GYRE_ROLLED
    for (uint32_t i = PollGroup::rank(); i * sizeof(Packet) < bytes; i += PollGroup::size()) {
      packets[i] = Packet{};
    }
    PollGroup::sync();  // those stores come before the chunk is in its list
    if (PollGroup::rank() == 0) give_clear(chunk);
    PollGroup::sync();
  }
  /// Gives a chunk back that is all 0. One thread.
  GYRE_DEVICE void give_clear(uint32_t chunk) const {
    // The list that `chunk` is of: the last one that begins at or before it.
    const auto n = uint32_t((uint64_t(chunk + 1) * lists_ - 1) / chunks_);
    list(n).give(chunk - first_of(n));
  }
  /// Copies a body to a chunk that is all 0. Collective over PollGroup.
  GYRE_DEVICE void copy(uint32_t to, const BodyPlace& from) const {
    auto* const copy = reinterpret_cast<Packet*>(at(to));
    const auto* const packets = reinterpret_cast<const Packet*>(at(from.chunk));
    GYRE_ROLLED
    for (uint32_t i = PollGroup::rank(); i * sizeof(Packet) < from.bytes; i += PollGroup::size()) {
      copy[i] = packets[i];
    }
    PollGroup::sync();
  }

  /// Whether a message of an actor has its body in the pool. Not collective.
  GYRE_DEVICE static bool is_place(const uint32_t* message) {
    return (reinterpret_cast<const Envelope*>(message)->flags & envelope_flags::out_of_line) != 0;
  }
  /// The place of the body of such a message.
  GYRE_DEVICE static BodyPlace& place_in(uint32_t* message) {
    return *reinterpret_cast<BodyPlace*>(message + Staging::envelope_words);
  }
  GYRE_DEVICE static BodyPlace place_in(const uint32_t* message) {
    return *reinterpret_cast<const BodyPlace*>(message + Staging::envelope_words);
  }

 private:
  // List n has the chunks from first_of(n) on, up to first_of(n + 1).
  GYRE_DEVICE uint32_t first_of(uint32_t n) const { return uint32_t(uint64_t(n) * chunks_ / lists_); }
  GYRE_DEVICE List list(uint32_t n) const {
    const uint32_t first = first_of(n);
    return {reinterpret_cast<WorkersMemory::Word*>(states_ + uint64_t(n) * MailLayout::alignment),
            links_ + first, first_of(n + 1) - first};
  }

  uint8_t* states_;  // of the lists, a line each
  WorkersMemory::Word* links_;
  uint8_t* bodies_;
  uint32_t chunks_, body_bytes_, lists_;
};
static_assert(sizeof(BodyPool) <= StagingLayout::body_pool_words * sizeof(uint32_t));

/// The bodies of one worker's messages: what its handlers take, and what ends with the messages that it
/// takes. A plain value; refers to the group's memory. Its functions are collective over PollGroup.
///
/// Only what tells whether there is a body is compiled into the paths of messages; the rest is called.
class PooledBodies {
 public:
  GYRE_DEVICE explicit PooledBodies(const Staging& staging) : staging_(staging) {}

  GYRE_DEVICE const BodyPool& pool() const { return staging_.body_pool(); }
  /// After the handler of the message in hand has returned, and a barrier: puts the places of the bodies that
  /// it has built into its messages, or gives their chunks back if it has failed.
  /// @param ok       its message ended well: what it staged is to be sent
  /// @param in_hand  the message in hand
  /// @returns whether the chunk of the message in hand is passed on
  GYRE_DEVICE bool settle(bool ok, const uint32_t* in_hand) const {
    bool any = false;
    GYRE_ROLLED
    for (uint32_t n = PollGroup::rank(); n < staging_.layout.most_sent; n += PollGroup::size()) {
      any |= staging_.body(n).chunk != BodyRecord::none;
    }
    if (!PollGroup::any(any)) return false;
    return settle_records(pool(), staging_.body_counts(), &staging_.body(0), staging_.message(0),
                          staging_.layout.message_words, staging_.layout.most_sent, ok, in_hand);
  }
  /// Ends the body of a message, if it has one in the pool. All threads that read it have met at a barrier
  /// since.
  GYRE_DEVICE void end(const uint32_t* message) const {
    if (assert_warp_uniform(BodyPool::is_place(message)))
      end_place(pool(), staging_.body_counts(), BodyPool::place_in(message));
  }
  /// Gives a message a body of its own, equal to the one that it names.
  /// @returns false if there is no chunk for it
  GYRE_DEVICE bool copy(uint32_t* message) const {
    return copy_place(pool(), staging_.body_counts(), message, staging_.worker());
  }
  /// Gives a chunk back, of which `bytes` were written.
  GYRE_DEVICE void give(uint32_t chunk, uint32_t bytes) const {
    end_place(pool(), staging_.body_counts(), {chunk, bytes, 0});
  }

  /// Takes a chunk for the response of the message in hand. One thread, and then a barrier.
  /// @returns false if there is none
  GYRE_DEVICE bool take_for_response() const {
    const uint32_t taken = pool().take_for_team(response(), staging_.worker());
    const bool has_one = taken != BodyRecord::none_free;
    ++(has_one ? staging_.body_counts().taken : staging_.body_counts().refused);
    if (!has_one) response() = {};
    return has_one;
  }
  /// The record of that chunk.
  GYRE_DEVICE BodyRecord& response() const { return staging_.body(staging_.layout.most_sent); }
  /// The chunk is the reply's now.
  /// @param message  of the reply; its body becomes the place of the response
  GYRE_DEVICE void move_response(uint32_t* message, uint32_t bytes) const {
    PollGroup::sync();  // every thread has read the record
    if (PollGroup::rank() == 0) {
      BodyPool::place_in(message) = {response().number(), bytes, 0};
      response() = {};
    }
    PollGroup::sync();
  }
  /// Gives the chunk back, unless it has become the reply's.
  GYRE_DEVICE void end_response() const {
    const BodyRecord record = response();
    if (!assert_warp_uniform(record.has_chunk())) return;
    PollGroup::sync();  // every thread has read it
    if (PollGroup::rank() == 0) response() = {};
    give(record.number(), record.bytes);
  }

 private:
  GYRE_DEVICE_NOINLINE static bool settle_records(const BodyPool& pool, BodyCounts& counts,
                                                  BodyRecord* records, uint32_t* messages,
                                                  uint32_t message_words, uint32_t most, bool ok,
                                                  const uint32_t* in_hand) {
    bool passes_on = false, sends = false;
    GYRE_ROLLED
    for (uint32_t first = 0; first < most; first += PollGroup::size()) {
      const uint32_t n = first + PollGroup::rank();
      const BodyRecord record = n < most ? records[n] : BodyRecord{};
      const bool moves = ok && record.chunk == BodyRecord::in_hand;
      const uint32_t taken = PollGroup::ballot(record.has_chunk());
      const uint32_t refused = PollGroup::ballot(record.chunk == BodyRecord::none_free);
      if (PollGroup::rank() == 0) {
        counts.taken += detail::count_bits(taken);
        counts.refused += detail::count_bits(refused);
      }
      if (ok && record.has_chunk()) {
        BodyPool::place_in(messages + n * message_words) = {record.number(), record.bytes, 0};
      } else if (moves) {
        BodyPool::place_in(messages + n * message_words) = BodyPool::place_in(in_hand);
      }
      if (record.chunk != BodyRecord::none) records[n] = {};
      passes_on |= PollGroup::any(moves);
      sends |= taken != 0;
      GYRE_ROLLED
      for (uint32_t left = ok ? 0 : taken; left != 0; left &= left - 1) {
        const uint32_t rank = detail::lowest_bit(left);
        end_place(pool, counts,
                  {PollGroup::broadcast_from(record.number(), rank),
                   PollGroup::broadcast_from(record.bytes, rank), 0});
      }
    }
    // What all threads of the handler wrote comes before the packets that this thread stores.
    if (ok && (sends || passes_on)) WorkersMemory::fence();
    PollGroup::sync();
    return passes_on;
  }
  GYRE_DEVICE_NOINLINE static void end_place(const BodyPool& pool, BodyCounts& counts, BodyPlace place) {
    if (!assert_warp_uniform(pool.has(place))) return;  // memory was overwritten
    pool.give(place.chunk, place.bytes);
    if (PollGroup::rank() == 0) ++counts.freed;
  }
  GYRE_DEVICE_NOINLINE static bool copy_place(const BodyPool& pool, BodyCounts& counts, uint32_t* message,
                                              uint32_t worker) {
    const BodyPlace from = BodyPool::place_in(message);
    if (!assert_warp_uniform(pool.has(from))) return false;
    uint32_t chunk = BodyPool::no_chunk;
    if (PollGroup::rank() == 0) {
      chunk = pool.take(worker);
      ++(chunk != BodyPool::no_chunk ? counts.taken : counts.refused);
    }
    chunk = PollGroup::broadcast(chunk);
    PollGroup::sync();  // every thread has seen what take() has: the zeros of the chunk's last owner
    if (!assert_warp_uniform(chunk != BodyPool::no_chunk)) return false;
    pool.copy(chunk, from);
    if (PollGroup::rank() == 0) BodyPool::place_in(message).chunk = chunk;
    WorkersMemory::fence();  // before the packets of the message, as in settle_records()
    PollGroup::sync();
    return true;
  }

  Staging staging_;
};

}  // namespace gyre
