// From payload to packets and back, on the host: four packets of 12 data bytes are three times 16.
#pragma once

#include <gyre/bridge/ring.hpp>

namespace gyre {

/// What moves at once: 48 bytes of payload, of four packets. Slots hold whole such groups.
inline constexpr uint32_t packets_a_group = 4;
inline constexpr uint32_t group_bytes = packets_a_group * data_bytes_a_packet;

/// Groups that carry an envelope and `body_bytes` of body.
constexpr uint32_t groups_for(uint32_t body_bytes) {
  return (packets_for(body_bytes) + packets_a_group - 1) / packets_a_group;
}

/// Unpacks `groups` groups of a slot to `payload`, 16-aligned.
inline void unpack(const Packet* slot, uint32_t groups, void* payload) {
  const __m128i data = _mm_set_epi32(0, -1, -1, -1);
  auto* out = static_cast<__m128i*>(payload);
  for (uint32_t g = 0; g < groups; ++g, slot += packets_a_group, out += 3) {
    const __m128i a = Memory::load_vector(slot[0]), b = Memory::load_vector(slot[1]);
    const __m128i c = Memory::load_vector(slot[2]), d = Memory::load_vector(slot[3]);
    _mm_store_si128(out, _mm_or_si128(_mm_and_si128(a, data), _mm_slli_si128(b, 12)));
    _mm_store_si128(out + 1, _mm_or_si128(_mm_srli_si128(_mm_and_si128(b, data), 4), _mm_slli_si128(c, 8)));
    _mm_store_si128(out + 2, _mm_or_si128(_mm_srli_si128(_mm_and_si128(c, data), 8), _mm_slli_si128(d, 4)));
  }
}

/// 48 bytes of a payload, in registers.
struct Group48 {
  __m128i a, b, c;
};

/// A payload's first 48 bytes: the envelope, and the body's first 16. Put together in registers: a processor
/// that has just stored 16 bytes piece by piece cannot hand them on to a load.
inline Group48 first_group(const Envelope& envelope, uint64_t body_0, uint64_t body_8) {
  const uint64_t second = envelope.body_bytes | uint64_t(envelope.deadline_us) << 32;
  const uint64_t fourth = envelope.actor_type | uint64_t(envelope.message_type) << 16 |
                          uint64_t(envelope.origin) << 32 | uint64_t(envelope.priority) << 48 |
                          uint64_t(envelope.flags) << 56;
  return {_mm_set_epi64x(int64_t(second), int64_t(envelope.correlation)),
          _mm_set_epi64x(int64_t(fourth), int64_t(envelope.key)),
          _mm_set_epi64x(int64_t(body_8), int64_t(body_0))};
}

/// Packs 48 bytes into 4 packets of a slot, or the first of them into 3 where no more are wanted.
inline void pack(const Group48& group, uint32_t packets, uint32_t stamp, Packet* slot) {
  const __m128i data = _mm_set_epi32(0, -1, -1, -1), stamped = _mm_set_epi32(int(stamp), 0, 0, 0);
  const auto store = [&](uint32_t k, __m128i words) {
    Memory::store_vector(slot[k], _mm_or_si128(_mm_and_si128(words, data), stamped));
  };
  const auto& [a, b, c] = group;
  store(0, a);
  store(1, _mm_or_si128(_mm_srli_si128(a, 12), _mm_slli_si128(b, 4)));
  store(2, _mm_or_si128(_mm_srli_si128(b, 8), _mm_slli_si128(c, 8)));
  if (packets >= packets_a_group) store(3, _mm_srli_si128(c, 4));
}

/// Packs the first `packets` packets of a payload, or of what follows its first groups, into a slot, all with
/// `stamp`. `payload`: as publish() takes it.
inline void pack(const uint32_t* payload, uint32_t packets, uint32_t stamp, Packet* slot) {
  uint32_t k = 0;
  for (; k + packets_a_group <= packets; k += packets_a_group, payload += group_bytes / sizeof *payload) {
    const auto* const from = reinterpret_cast<const __m128i*>(payload);
    const Group48 group{_mm_loadu_si128(from), _mm_loadu_si128(from + 1), _mm_loadu_si128(from + 2)};
    pack(group, packets_a_group, stamp, slot + k);
  }
  for (; k < packets; ++k, payload += words_a_packet) {
    Memory::store(slot[k], Packet{{payload[0], payload[1], payload[2]}, stamp});
  }
}

}  // namespace gyre
