// The ring: slots of stamped packets, filled by tickets, read by one consumer. One text for g++, clang, NVRTC
// and the model checker (tests/model), which supplies its own `Memory`.
//
//   ticket    0, 1, 2, … counts messages for ever; slot = ticket mod slots, lap = first_lap + ticket / slots
//   stamp     the lap as 32 bits, never 0; every packet of a message carries its lap's stamp
//   publish   store the packets; nothing else: no head, no tail, no fence
//   receive   load the packets; the message is there when each packet that it needs carries the stamp
//   credit    the consumer says, now and then, how many tickets it is done with; producers claim only below
//   that
//
// Stamped slots follow NCCL's LL protocol (data and flag in one store), with laps in place of a flag that is
// cleared.
#pragma once

#include <gyre/bridge/group.hpp>
#include <gyre/bridge/packet.hpp>
#include <gyre/messages/envelope.hpp>

namespace gyre {

inline constexpr uint32_t data_bytes_a_packet = 12;
inline constexpr uint32_t words_a_packet = 3;

namespace detail {
/// log2 of a power of two.
GYRE_DEVICE constexpr uint32_t log2_of(uint32_t power_of_two) {
#if defined(__CUDACC_RTC__)
  return __popc(power_of_two - 1);
#else
  return uint32_t(__builtin_ctz(power_of_two));
#endif
}
}  // namespace detail

/// How a ring's slots are laid out and numbered. A plain value, the same on both sides.
struct RingShape {
  uint32_t slots = 256;       ///< a power of two, at least 2
  uint32_t slot_bytes = 512;  ///< bytes a slot, packets and stamps included; a multiple of 64
  uint64_t first_lap = 1;     ///< lap of ticket 0; tests start it just below 2^32

  GYRE_DEVICE constexpr uint32_t packets() const { return slot_bytes / 16; }
  /// Bytes of envelope and body that one slot carries.
  GYRE_DEVICE constexpr uint32_t payload_bytes() const { return packets() * data_bytes_a_packet; }
  /// Largest body, in bytes, a multiple of 16.
  GYRE_DEVICE constexpr uint32_t body_capacity() const {
    return payload_bytes() - uint32_t(sizeof(Envelope));
  }
  GYRE_DEVICE constexpr uint64_t ring_bytes() const { return uint64_t(slots) * slot_bytes; }

  /// Index of the ticket's first packet in the ring.
  GYRE_DEVICE constexpr uint64_t first_packet(uint64_t ticket) const {
    return (ticket & (slots - 1)) * packets();
  }
  GYRE_DEVICE constexpr uint64_t lap(uint64_t ticket) const {
    return first_lap + (ticket >> detail::log2_of(slots));
  }
  /// 1 + (lap - 1) mod (2^32 - 1): consecutive laps differ, and 0 is left to memory that was never written.
  GYRE_DEVICE constexpr uint32_t stamp(uint64_t ticket) const {
    const uint64_t laps = lap(ticket) - 1;
    const uint32_t low = uint32_t(laps), sum = low + uint32_t(laps >> 32);
    const uint32_t folded = sum + (sum < low ? 1 : 0);  // a carry is 2^32, which is 1 modulo 2^32 - 1
    return folded == 0xffffffffu ? 1 : folded + 1;
  }
  /// The stamp of the lap behind the one with that stamp.
  GYRE_DEVICE static constexpr uint32_t stamp_behind(uint32_t stamp) {
    return stamp == 0xffffffffu ? 1 : stamp + 1;
  }
  /// A short message leaves the tail packets of older laps in its slot. Every 65,536 laps all packets are
  /// stamped, so that no stamp older than that survives to be mistaken for its own successor 2^32 - 1 laps
  /// later.
  GYRE_DEVICE constexpr bool stamps_whole_slot(uint64_t ticket) const { return (lap(ticket) & 0xffffu) == 0; }
};

/// Packets that carry an envelope and `body_bytes` of body.
GYRE_DEVICE constexpr uint32_t packets_for(uint32_t body_bytes) {
  return (uint32_t(sizeof(Envelope)) + body_bytes + data_bytes_a_packet - 1) / data_bytes_a_packet;
}

/// A place in a ring: the slot of a ticket and the stamp of its lap, worked out where a lap begins and not
/// for each message. A value; one side's own.
template <class Memory>
class RingCursor {
 public:
  using Cell = typename Memory::Cell;

  /// At ticket 0 of `ring`, which has `shape`.
  GYRE_DEVICE RingCursor(Cell* ring, const RingShape& shape) : RingCursor(ring, shape, 0) {}
  GYRE_DEVICE RingCursor(Cell* ring, const RingShape& shape, uint64_t ticket)
      : ring_(ring),
        slot_(ring + shape.first_packet(ticket)),
        lap_end_((ticket | (shape.slots - 1)) + 1),
        left_of_lap_(uint32_t(lap_end_ - ticket)),
        stamp_(shape.stamp(ticket)),
        stamps_whole_slot_(shape.stamps_whole_slot(ticket)) {}

  GYRE_DEVICE uint64_t ticket() const { return lap_end_ - left_of_lap_; }
  /// Tickets from this one to the end of its lap, at least 1.
  GYRE_DEVICE uint32_t left_of_lap() const { return left_of_lap_; }
  GYRE_DEVICE Cell* slot() const { return slot_; }
  GYRE_DEVICE uint32_t stamp() const { return stamp_; }
  GYRE_DEVICE bool stamps_whole_slot() const { return stamps_whole_slot_; }

  /// To the ticket `n` further on, left_of_lap() at most. `shape`: the ring's.
  GYRE_DEVICE void advance(const RingShape& shape, uint32_t n = 1) {
    slot_ += n * shape.packets();
    left_of_lap_ -= n;
    if (left_of_lap_ == 0) begin_next_lap(shape);
  }

 private:
  // As RingCursor(ring_, shape, lap_end_), by fewer instructions: a worker has it in many places.
  GYRE_DEVICE void begin_next_lap(const RingShape& shape) {
    stamps_whole_slot_ = shape.stamps_whole_slot(lap_end_);
    stamp_ = RingShape::stamp_behind(stamp_);
    slot_ = ring_;
    lap_end_ += shape.slots;
    left_of_lap_ = shape.slots;
  }

  Cell* ring_;
  Cell* slot_;
  uint64_t lap_end_;  // the next lap's first ticket
  uint32_t left_of_lap_;
  uint32_t stamp_;
  bool stamps_whole_slot_;
};

/// Stamps the packets of a slot from `first` on. Collective over `group`.
template <class Memory, class Group>
GYRE_DEVICE void stamp_rest(Group group, const RingCursor<Memory>& at, const RingShape& shape,
                            uint32_t first) {
  GYRE_ROLLED
  for (uint32_t k = first + group.rank(); k < shape.packets(); k += group.size()) {
    Memory::store(at.slot()[k], Packet{{0, 0, 0}, at.stamp()});
  }
}

/// Stores the packets that a message needs, from `first` on: a part of publish().
template <class Memory, class Group>
GYRE_DEVICE void store_packets(Group group, const RingCursor<Memory>& at, const uint32_t* payload,
                               uint32_t needed, uint32_t first = 0) {
  GYRE_ROLLED
  for (uint32_t k = first + group.rank(); k < needed; k += group.size()) {
    const uint32_t* data = payload + k * words_a_packet;
    Memory::store(at.slot()[k], Packet{{data[0], data[1], data[2]}, at.stamp()});
  }
}

/// Publishes one message: `payload` is an envelope and its body, as 32-bit words, padded to whole packets (3
/// words). Collective over `group`. The caller owns the ticket (claimed, and below the consumer's credit).
/// Never blocks. Packets that the message does not need are stored first: once the consumer has those that it
/// does, the slot may be another producer's, and this one may have been suspended anywhere.
template <class Memory, class Group>
GYRE_DEVICE void publish(Group group, const RingCursor<Memory>& at, const RingShape& shape,
                         const uint32_t* payload, uint32_t body_bytes) {
  const uint32_t needed = packets_for(body_bytes);
  if (at.stamps_whole_slot()) stamp_rest<Memory>(group, at, shape, needed);
  store_packets<Memory>(group, at, payload, needed);
}
template <class Memory, class Group>
GYRE_DEVICE void publish(Group group, typename Memory::Cell* ring, const RingShape& shape, uint64_t ticket,
                         const uint32_t* payload, uint32_t body_bytes) {
  publish<Memory>(group, RingCursor<Memory>(ring, shape, ticket), shape, payload, body_bytes);
}

/// Packet k's data, as words of the payload.
GYRE_DEVICE inline void unpack(const Packet& packet, uint32_t* payload, uint32_t k) {
  uint32_t* const words = payload + k * words_a_packet;
  words[0] = packet.data[0];
  words[1] = packet.data[1];
  words[2] = packet.data[2];
}

#if !defined(__CUDACC_RTC__)
/// Four packets of a message from packet `first` on, all stamped; zeros are in those that it does not need.
/// `payload`, `body_bytes`: as publish() takes them.
inline Line packed_line(const uint32_t* payload, uint32_t body_bytes, uint32_t first, uint32_t stamp) {
  const uint32_t needed = packets_for(body_bytes);
  Line line;
  for (uint32_t i = 0; i < Line::size; ++i) {
    const uint32_t* const data = payload + (first + i) * words_a_packet;
    line.packets[i] =
        first + i < needed ? Packet{{data[0], data[1], data[2]}, stamp} : Packet{{0, 0, 0}, stamp};
  }
  return line;
}

/// Publishes one message as publish() does, to a ring in memory that the CPU does not cache
/// (write-combining): in whole lines, every packet of them stamped, those that the message does not need too.
/// `slot`: where, 64-aligned; `line(k)`: its packets from k on, a Line or a reference to one. Until
/// Memory::store_fence() some of it may linger.
template <class Memory, class LineAt>
void store_lines(LineStore how, typename Memory::Cell* slot, bool stamps_whole_slot, const RingShape& shape,
                 uint32_t body_bytes, LineAt&& line) {
  const uint32_t needed = packets_for(body_bytes);
  // What the message does not need comes before what it does (see publish): other lines by a fence, and
  // within the last line because store_line stores its first packet last, or all at once.
  if (stamps_whole_slot) {
    for (uint32_t k = (needed + Line::size - 1) / Line::size * Line::size; k < shape.packets();
         k += Line::size) {
      Memory::store_line(how, slot + k, line(k));
    }
    Memory::store_fence();
  }
  for (uint32_t k = 0; k < needed; k += Line::size) Memory::store_line(how, slot + k, line(k));
}
/// The same of a message that is not packed yet, and nothing lingers.
template <class Memory>
void publish_lines(LineStore how, typename Memory::Cell* ring, const RingShape& shape, uint64_t ticket,
                   const uint32_t* payload, uint32_t body_bytes) {
  const RingCursor<Memory> at(ring, shape, ticket);
  store_lines<Memory>(how, at.slot(), at.stamps_whole_slot(), shape, body_bytes,
                      [&](uint32_t k) { return packed_line(payload, body_bytes, k, at.stamp()); });
  Memory::store_fence();
}
#endif

enum class ReceiveOutcome : uint32_t {
  nothing,  ///< the message is not there, or not whole, yet
  message,  ///< the payload is whole
  corrupt,  ///< the envelope claims more body than a slot holds: only its first 12 bytes were taken
};

/// Whether a message of `needed` packets is whole, where bit k of `present` says that packet k is there, of
/// `loaded` packets, at most 32, that were loaded.
GYRE_DEVICE constexpr bool is_whole(uint32_t present, uint32_t needed, uint32_t loaded) {
  const uint32_t expected = 0xffffffffu >> (32 - (needed < 32 ? needed : 32));
  return (present & expected) == expected && needed <= loaded;
}

/// Envelope::body_bytes, bytes 8…11 of a message.
GYRE_DEVICE inline uint32_t body_bytes_in(const uint32_t* payload) { return payload[2]; }
GYRE_DEVICE inline uint32_t body_bytes_in(const Packet& first) { return first.data[2]; }

/// The rest of the message in `slot`, whose packets before `first`, at least 1, are there and unpacked: loads
/// the others once, which must have `stamp`, and unpacks them into `payload` (shape.payload_bytes() bytes),
/// which the whole group then sees. Collective over `group`; the outcome is the same in every thread. Never
/// blocks.
template <class Memory, class Group>
GYRE_DEVICE ReceiveOutcome receive_rest(Group group, const typename Memory::Cell* slot, uint32_t stamp,
                                        const RingShape& shape, uint32_t first, uint32_t* payload) {
  const uint32_t body_bytes = body_bytes_in(payload);
  if (body_bytes > shape.body_capacity()) return ReceiveOutcome::corrupt;
  const uint32_t needed = packets_for(body_bytes);
  bool whole = true;
  for (uint32_t k = first + group.rank(); k < needed; k += group.size()) {
    const Packet packet = Memory::load(slot[k]);
    whole = whole && packet.stamp == stamp;
    unpack(packet, payload, k);
  }
  whole = group.all(whole);
  group.sync();
  return whole ? ReceiveOutcome::message : ReceiveOutcome::nothing;
}

/// Looks once for the message of `ticket` and unpacks it into `payload` (shape.payload_bytes() bytes). One
/// thread. Never blocks.
template <class Memory>
GYRE_DEVICE ReceiveOutcome receive(const typename Memory::Cell* ring, const RingShape& shape, uint64_t ticket,
                                   uint32_t* payload) {
  const RingCursor<Memory> at(const_cast<typename Memory::Cell*>(ring), shape, ticket);
  const Packet first = Memory::load(at.slot()[0]);
  if (first.stamp != at.stamp()) return ReceiveOutcome::nothing;
  unpack(first, payload, 0);
  return receive_rest<Memory>(SingleThread{}, at.slot(), at.stamp(), shape, 1, payload);
}

/// The consumer's side of the credits. One per ring, used by one thread.
template <class Memory>
class CreditPublisher {
 public:
  /// `credit`: the word that producers read, in a line only this consumer writes.
  GYRE_DEVICE CreditPublisher(typename Memory::Word& credit, uint32_t slots)
      : credit_(&credit), quarter_(slots < 4 ? 1 : slots / 4) {}

  /// True where a quarter of the ring ends among the last `n` of `done`.
  GYRE_DEVICE bool due(uint64_t done, uint32_t n = 1) const { return (uint32_t(done) & (quarter_ - 1)) < n; }
  GYRE_DEVICE bool behind(uint64_t done) const { return done != published_; }
  /// Publishes that every ticket below `done` has been read (release: after the last read of those slots).
  GYRE_DEVICE void publish(uint64_t done) {
    Memory::store_release(*credit_, done);  // pairs with the load of *credit_ in TicketClaim::room()
    published_ = done;
  }

 private:
  typename Memory::Word* credit_;
  uint64_t published_ = 0;
  uint32_t quarter_;
};

#if !defined(__CUDACC_RTC__)

enum class ClaimOutcome { claimed, full, closed };

/// Claims tickets for many producer threads of the host: one word, compare-and-swap, no lock. Host memory
/// only. A claim that was granted must be published: nothing between the two may throw or block.
template <class Memory>
class TicketClaim {
 public:
  static constexpr uint64_t closed_bit = uint64_t(1) << 63;

  /// `credit`: the consumer's credit word. `slots`: the ring's.
  TicketClaim(const typename Memory::Word& credit, uint32_t slots) : credit_(&credit), slots_(slots) {}

  /// The default of `before_reuse`, which is called before slots that the consumer is done with are given out
  /// again: about once a lap, by the thread that reads the credit.
  struct Nothing {
    void operator()() const {}
  };

  /// Claims the next ticket, or says why not; claims nothing unless `claimed`. Any thread. Blocks only as
  /// `before_reuse()` does.
  template <class BeforeReuse = Nothing>
  ClaimOutcome try_claim(uint64_t& ticket, BeforeReuse&& before_reuse = {}) {
    return claim(ticket, false, before_reuse);
  }

  /// Claims up to `most` tickets in a row, at least 1, as many as there is room for: `first` and the `count`
  /// - 1 after it. Otherwise as try_claim. Each must be published.
  template <class BeforeReuse = Nothing>
  ClaimOutcome try_claim_run(uint32_t most, uint64_t& first, uint32_t& count,
                             BeforeReuse&& before_reuse = {}) {
    uint64_t tail = Memory::load_relaxed(tail_);
    for (;;) {
      if ((tail & closed_bit) != 0) return ClaimOutcome::closed;
      const uint32_t granted = room(tail, most, before_reuse);
      if (granted == 0) return ClaimOutcome::full;
      const uint64_t next = tail;
      if (Memory::compare_exchange(tail_, tail, next + granted)) {
        first = next;
        count = granted;
        return ClaimOutcome::claimed;
      }
    }
  }

  /// Makes every later try_claim fail; earlier claims stand. Any thread, any number of times. Pairs with
  /// closed().
  void close() { Memory::fetch_or(tail_, closed_bit); }

  /// Claims a ticket after close(), for the one message that must still go in. Otherwise as try_claim.
  template <class BeforeReuse = Nothing>
  ClaimOutcome try_claim_closed(uint64_t& ticket, BeforeReuse&& before_reuse = {}) {
    return claim(ticket, true, before_reuse);
  }

  /// Returns true after close(). Pairs with close(): the caller sees what the closing thread did before.
  bool closed() const { return (Memory::load_acquire(tail_) & closed_bit) != 0; }
  /// Returns the number of tickets claimed so far. Pairs with the exchanges that claim.
  uint64_t claimed() const { return Memory::load_acquire(tail_) & ~closed_bit; }

 private:
  template <class BeforeReuse>
  ClaimOutcome claim(uint64_t& ticket, bool after_close, BeforeReuse& before_reuse) {
    uint64_t tail = Memory::load_relaxed(tail_);
    for (;;) {
      if ((tail & closed_bit) != 0 && !after_close) return ClaimOutcome::closed;
      const uint64_t next = tail & ~closed_bit;
      if (room(next, 1, before_reuse) == 0) return ClaimOutcome::full;
      if (Memory::compare_exchange(tail_, tail, tail + 1)) {
        ticket = next;
        return ClaimOutcome::claimed;
      }
    }
  }

  // Returns how many of `wanted` tickets from `next` on have room. Signed: `next` may be stale and lie below
  // the credit; the compare-and-swap fails then, and the claim starts over. The accesses to credit_seen_ pair
  // with each other: a thread that finds room by it sees the work of before_reuse() done.
  template <class BeforeReuse>
  uint32_t room(uint64_t next, uint32_t wanted, BeforeReuse& before_reuse) {
    const int64_t slots = int64_t(slots_);
    if (int64_t(next - Memory::load_acquire(credit_seen_)) + int64_t(wanted) <= slots) return wanted;
    // Pairs with the store in CreditPublisher::publish(): the consumer has read those slots.
    const uint64_t credit = Memory::load_acquire(*credit_);
    const int64_t left = slots - int64_t(next - credit);
    if (left <= 0) return 0;
    before_reuse();
    Memory::store_release(credit_seen_, credit);
    return left < int64_t(wanted) ? uint32_t(left) : wanted;
  }

  alignas(64) typename Memory::Word tail_{0};         // written by every producer
  alignas(64) typename Memory::Word credit_seen_{0};  // written about once a lap
  const typename Memory::Word* credit_;
  uint32_t slots_;
};

#endif

}  // namespace gyre
