// From packets to payload, on the host: four packets of 12 data bytes make three stores of 16.
#pragma once

#include <gyre/bridge/ring.hpp>

#include <bit>

namespace gyre {

/// What unpacking moves at once: 48 bytes of payload, of four packets. Slots hold whole such groups.
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
    const auto a = std::bit_cast<__m128i>(Memory::load(slot[0]));
    const auto b = std::bit_cast<__m128i>(Memory::load(slot[1]));
    const auto c = std::bit_cast<__m128i>(Memory::load(slot[2]));
    const auto d = std::bit_cast<__m128i>(Memory::load(slot[3]));
    _mm_store_si128(out, _mm_or_si128(_mm_and_si128(a, data), _mm_slli_si128(b, 12)));
    _mm_store_si128(out + 1, _mm_or_si128(_mm_srli_si128(_mm_and_si128(b, data), 4), _mm_slli_si128(c, 8)));
    _mm_store_si128(out + 2, _mm_or_si128(_mm_srli_si128(_mm_and_si128(c, data), 8), _mm_slli_si128(d, 4)));
  }
}

}  // namespace gyre
