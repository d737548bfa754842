// The fixed header in front of each message's body, the same bytes on both sides.
#pragma once

#include <gyre/messages/fixed_width.hpp>
#include <gyre/messages/status.hpp>

namespace gyre {

/// Bits of Envelope::flags.
namespace envelope_flags {
inline constexpr uint8_t ask = 1;      ///< the sender waits for a reply
inline constexpr uint8_t control = 2;  ///< for the worker itself; message_type is a Control
inline constexpr uint8_t error = 4;    ///< a reply whose body is an ErrorBody
/// A request whose slot carries an OutOfLine in front of, or instead of, its body. Every reply to it has the
/// flag too, and OutOfLine::block as its key. Of a message between actors: its slot carries a BodyPlace
/// instead of its body.
inline constexpr uint8_t out_of_line = 8;
/// A reply whose body is in the block that its request brought; the slot carries an OutOfLineReply.
inline constexpr uint8_t reply_in_block = 16;
/// In the asking worker alone: a reply to the ask of an actor, for its on_reply() or on_failure().
inline constexpr uint8_t to_asker = 32;
/// A message of an actor to the host: `correlation` is the message's Cap'n Proto type id, `key` and
/// `actor_type` are the actor's.
inline constexpr uint8_t to_host = 64;
/// Of a message that a handler has staged: for the worker's timers. Of one that is sent: a timer's, for the
/// actor that set it. It does not create that actor.
inline constexpr uint8_t timer = 128;
}  // namespace envelope_flags

/// In-band control messages (Envelope::message_type where flags has `control`).
enum class Control : uint16_t {
  drain = 1,  ///< answered by the same control message once everything before it is done
  // Asks of the host: the worker answers them like other asks, by the reply that ActorsRead describes. No
  // handler has these numbers.
  read_state = 0xfffb,  ///< for the state of the actor with the envelope's type and key
  read_slots = 0xfffa,  ///< for slots of the type's table; the key is a SlotRange
};
/// Whether a message is Control::read_state or Control::read_slots. Of those with the flag `control`.
GYRE_DEVICE constexpr bool reads_actors(uint16_t message_type) {
  return message_type == uint16_t(Control::read_state) || message_type == uint16_t(Control::read_slots);
}
/// Slots of an actor table, in Envelope::key; those past the table's end are its first ones.
struct SlotRange {
  uint32_t first, count;
  GYRE_DEVICE static constexpr SlotRange of(uint64_t key) { return {uint32_t(key), uint32_t(key >> 32)}; }
  GYRE_DEVICE constexpr uint64_t key() const { return first | uint64_t(count) << 32; }
};
/// The front of the reply to Control::read_state and Control::read_slots. Behind it lie the bytes that were
/// asked for: the actor's state, rounded up to 16 bytes, or ActorTableLayout::Slots. 16 bytes on both sides.
struct ActorsRead {
  uint32_t bytes;   ///< of the state, or of all slots that follow
  uint32_t slots;   ///< that the table has
  uint32_t living;  ///< actors in the table
  uint32_t reserved;
};
static_assert(sizeof(ActorsRead) == 16, "states stay 16-aligned behind it");

/// Envelope::message_type of the two asks that every actor type answers. They have an empty body.
namespace lifecycle_message {
inline constexpr uint16_t start = 0xffff;  ///< the actor is there afterwards
inline constexpr uint16_t stop = 0xfffe;   ///< the actor is gone afterwards; no_such_actor if there was none
}  // namespace lifecycle_message

/// Envelope::priority of messages that one worker sends to several, and of what a handler asks of topics.
namespace fan_out {
// Not variables, which NVRTC would keep in every module.
enum : uint8_t {
  to_type = 1,   ///< for each actor of the type Envelope::actor_type
  to_topic = 2,  ///< for each subscriber: see FanOutHead
  // Of what a handler has staged:
  subscribe = 3,
  unsubscribe = 4
};
}  // namespace fan_out

/// Envelope::message_type of what workers send each other about the asks of actors.
namespace call_message {
inline constexpr uint16_t reply = 0xfffd;   ///< for on_reply() or on_failure(); with envelope_flags::to_asker
inline constexpr uint16_t answer = 0xfffc;  ///< for the worker alone: what an ask ends with that it holds
}  // namespace call_message

/// The head of a message: 32 bytes, followed by body_bytes bytes of Cap'n Proto (one unpacked segment).
/// body_bytes lies in the first 12 bytes, so a slot's first packet alone says how many packets the message
/// needs.
struct Envelope {
  uint64_t correlation;   ///< the ask's call slot and generation; echoed by its reply; 0 for a tell
  uint32_t body_bytes;    ///< a multiple of 8
  uint32_t deadline_us;   ///< microseconds of the host's clock, their low 32 bits, compared serially; 0: none
  uint64_t key;           ///< the actor's key
  uint16_t actor_type;    ///< index in the launched actor set
  uint16_t message_type;  ///< index among the actor's handlers
  uint16_t origin;        ///< who sent it; 0: the host
  uint8_t priority;       ///< of messages between workers a fan_out value; else 0
  uint8_t flags;          ///< envelope_flags
};
static_assert(sizeof(Envelope) == 32 && alignof(Envelope) == 8, "the envelope is 32 bytes on both sides");
static_assert(offsetof(Envelope, correlation) == 0 && offsetof(Envelope, body_bytes) == 8 &&
                  offsetof(Envelope, deadline_us) == 12 && offsetof(Envelope, key) == 16 &&
                  offsetof(Envelope, actor_type) == 24 && offsetof(Envelope, message_type) == 26 &&
                  offsetof(Envelope, origin) == 28 && offsetof(Envelope, priority) == 30 &&
                  offsetof(Envelope, flags) == 31,
              "the envelope's fields lie alike on both sides");

/// Names the block of the region's arena that a request brings if its body, or its reply, may not fit a slot.
/// The host allocates and frees all blocks. Offsets are in bytes from the arena's start, multiples of 16.
struct OutOfLine {
  uint64_t block;           ///< the host's name for the block, given back with the reply
  uint64_t request_offset;  ///< of the body
  uint64_t reply_offset;    ///< of the zeroed room for the reply's body
  uint32_t request_bytes;   ///< of the body; 0: it lies behind this struct, in the slot
  uint32_t reply_capacity;  ///< 0: the reply must fit its slot
};
static_assert(sizeof(OutOfLine) == 32,
              "an out-of-line head is 32 bytes on both sides, so that bodies stay 16-aligned");

/// Lies in the slot of a reply whose body is in its request's block.
struct OutOfLineReply {
  uint64_t body_bytes;
  uint64_t reserved;
};

/// Names the chunk of the engine's memory that holds the body of a message between actors: see BodyPool.
struct BodyPlace {
  uint32_t chunk;
  uint32_t bytes;  ///< of the body
  uint64_t reserved;
};
static_assert(sizeof(BodyPlace) == 16, "the place of a body fits the smallest slot");

/// What was wrong with a malformed body, and with which field, in 8 bytes: the low 40 bits of the Cap'n Proto
/// id of the field's struct, the reason (a wire::Malformed), the field's index in its struct (0xffff: the
/// root pointer).
struct MalformedField {
  uint64_t packed;

  GYRE_DEVICE static MalformedField of(uint64_t type_id, uint8_t reason, uint16_t index) {
    return {type_id << 24 | uint64_t(reason) << 16 | index};
  }
  GYRE_DEVICE uint64_t type_id_low_40() const { return packed >> 24; }
  GYRE_DEVICE uint8_t reason() const { return uint8_t(packed >> 16); }
  GYRE_DEVICE uint16_t index() const { return uint16_t(packed); }
};

/// The body of an error reply.
struct ErrorBody {
  Status status;
  /// malformed: word offset of the offending pointer; handler_failed: the handler's own code; check_failed:
  /// the line; reply_too_large: the capacity in bytes; expired: how late, in microseconds; actor_table_full:
  /// actors there is room for; bad_buffer: see BadHandle; scratch_full: the actor's scratch_bytes;
  /// mailbox_full: the worker that refused it; open_calls_full: calls that a worker has room for;
  /// timers_full: timers that a worker has room for; subscriptions_full: subscriptions likewise;
  /// no_such_actor: 1 where it was to be read
  /// body_pool_full: the worker that found no chunk
  uint32_t detail;
  uint64_t where;  ///< malformed: a MalformedField; check_failed: a source_name_hash; expired: the actor's
                   ///< key; bad_buffer: see BadHandle; scratch_full: bytes that the handler wanted in all;
                   ///< mailbox_full, body_pool_full, actor_stopped: the key of the actor that did not get it,
                   ///< or was stopped
};
static_assert(sizeof(ErrorBody) == 16, "an error body is 16 bytes on both sides");

}  // namespace gyre
