// What a worker of a set that sends has of its own beside MessageMemory: the messages that a handler builds,
// and the mail in hand.
#pragma once

#include <gyre/device/read/request_reader.hpp>

namespace gyre {

/// How a message between actors differs from the host's: in three fields of its envelope. A worker takes the
/// last two out before it handles the message.
///
///   correlation         the sending actor's key
///   origin              the sending worker's number + 1
///   body_bytes          the sending actor's type in the upper 16 bits
struct MailHead {
  // Functions and enumerators, not variables: NVRTC would keep those in kernels that do not send.
  enum : uint32_t {
    size_mask = 0xffff,
    origin_mask = 0xffff,
    size_word = 2,   ///< of the envelope; a packet has three words
    origin_word = 7  ///< as size_word
  };

  GYRE_DEVICE static void mark(Envelope& envelope, uint32_t worker, uint32_t actor_type) {
    envelope.body_bytes |= actor_type << 16;
    envelope.origin = uint16_t(worker + 1);
  }
  GYRE_DEVICE static uint32_t body_bytes(uint32_t size) { return size & size_mask; }
  /// Takes out of packet `k` what the host's messages do not have.
  GYRE_DEVICE static void unmark(Packet& packet, uint32_t k) {
    if (k == size_word / words_a_packet) packet.data[size_word % words_a_packet] &= size_mask;
    if (k == origin_word / words_a_packet) packet.data[origin_word % words_a_packet] &= ~origin_mask;
  }
};

/// The parts of that memory, in words. In the group's own memory, behind that of MessageMemory; zeroed at
/// first. A value, the same on both sides.
struct StagingLayout {
  uint32_t message_words = 0;  ///< of one message
  uint32_t actors = 0;         ///< types of the set
  uint32_t most_sent = 0;      ///< messages that a handler may send, at most; 0: no handler sends

  enum : uint32_t { flags_words = 4 };
  GYRE_DEVICE constexpr uint32_t types() const { return flags_words; }
  GYRE_DEVICE constexpr uint32_t mail() const { return types() + (2 * actors + 3) / 4 * 4; }
  GYRE_DEVICE constexpr uint32_t messages() const { return mail() + message_words; }
  GYRE_DEVICE constexpr uint32_t words() const {
    return most_sent == 0 ? 0 : messages() + most_sent * message_words;
  }
};

/// Where a handler finds the memory for what it sends. Refers to it. A plain value.
struct Staging {
  enum : uint32_t { no_actor = 0xffffffff, envelope_words = sizeof(Envelope) / sizeof(uint32_t) };

  uint32_t* memory = nullptr;
  StagingLayout layout;
  uint32_t body_capacity = 0;  ///< bytes

  /// The sending worker's number, in the group's memory.
  GYRE_DEVICE uint32_t& worker() const { return memory[1]; }
  /// Not 0 if the message in hand is mail, as the polling threads found.
  GYRE_DEVICE uint32_t& from_mail() const { return memory[0]; }
  GYRE_DEVICE uint32_t* message(uint32_t n) const {
    return memory + layout.messages() + n * layout.message_words;
  }
  GYRE_DEVICE uint64_t* types() const { return reinterpret_cast<uint64_t*>(memory + layout.types()); }
  /// Returns the number of the actor type with that detail::type_hash(); no_actor if the set has none.
  GYRE_DEVICE uint32_t number_of(uint64_t hash) const {
    for (uint32_t n = 0; n < layout.actors; ++n) {
      if (types()[n] == hash) return n;
    }
    return no_actor;
  }
};

}  // namespace gyre
