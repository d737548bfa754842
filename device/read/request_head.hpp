// The part of a request that decides how it is handled, in registers.
#pragma once

#include <gyre/bridge/region.hpp>

#if !defined(__CUDACC_RTC__)
#include <cstring>
#endif

namespace gyre {

/// Sets the sign bit where a deadline (Envelope::deadline_us) lies before `now_us`; the other bits mean
/// nothing. Bits, not a bool: a lone warp waits longer for a predicate than for a word.
GYRE_DEVICE inline uint32_t sign_if_past(uint32_t deadline_us, uint32_t now_us) {
  const uint32_t past = deadline_us - now_us, has_deadline = deadline_us | (0 - deadline_us);
  return past & has_deadline;
}

/// The first 64 bytes of a request as words: its envelope, the pointer to its root, and the words behind that
/// pointer, which are the root's where it lies there. Words past the end of a short request, or of a small
/// slot, hold anything.
struct RequestHead {
  static constexpr uint32_t words = 16;
  static constexpr uint32_t root_words = 3;  ///< of 64 bits, behind the pointer

  uint32_t word[words];

  /// @param request  16-aligned
  GYRE_DEVICE static RequestHead load(const uint32_t* request) {
#if defined(__CUDACC_RTC__)
    const uint4* const quarters = reinterpret_cast<const uint4*>(request);
    const uint4 a = quarters[0], b = quarters[1], c = quarters[2], d = quarters[3];
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w, d.x, d.y, d.z, d.w}};
#else
    RequestHead head;
    memcpy(head.word, request, sizeof head);
    return head;
#endif
  }
  GYRE_DEVICE uint32_t body_bytes() const { return word[2]; }
  GYRE_DEVICE uint32_t deadline_us() const { return word[3]; }
  GYRE_DEVICE uint64_t key() const { return word[4] | uint64_t(word[5]) << 32; }
  /// Actor type in the low 16 bits, message type above it.
  GYRE_DEVICE uint32_t types() const { return word[6]; }
  /// Origin and priority, and the flags in the highest byte.
  GYRE_DEVICE uint32_t flags() const { return word[7]; }
  /// Whether it is a reply for the actor that asked (envelope_flags::to_asker).
  GYRE_DEVICE bool is_for_asker() const { return (flags() >> 24 & envelope_flags::to_asker) != 0; }
  /// Of such a reply: see ActorTable::incarnation_of().
  GYRE_DEVICE uint32_t asker_incarnation() const { return word[0]; }
  /// 0 where both are such replies for the same actor.
  GYRE_DEVICE uint32_t asker_mismatch_bits(const RequestHead& other) const {
    return (word[0] ^ other.word[0]) | (word[4] ^ other.word[4]) | (word[5] ^ other.word[5]) |
           (word[6] ^ other.word[6]);
  }
  GYRE_DEVICE uint64_t root_word() const { return word[8] | uint64_t(word[9]) << 32; }
  /// The k-th 64-bit word behind the root's pointer; k is below root_words.
  GYRE_DEVICE uint64_t behind_root_word(uint32_t k) const {
    return word[10 + 2 * k] | uint64_t(word[11 + 2 * k]) << 32;
  }

  /// A head that matches no message.
  GYRE_DEVICE static constexpr RequestHead of_none() { return {{0, 0, 0xffffffff, 0, 0, 0, 0xffffffff}}; }
  /// After it no message for that actor matches.
  GYRE_DEVICE void forget_actor() { word[6] = 0xffffffff; }
  /// After it no message matches that has a root: no pointer to one has these lower 32 bits.
  GYRE_DEVICE void forget_root() { word[8] = 0xffffffff; }
  /// After it no message of that size matches.
  GYRE_DEVICE void forget_size() { word[2] = 0xffffffff; }
  /// Not 0 where the request's deadline lies before `now_us`.
  GYRE_DEVICE uint32_t late_bit(uint32_t now_us) const {
    constexpr uint32_t sign_bit = 31;
    return sign_if_past(deadline_us(), now_us) >> sign_bit;
  }
  /// 0 where both requests have the same size, actor and handler, and roots that lie in the same place.
  GYRE_DEVICE uint32_t mismatch_bits(const RequestHead& other) const {
    return ((word[2] ^ other.word[2]) | (word[4] ^ other.word[4]) | (word[5] ^ other.word[5]) |
            (word[6] ^ other.word[6]) | (word[8] ^ other.word[8]) | (word[9] ^ other.word[9]));
  }
};

}  // namespace gyre
