// Mailboxes: how workers send to each other, in memory that all of them reach. Each worker has a ring of
// stamped slots (bridge/ring.hpp) that every worker fills and it alone reads. One text for g++, clang, NVRTC
// and the model checker (tests/model), which supplies its own `Memory`.
//
//   ticket    one fetch-add of the mailbox's 64-bit tail, without a condition: a claim never waits, never
//             fails and is never undone
//   limit     how many messages a producer may send to a consumer in all. 32 bits, which wrap: compared
//             serially. The consumer alone raises it
//   grant     how many slots of the mailbox a producer holds: its limit is at most its grant more than the
//             consumer has taken of its messages
//   spare     slots that no producer holds. A producer gets as many again of them as it has if it used its
//             whole grant, or if its messages wait for room while the mailbox is empty
//   owed      a producer is owed a limit once half of its grant is used. The consumer may raise limits later:
//             answers go first
//
// The invariant: the grants and the spare slots of a mailbox add up to its slots, so over all producers the
// sum of limit - taken is at most the slots. Hence no ticket t is claimed before t - slots was taken:
//
//   Let h be how many messages the consumer had taken when it raised the last limit that any claim up to t
//   made use of. All those claims lie below limits whose sum is at most slots + h, so t + 1 <= slots + h.
//   The consumer's loads of slot t - slots come before that limit's release store, which its producer's
//   acquire load saw before it claimed; claims of one tail are ordered among themselves, and stores to a slot
//   come after the claim of its ticket.
//
// A reply ring has no limits: its slots are at least the asks that its worker may have open, and each ask
// gets one reply. Of the asks that tickets 0 to t answer, at least t + 1, the last one was sent while at most
// as many asks were open as there are slots: after reply t - slots was taken.
#pragma once

#include <gyre/bridge/group.hpp>
#include <gyre/bridge/ring.hpp>

namespace gyre {

namespace detail {
GYRE_DEVICE inline uint32_t count_bits(uint32_t bits) {
#if defined(__CUDACC_RTC__)
  return uint32_t(__popc(bits));
#else
  return uint32_t(__builtin_popcount(bits));
#endif
}
/// `bits` is not 0.
GYRE_DEVICE inline uint32_t lowest_bit(uint32_t bits) {
#if defined(__CUDACC_RTC__)
  return uint32_t(__ffs(int(bits)) - 1);
#else
  return uint32_t(__builtin_ctz(bits));
#endif
}
/// `bits` is not 0.
GYRE_DEVICE inline uint32_t highest_bit(uint32_t bits) {
#if defined(__CUDACC_RTC__)
  return uint32_t(31 - __clz(int(bits)));
#else
  return uint32_t(31 - __builtin_clz(bits));
#endif
}
/// Adds to a word of the group's own memory, and returns its value before. Threads of one group may do so at
/// once.
GYRE_DEVICE inline uint32_t add_in_group(uint32_t& word, uint32_t n) {
#if defined(__CUDACC_RTC__)
  return atomicAdd(&word, n);
#else
  const uint32_t before = word;
  word += n;
  return before;
#endif
}
/// Sets bits of a word of the group's own memory. Threads of one group may do so at once.
GYRE_DEVICE inline void set_bits_in_group(uint32_t& word, uint32_t bits) {
#if defined(__CUDACC_RTC__)
  atomicOr(&word, bits);
#else
  word |= bits;
#endif
}
}  // namespace detail

/// A ring for each worker, which other workers fill: mailboxes, or reply rings. A plain value. The memory is
/// its owner's, zeroed before the first message.
template <class Memory>
struct WorkerRings {
  using Cell = typename Memory::Cell;
  using Word = typename Memory::Word;
  /// Words from one tail to the next: each has a line of its own.
  enum : uint32_t { words_a_tail = 16 };

  Cell* cells;      ///< worker w's ring begins at w * shape.slots * shape.packets()
  Word* tails;      ///< worker w's is at w * words_a_tail: tickets claimed
  RingShape shape;  ///< of each ring

  GYRE_DEVICE Cell* ring(uint32_t worker) const {
    return cells + uint64_t(worker) * shape.slots * shape.packets();
  }
  /// The first packet of the slot of `ticket`.
  GYRE_DEVICE Cell* slot(uint32_t worker, uint64_t ticket) const {
    return ring(worker) + shape.first_packet(ticket);
  }
  /// Claims `count` tickets in a row in the ring of `worker`, and returns the first. There must be room: as
  /// MailboxProducer::room() or ReplyRing says. Each must be published: nothing between the two may throw or
  /// block. Never blocks. Any thread.
  GYRE_DEVICE uint64_t claim(uint32_t worker, uint32_t count) const {
    // Pairs with other claims of this tail: who claims later comes after all that came before this one.
    return Memory::fetch_add(tails[uint64_t(worker) * words_a_tail], count);
  }
  /// Returns how many tickets of that ring were claimed so far. Relaxed: a number alone.
  GYRE_DEVICE uint64_t claimed(uint32_t worker) const {
    return Memory::load_relaxed(tails[uint64_t(worker) * words_a_tail]);
  }
  /// Claims the ticket of a reply to an ask that the calling thread has received from `worker`.
  GYRE_DEVICE uint64_t claim_reply(uint32_t worker) const {
    // Pairs with the fence in ReplyRing::advance(): the ask's packets were loaded before.
    Memory::fence_after_loads();
    return claim(worker, 1);
  }
};

/// The mailboxes of all workers. A plain value, the same for every worker.
template <class Memory>
struct Mailboxes {
  using Word32 = typename Memory::Word32;

  WorkerRings<Memory> rings;
  Word32* limits;    ///< limits[producer * workers + consumer]; 0 until it is raised for the first time
  uint32_t workers;  ///< how many there are
  /// What each producer is granted at first, from 1 to 1,024: workers * allowance <= slots.
  uint32_t allowance;

  GYRE_DEVICE Word32& limit(uint32_t producer, uint32_t consumer) const {
    return limits[uint64_t(producer) * workers + consumer];
  }
};

/// The producer's side of one worker. Its threads use it one at a time, except where lanes of one warp use it
/// for different workers at once.
template <class Memory>
class MailboxProducer {
 public:
  /// What it knows of one worker that it sends to. Counts wrap.
  struct Peer {
    uint32_t sent;   ///< messages claimed
    uint32_t limit;  ///< of `sent`, as read last; never behind it
  };

  /// `peers`: one for each worker, in memory of the group. start() fills it.
  GYRE_DEVICE MailboxProducer(const Mailboxes<Memory>& mailboxes, uint32_t me, Peer* peers)
      : mailboxes_(mailboxes), peers_(peers), me_(me) {}
  /// Collective over `group`, before the first message.
  template <class Group>
  GYRE_DEVICE void start(Group group) {
    GYRE_ROLLED
    for (uint32_t k = group.rank(); k < mailboxes_.workers; k += group.size()) {
      peers_[k] = {0, mailboxes_.allowance};
    }
    group.sync();
  }

  /// Returns how many of `wanted` messages to `to` may be claimed. Reads the limit only if the one that was
  /// read last allows fewer. Never blocks.
  GYRE_DEVICE uint32_t room(uint32_t to, uint32_t wanted) {
    uint32_t room = left(to);
    if (room < wanted) {
      read_limit(to);
      room = left(to);
    }
    return room < wanted ? room : wanted;
  }
  /// Reads the limit if at most half of an allowance is left of it: before a message waits for it.
  GYRE_DEVICE void read_limit_early(uint32_t to) {
    if (left(to) * 2 <= mailboxes_.allowance) read_limit(to);
  }
  /// Claims `count` tickets in a row, at most room(to, count), and returns the first. As WorkerRings::claim.
  GYRE_DEVICE uint64_t claim(uint32_t to, uint32_t count) {
    peers_[to].sent += count;
    return mailboxes_.rings.claim(to, count);
  }
  /// Messages claimed for `to` so far, modulo 2^32.
  GYRE_DEVICE uint32_t sent(uint32_t to) const { return peers_[to].sent; }

 private:
  // Messages that the limit which was read last still allows.
  GYRE_DEVICE uint32_t left(uint32_t to) const { return peers_[to].limit - peers_[to].sent; }
  GYRE_DEVICE void read_limit(uint32_t to) {
    Peer& peer = peers_[to];
    // Pairs with the store in MailboxConsumer::raise().
    const uint32_t limit = Memory::load_acquire(mailboxes_.limit(me_, to));
    if (int32_t(limit - peer.limit) > 0) peer.limit = limit;  // else it was not raised yet
  }

  Mailboxes<Memory> mailboxes_;
  Peer* peers_;
  uint32_t me_;
};

/// What claim_each() gives a thread.
struct EachClaim {
  bool claimed;
  uint32_t rank;    ///< among the threads that send to the same worker
  uint64_t ticket;  ///< if it was claimed
};
/// Claims a ticket for each thread that has a message, as far as there is room: one fetch-add for each worker
/// that they send to, tickets by rank. Of threads that send to one worker the first ones are served.
/// Collective over `group`; `has_one`, `to`: this thread's. Never blocks.
template <class Memory, class Group>
GYRE_DEVICE EachClaim claim_each(Group group, MailboxProducer<Memory>& producer, bool has_one, uint32_t to) {
  const uint32_t same = group.match(to) & group.ballot(has_one);
  const uint32_t rank = detail::count_bits(same & ((1u << group.rank()) - 1));
  const uint32_t leader = same == 0 ? 0 : detail::lowest_bit(same);
  uint32_t count = 0;
  uint64_t first = 0;
  if (has_one && rank == 0) {
    count = producer.room(to, detail::count_bits(same));
    if (count != 0) first = producer.claim(to, count);
  }
  count = group.broadcast_from(count, leader);
  const uint32_t low = group.broadcast_from(uint32_t(first), leader);
  const uint32_t high = group.broadcast_from(uint32_t(first >> 32), leader);
  group.sync();  // the stores of every thread come after its leader's loads
  return {has_one && rank < count, rank, (uint64_t(high) << 32 | low) + rank};
}

/// The consumer's side of one worker: who may send how much. The messages themselves are read as any ring's.
/// Its threads use it one at a time, except where lanes of one warp use it for different producers at once.
template <class Memory>
class MailboxConsumer {
 public:
  /// What it knows of one worker that sends to it.
  struct Peer {
    uint32_t taken;  ///< messages taken; wraps
    uint16_t left;   ///< messages that may still come: `taken + left` is its limit; at most `grant`
    uint16_t grant;  ///< slots that it holds
  };
  /// A grant of this and more does not grow: one pair shall not have all that is spare.
  enum : uint32_t { most_granted = 1024 };

  /// Words of a bitmap of workers.
  GYRE_DEVICE static constexpr uint32_t owed_words(uint32_t workers) { return (workers + 31) / 32; }

  /// `peers`: one for each worker; `owed`: owed_words(workers); `spare`: a word. In memory of the group;
  /// start() fills it.
  GYRE_DEVICE MailboxConsumer(const Mailboxes<Memory>& mailboxes, uint32_t me, Peer* peers, uint32_t* owed,
                              uint32_t& spare)
      : mailboxes_(mailboxes), peers_(peers), owed_(owed), spare_(&spare), me_(me) {}
  /// Collective over `group`, before the first message.
  template <class Group>
  GYRE_DEVICE void start(Group group) {
    const uint32_t workers = mailboxes_.workers, allowance = mailboxes_.allowance;
    GYRE_ROLLED
    for (uint32_t k = group.rank(); k < workers; k += group.size())
      peers_[k] = {0, uint16_t(allowance), uint16_t(allowance)};
    GYRE_ROLLED
    for (uint32_t k = group.rank(); k < owed_words(workers); k += group.size()) owed_[k] = 0;
    if (group.rank() == 0) *spare_ = mailboxes_.rings.shape.slots - workers * allowance;
    group.sync();
  }

  /// Counts `n` messages of `from` as taken. Raising its limit gives their slots to other messages.
  /// @returns true if `from` is owed a limit: the caller calls raise() now, or owe() and later give_back()
  GYRE_DEVICE bool take(uint32_t from, uint32_t n) {
    Peer& peer = peers_[from];
    peer.taken += n;
    peer.left -= uint16_t(n);
    return peer.left * 2 <= peer.grant;
  }
  /// A message of `from` had to wait for room, and no other lies behind it: its grant grows, if there is
  /// something to spare. Not where others lie behind it: the consumer is the slower one then, and a larger
  /// grant would only let one producer take more of its time than others. Before take().
  GYRE_DEVICE void grow(uint32_t from) {
    Peer& peer = peers_[from];
    if (peer.grant < most_granted) peer.grant += uint16_t(granted_more(peer.grant));
  }
  GYRE_DEVICE void owe(uint32_t from) { detail::set_bits_in_group(owed_[from / 32], 1u << (from % 32)); }
  /// Raises the limit of `from`. All threads of the group have read the slots of what was taken, and met at a
  /// barrier since.
  GYRE_DEVICE void raise(uint32_t from) {
    Peer& peer = peers_[from];
    if (peer.left == 0) grow(from);
    peer.left = peer.grant;
    // Pairs with the load in MailboxProducer::read_limit().
    Memory::store_release(mailboxes_.limit(from, me_), peer.taken + peer.grant);
  }
  /// Raises the limits of all that are owed one. Collective over `group`.
  template <class Group>
  GYRE_DEVICE void give_back(Group group) {
    group.sync();  // every thread has read its slots
    const uint32_t words = owed_words(mailboxes_.workers);
    GYRE_ROLLED
    for (uint32_t first = 0; first < words; first += group.size()) {
      const uint32_t place = first + group.rank(), mine = place < words ? owed_[place] : 0;
      GYRE_ROLLED
      for (uint32_t left = group.ballot(mine != 0); left != 0; left &= left - 1) {
        const uint32_t word = detail::lowest_bit(left), owed = group.broadcast_from(mine, word);
        GYRE_ROLLED
        for (uint32_t k = group.rank(); k < 32; k += group.size()) {
          if ((owed >> k & 1) != 0) raise((first + word) * 32 + k);
        }
      }
      if (mine != 0) owed_[place] = 0;
    }
    group.sync();
  }

 private:
  // As many slots as `grant`, of the spare ones, or none.
  GYRE_DEVICE uint32_t granted_more(uint32_t grant) {
    // Below 0 while threads ask at once for more than there is.
    if (int32_t(detail::add_in_group(*spare_, 0u - grant)) >= int32_t(grant)) return grant;
    detail::add_in_group(*spare_, grant);
    return 0;
  }

  Mailboxes<Memory> mailboxes_;
  Peer* peers_;
  uint32_t* owed_;
  uint32_t* spare_;
  uint32_t me_;
};

/// The asking worker's side of its reply ring. Its owner sees to it that no more asks are open than the ring
/// has slots; an ask is open until its reply was taken. One per worker; its group's, the same in every
/// thread.
template <class Memory>
class ReplyRing {
 public:
  GYRE_DEVICE ReplyRing(const WorkerRings<Memory>& rings, uint32_t me)
      : shape_(rings.shape), next_(rings.ring(me), rings.shape) {}

  /// The ticket of the next reply.
  GYRE_DEVICE uint64_t head() const { return next_.ticket(); }
  /// Where the next reply will lie.
  GYRE_DEVICE const RingCursor<Memory>& next() const { return next_; }
  /// The next reply was taken: all threads of the group have read its slot, and met at a barrier since.
  GYRE_DEVICE void advance() {
    next_.advance(shape_);
    // Pairs with the fence in WorkerRings::claim_reply(), by way of the packets of asks that are sent later.
    Memory::fence_after_loads();
  }

 private:
  RingShape shape_;
  RingCursor<Memory> next_;
};

}  // namespace gyre
