// What a worker of a set that sends has of its own beside MessageMemory: the messages that a handler builds,
// and the mail in hand.
#pragma once

#include <gyre/device/actor/rights.hpp>
#include <gyre/device/compiler_steering.hpp>
#include <gyre/device/read/request_reader.hpp>
#include <gyre/device/worker/message_memory.hpp>

namespace gyre {

/// How a message between actors differs from the host's: in three fields of its envelope. A worker takes the
/// last two out before it handles the message.
///
///   correlation         the sending actor's key
///   origin              the sending worker's number + 1, and whether the message waited in the outbox
///   body_bytes          the sending actor's type in the upper 16 bits
struct MailHead {
  // Functions and enumerators, not variables: NVRTC would keep those in kernels that do not send.
  enum : uint32_t {
    size_mask = 0xffff,
    origin_mask = 0xffff,
    waited = 0x8000,            ///< of an origin; workers have smaller numbers
    most_workers = waited - 1,  ///< of an engine whose actors send
    size_word = 2,              ///< of the envelope; a packet has three words
    origin_word = 7             ///< as size_word
  };

  GYRE_DEVICE static void mark(Envelope& envelope, uint32_t worker, uint32_t actor_type) {
    envelope.body_bytes |= actor_type << 16;
    envelope.origin = uint16_t(worker + 1);
  }
  GYRE_DEVICE static uint32_t body_bytes(uint32_t size) { return size & size_mask; }
  GYRE_DEVICE static uint32_t sender_type(uint32_t size) { return size >> 16; }
  /// The message waited for a slot.
  GYRE_DEVICE static void mark_waited(uint32_t* message) { message[origin_word] |= waited; }
  /// The sending worker's number; a larger one than any has if the message has no sender.
  GYRE_DEVICE static uint32_t worker_of(uint32_t origin) { return (origin & ~uint32_t(waited)) - 1; }
  /// Takes out of a message what the host's messages do not have.
  /// @returns its origin
  GYRE_DEVICE static uint32_t unmark(uint32_t* message) {
    const uint32_t origin = message[origin_word] & origin_mask;
    message[size_word] &= size_mask;
    message[origin_word] &= ~origin_mask;
    return origin;
  }
  /// The same for packet `k` of it.
  GYRE_DEVICE static void unmark(Packet& packet, uint32_t k) {
    if (k == size_word / words_a_packet) packet.data[size_word % words_a_packet] &= size_mask;
    if (k == origin_word / words_a_packet) packet.data[origin_word % words_a_packet] &= ~origin_mask;
  }
};

/// The parts of that memory, in words. In the group's own memory, behind that of MessageMemory; zeroed at
/// first. A value, the same on both sides.
struct StagingLayout {
  uint32_t message_words = 0;      ///< of one message: words_of()
  uint32_t actors = 0;             ///< types of the set
  uint32_t most_sent = 0;          ///< messages that a handler may send, at most; 0: no handler sends
  bool mail_side_by_side = false;  ///< several messages of actors may be in hand at once
  uint32_t workers = 0;            ///< of the engine. Only what lies behind messages() depends on it
  Rights rights;                   ///< of all handlers
  uint32_t reply_handlers = 0;     ///< of all types; 0 where no handler asks

  /// Returns the layout of a set's workers. `words()` is 0 unless a handler sends.
  /// @param workers         of the engine
  /// @param actors          types of the set
  /// @param most_sent       messages that a handler may send, at most
  /// @param side_by_side    a worker handles several messages of actors at once
  /// @param reply_handlers  states of the asks of all types; ignored where no handler asks
  GYRE_DEVICE static constexpr StagingLayout of(const RingShape& shape, uint32_t workers, uint32_t actors,
                                                uint32_t most_sent, bool side_by_side, Rights rights,
                                                uint32_t reply_handlers) {
    if (!rights.asks) reply_handlers = 0;
    return {words_of(shape), actors, most_sent, side_by_side, workers, rights, reply_handlers};
  }
  /// Of a message that fills a slot.
  GYRE_DEVICE static constexpr uint32_t words_of(const RingShape& shape) {
    return (shape.packets() * words_a_packet + 3) / 4 * 4;
  }

  enum : uint32_t {
    flags_words = 12,
    rare_counts_words = 8,
    most_mail_words = 4096,
    producer_words = 2,
    consumer_words = 2
  };
  enum : uint32_t {
    reply_words = 16,       ///< CallInHand
    error_words = 12,       ///< an error reply to an actor
    timer_words = 8,        ///< TimerRequest
    body_pool_words = 12,   ///< BodyPool
    body_counts_words = 8,  ///< BodyCounts
    body_record_words = 2   ///< BodyRecord
  };
  /// Messages of actors that may be in hand at once.
  GYRE_DEVICE constexpr uint32_t most_mail() const {
    const uint32_t most = mail_side_by_side ? most_mail_words / mail_stride() : 1;
    return most == 0 ? 1 : most < most_side_by_side ? most : most_side_by_side;
  }
  /// From one to the next: threads that read words of their own use different banks of shared memory.
  GYRE_DEVICE constexpr uint32_t mail_stride() const { return message_words | 4; }
  GYRE_DEVICE constexpr uint32_t rare_counts() const { return flags_words; }
  GYRE_DEVICE constexpr uint32_t types() const { return rare_counts() + rare_counts_words; }
  /// Hashes of the replies that actors take: see detail::reply_hash().
  GYRE_DEVICE constexpr uint32_t replies() const { return types() + (2 * actors + 3) / 4 * 4; }
  /// What the reply in hand is for.
  GYRE_DEVICE constexpr uint32_t call() const { return replies() + (2 * reply_handlers + 3) / 4 * 4; }
  GYRE_DEVICE constexpr uint32_t error() const { return call() + (rights.asks ? uint32_t(reply_words) : 0); }
  /// What the handler in hand asks of timers: one for each message that it may send.
  GYRE_DEVICE constexpr uint32_t timer_requests() const {
    return error() + (rights.asks ? uint32_t(error_words) : 0);
  }
  GYRE_DEVICE constexpr uint32_t body_pool() const {
    return timer_requests() + (rights.sets_timers ? most_sent * timer_words : 0);
  }
  GYRE_DEVICE constexpr uint32_t body_counts() const {
    return body_pool() + (rights.sends_large ? uint32_t(body_pool_words) : 0);
  }
  /// What the handler in hand has taken of that pool: one for each message that it may send, and one for its
  /// response.
  GYRE_DEVICE constexpr uint32_t body_records() const {
    return body_counts() + (rights.sends_large ? uint32_t(body_counts_words) : 0);
  }
  GYRE_DEVICE constexpr uint32_t mail() const {
    return body_records() + (rights.sends_large ? ((most_sent + 1) * body_record_words + 3) / 4 * 4 : 0);
  }
  GYRE_DEVICE constexpr uint32_t messages() const { return mail() + most_mail() * mail_stride(); }
  /// What the worker knows of every other: MailboxProducer::Peer and MailboxConsumer::Peer.
  GYRE_DEVICE constexpr uint32_t producers() const { return messages() + most_sent * message_words; }
  GYRE_DEVICE constexpr uint32_t consumers() const { return producers() + workers * producer_words; }
  /// Bitmaps of workers: those that are owed a limit, those that messages in the outbox wait for, and, for an
  /// engine whose workers sleep, those that were sent to.
  GYRE_DEVICE constexpr uint32_t bitmap_words() const { return (workers + 31) / 32; }
  GYRE_DEVICE constexpr uint32_t owed() const { return consumers() + workers * consumer_words; }
  GYRE_DEVICE constexpr uint32_t waits() const { return owed() + bitmap_words(); }
  GYRE_DEVICE constexpr uint32_t reached() const { return waits() + bitmap_words(); }
  GYRE_DEVICE constexpr uint32_t words() const {
    return most_sent == 0 ? 0 : (reached() + bitmap_words() + 3) / 4 * 4;
  }
};

/// A worker's counts of messages between actors that seldom grow; see WorkerLine. In the group's own memory,
/// since registers are scarce. Only the thread of rank 0 uses them.
struct RareCounts {
  uint64_t failed, refused, spilled, most_in_mailbox;
};
static_assert(sizeof(RareCounts) == StagingLayout::rare_counts_words * sizeof(uint32_t));

/// The ask whose reply is in hand. In the group's own memory.
struct CallInHand {
  alignas(16) uint32_t state[12];  ///< what the asking handler left for on_reply()
  uint64_t state_type;             ///< see OpenCall
  uint64_t reserved;
};
static_assert(sizeof(CallInHand) == StagingLayout::reply_words * sizeof(uint32_t));

/// What a handler asks of its worker's timers, beside the staged message of the same number: to set one that
/// sends that message, or to cancel one. In the group's own memory.
struct TimerRequest {
  uint64_t id;         ///< Timer::id
  uint64_t delay_ns;   ///< until its first message
  uint64_t period_ns;  ///< from one message to the next; 0: it sends one
  uint64_t cancels;    ///< 1: cancels that timer; there is no message
};
static_assert(sizeof(TimerRequest) == StagingLayout::timer_words * sizeof(uint32_t));

/// The chunk that was taken of the pool of bodies for one message of the handler in hand: see BodyPool. In
/// the group's own memory; all 0: none was.
struct BodyRecord {
  enum : uint32_t {
    none = 0,
    being_taken = 1,
    first = 2,              ///< that and larger values: the chunk's number + `first`
    in_hand = 0xfffffffe,   ///< the chunk of the message in hand, which is passed on
    none_free = 0xffffffff  ///< it was refused
  };
  uint32_t chunk;
  uint32_t bytes;  ///< that were written, by any thread

  GYRE_DEVICE bool has_chunk() const { return chunk >= first && chunk < in_hand; }
  GYRE_DEVICE uint32_t number() const { return chunk - first; }
};
static_assert(sizeof(BodyRecord) == StagingLayout::body_record_words * sizeof(uint32_t));

/// Counts of chunks, and of messages for which there was none; see WorkerLine. In the group's own memory.
struct BodyCounts {
  uint64_t taken, freed, refused, reserved;
};
static_assert(sizeof(BodyCounts) == StagingLayout::body_counts_words * sizeof(uint32_t));

class BodyPool;

/// Where a handler finds the memory for what it sends. Refers to it. A plain value.
struct Staging {
  enum : uint32_t {
    no_actor = 0xffffffff,
    nobody = 0xffff,
    envelope_words = sizeof(Envelope) / sizeof(uint32_t)
  };

  uint32_t* memory = nullptr;
  StagingLayout layout;
  uint32_t body_capacity = 0;  ///< bytes

  template <class T>
  GYRE_DEVICE T* at(uint32_t words) const {
    return reinterpret_cast<T*>(memory + words);
  }
  /// The number of the type of the actor that told the message in hand, which is mail; `nobody` if the host
  /// sent it and an actor forwarded it.
  GYRE_DEVICE uint32_t& sender_type() const { return memory[4]; }
  /// Messages to the host that the worker has room for; see Worker::update_host_room().
  GYRE_DEVICE uint32_t& host_room() const { return memory[5]; }
  /// Keys that actors of this worker gave to those that they created.
  GYRE_DEVICE uint64_t& spawned() const { return *at<uint64_t>(6); }
  /// Subscriptions of the worker's actors.
  GYRE_DEVICE uint32_t& subscriptions() const { return memory[9]; }
  /// Timers of the worker that are set; those that were ever set.
  GYRE_DEVICE uint32_t& timers() const { return memory[8]; }
  GYRE_DEVICE uint64_t& timers_ever() const { return *at<uint64_t>(10); }
  GYRE_DEVICE TimerRequest& timer_request(uint32_t n) const {
    return at<TimerRequest>(layout.timer_requests())[n];
  }
  GYRE_DEVICE BodyPool& body_pool() const { return *at<BodyPool>(layout.body_pool()); }
  GYRE_DEVICE RareCounts& rare_counts() const { return *at<RareCounts>(layout.rare_counts()); }
  GYRE_DEVICE BodyCounts& body_counts() const { return *at<BodyCounts>(layout.body_counts()); }
  /// Of the n-th message that the handler in hand stages; of number most_sent: of its response.
  GYRE_DEVICE BodyRecord& body(uint32_t n) const { return at<BodyRecord>(layout.body_records())[n]; }
  /// Calls of the worker that are open: see OpenCalls.
  GYRE_DEVICE uint32_t& open_calls() const { return memory[3]; }
  GYRE_DEVICE CallInHand& call() const { return *at<CallInHand>(layout.call()); }
  /// Where the worker builds an error reply to an actor that its handlers do not.
  GYRE_DEVICE uint32_t* error() const { return memory + layout.error(); }
  GYRE_DEVICE uint64_t* replies() const { return at<uint64_t>(layout.replies()); }
  /// Whether an actor of the set takes the reply with that detail::reply_hash().
  GYRE_DEVICE bool takes_reply(uint64_t hash) const {
    GYRE_ROLLED
    for (uint32_t n = 0; n < layout.reply_handlers; ++n) {
      if (replies()[n] == hash) return true;
    }
    return false;
  }
  /// Slots of the worker's mailbox that no other holds: see MailboxConsumer.
  GYRE_DEVICE uint32_t& spare() const { return memory[2]; }
  /// The sending worker's number, in the group's memory.
  GYRE_DEVICE uint32_t& worker() const { return memory[1]; }
  /// Not 0 if the message in hand is mail, as the polling threads found.
  GYRE_DEVICE uint32_t& from_mail() const { return memory[0]; }
  GYRE_DEVICE uint32_t* message(uint32_t n) const {
    return memory + layout.messages() + n * layout.message_words;
  }
  /// Clears the first `count` messages. Collective over PollGroup; it has no barrier.
  GYRE_DEVICE void clear(uint32_t count) const { clear(0, count); }
  /// The same from message `first` on.
  GYRE_DEVICE void clear(uint32_t first, uint32_t count) const {
    auto* const packets = reinterpret_cast<Packet*>(message(first));
    const uint32_t end = count * layout.message_words * sizeof(uint32_t) / sizeof(Packet);
    GYRE_ROLLED
    for (uint32_t i = PollGroup::rank(); i < end; i += PollGroup::size()) packets[i] = Packet{};
  }
  /// The n-th message of an actor that is in hand.
  GYRE_DEVICE uint32_t* mail(uint32_t n) const { return memory + layout.mail() + n * layout.mail_stride(); }
  GYRE_DEVICE uint64_t* types() const { return reinterpret_cast<uint64_t*>(memory + layout.types()); }
  /// Returns the number of the actor type with that detail::type_hash(); no_actor if the set has none.
  GYRE_DEVICE uint32_t number_of(uint64_t hash) const {
    uint32_t number = no_actor;
    // All are read at once: to end at the one that is found would wait for each.
    for (uint32_t n = 0; n < layout.actors; ++n) {
      if (types()[n] == hash) number = n;
    }
    return number;
  }
};

}  // namespace gyre
