// Messages as the host puts them into slots, and as it finds them there.
#pragma once

#include <gyre/runtime/core/packing.hpp>

#include <algorithm>
#include <cstring>

namespace gyre {

/// The envelope in front of an unpacked message.
inline Envelope envelope_of(const uint32_t* payload) {
  Envelope envelope;
  std::memcpy(&envelope, payload, sizeof envelope);
  return envelope;
}

/// A message that lies whole in a slot of the D2H ring, for as long as HostBridge::drain hands it out.
class ArrivedReply {
 public:
  /// @param body_capacity  of a slot; a larger size, which a slot has that was overwritten since it was
  /// polled, is cut
  ArrivedReply(const Packet* slot, uint32_t body_capacity) : slot_(slot) {
    // Bytes 0…11 and 24…35 of the envelope and what follows it.
    const Packet first = Memory::load(slot[0]), third = Memory::load(slot[2]);
    correlation_ = first.data[0] | uint64_t(first.data[1]) << 32;
    body_bytes_ = std::min(body_bytes_in(first), body_capacity);
    flags_ = uint8_t(third.data[1] >> 24);
  }

  // The fields that every reply needs. The others cost unpacking.
  uint64_t correlation() const { return correlation_; }
  uint32_t body_bytes() const { return body_bytes_; }
  uint8_t flags() const { return flags_; }

  Envelope envelope() const {
    Envelope envelope = head().envelope;
    envelope.body_bytes = body_bytes_;
    return envelope;
  }
  /// The body's first 16 bytes: all of an ErrorBody, or of an OutOfLineReply.
  template <class T>
  T body_as() const {
    static_assert(sizeof(T) <= sizeof(Head::body));
    const Head unpacked = head();
    T value;
    std::memcpy(&value, unpacked.body, sizeof value);
    return value;
  }
  /// Writes envelope and body to `place`, 16-aligned, in groups of 48 bytes: up to 47 bytes behind the body.
  void unpack(std::byte* place) const { gyre::unpack(slot_, groups_for(body_bytes_), place); }

 private:
  struct alignas(16) Head {
    Envelope envelope;
    std::byte body[16];
  };
  static_assert(sizeof(Head) == group_bytes);
  Head head() const {
    Head head;
    gyre::unpack(slot_, 1, &head);
    return head;
  }

  const Packet* slot_;
  uint64_t correlation_;
  uint32_t body_bytes_;
  uint8_t flags_;
};

/// What goes into a slot: an envelope and a body.
class SlotMessage {
 public:
  SlotMessage() = default;
  /// `body`: 8-aligned, with 8 bytes behind it that may be read; `root`: its first 8 bytes, which need not
  /// be there yet.
  SlotMessage(const Envelope& envelope, const void* body, uint64_t root)
      : first_(first_group(envelope, root, word_8(body, envelope.body_bytes))),
        body_(static_cast<const uint32_t*>(body)),
        body_bytes_(envelope.body_bytes) {}
  /// `payload`: envelope and body as words, padded to whole packets.
  SlotMessage(const uint32_t* payload, uint32_t body_bytes)
      : SlotMessage(envelope_of(payload, body_bytes), payload + words_of_envelope,
                    word_0(payload + words_of_envelope, body_bytes)) {}

  uint32_t body_bytes() const { return body_bytes_; }
  /// Packs `packets` packets, at least 3, into a slot.
  void pack(uint32_t packets, uint32_t stamp, Packet* slot) const {
    gyre::pack(first_, packets, stamp, slot);
    if (packets > packets_a_group)
      gyre::pack(body_ + words_in_first, packets - packets_a_group, stamp, slot + packets_a_group);
  }

 private:
  static constexpr uint32_t words_of_envelope = sizeof(Envelope) / sizeof(uint32_t);
  static constexpr uint32_t words_in_first = (group_bytes - sizeof(Envelope)) / sizeof(uint32_t);
  static Envelope envelope_of(const uint32_t* payload, uint32_t body_bytes) {
    Envelope envelope = gyre::envelope_of(payload);
    envelope.body_bytes = body_bytes;
    return envelope;
  }
  static uint64_t word_0(const void* body, uint32_t body_bytes) {
    uint64_t word = 0;
    std::memcpy(&word, body, std::min<size_t>(body_bytes, sizeof word));
    return word;
  }
  static uint64_t word_8(const void* body, uint32_t body_bytes) {
    uint64_t word = 0;
    if (body_bytes > sizeof word)
      std::memcpy(&word, static_cast<const std::byte*>(body) + sizeof word, sizeof word);
    return word;
  }

  Group48 first_;
  const uint32_t* body_;
  uint32_t body_bytes_;
};

}  // namespace gyre
