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
}  // namespace envelope_flags

/// In-band control messages (Envelope::message_type where flags has `control`).
enum class Control : uint16_t {
  drain = 1,  ///< answered by the same control message once everything before it is done
};

/// The head of a message: 32 bytes, followed by body_bytes bytes of Cap'n Proto (one unpacked segment).
/// body_bytes lies in the first 12 bytes, so a slot's first packet alone says how many packets the message
/// needs.
struct Envelope {
  uint64_t correlation;   ///< the ask's call slot and generation; echoed by its reply; 0 for a tell
  uint32_t body_bytes;    ///< a multiple of 8
  uint32_t deadline_us;   ///< microseconds since launch, compared serially; 0: none
  uint64_t key;           ///< the actor's key
  uint16_t actor_type;    ///< index in the launched actor set
  uint16_t message_type;  ///< index among the actor's handlers
  uint16_t origin;        ///< who sent it; 0: the host
  uint8_t priority;
  uint8_t flags;  ///< envelope_flags
};
static_assert(sizeof(Envelope) == 32 && alignof(Envelope) == 8, "the envelope is 32 bytes on both sides");
static_assert(offsetof(Envelope, correlation) == 0 && offsetof(Envelope, body_bytes) == 8 &&
                  offsetof(Envelope, deadline_us) == 12 && offsetof(Envelope, key) == 16 &&
                  offsetof(Envelope, actor_type) == 24 && offsetof(Envelope, message_type) == 26 &&
                  offsetof(Envelope, origin) == 28 && offsetof(Envelope, priority) == 30 &&
                  offsetof(Envelope, flags) == 31,
              "the envelope's fields lie alike on both sides");

/// The body of an error reply.
struct ErrorBody {
  Status status;
  uint32_t
      detail;  ///< malformed: word offset of the offending pointer; handler_failed: the handler's own code
  uint64_t reserved;
};
static_assert(sizeof(ErrorBody) == 16, "an error body is 16 bytes on both sides");

}  // namespace gyre
