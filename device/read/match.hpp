// Whether a request resembles the last one that took the fast path: then it may take it too, without another
// check of its root. A worker of one warp compares packets, each in the registers of the thread that loaded
// it (PacketMatch). Any other worker compares heads (RequestHead::mismatch_bits).
#pragma once

#include <gyre/device/platform.hpp>
#include <gyre/device/read/request_head.hpp>

namespace gyre {

/// True in a worker that is one warp of a GPU.
inline constexpr bool compares_packets = HandlerGroup::all_threads_poll() && !samples_command_each_poll;

/// What the calling thread's packet of a request must contain for the request to match a remembered one.
class PacketMatch {
 public:
  /// How many 64-bit words of a body can be compared: those in a warp's packets.
  static constexpr uint32_t body_words = (32 * words_a_packet - uint32_t(sizeof(Envelope) / 4)) / 2;

  /// Remembers `request`. Another request matches if it has the same size, handler and key, has no flag but
  /// `ask`, and its body equals in the chosen words.
  /// @param k           the packet that this thread loads
  /// @param body_words  bit i: 64-bit word i of the body must be equal
  GYRE_DEVICE void remember(const uint32_t* request, uint32_t k, uint64_t body_words) {
    for (uint32_t i = 0; i < words_a_packet; ++i) {
      const uint32_t w = k * words_a_packet + i;
      expected_[i] = request[w];
      compared_bits_[i] = bits_to_compare(w, body_words);
    }
    deadline_ = k * words_a_packet == deadline_word ? sign_bit : 0;
  }
  /// Not 0 where `packet` does not match, or has a deadline that lies before `now_us`.
  GYRE_DEVICE uint32_t mismatch_bits(const Packet& packet, uint32_t now_us) const {
    return ((packet.data[0] ^ expected_[0]) & compared_bits_[0]) |
           ((packet.data[1] ^ expected_[1]) & compared_bits_[1]) |
           ((packet.data[2] ^ expected_[2]) & compared_bits_[2]) |
           (sign_if_past(packet.data[0], now_us) & deadline_);
  }

 private:
  static constexpr uint32_t sign_bit = 0x80000000, deadline_word = 3, flags_word = 7, envelope_words = 8;
  static constexpr uint32_t compared_envelope_words = 1u << 2 | 1u << 4 | 1u << 5 | 1u << 6;

  GYRE_DEVICE static uint32_t bits_to_compare(uint32_t w, uint64_t body_words) {
    if (w == flags_word) return ~(uint32_t(envelope_flags::ask) << 24);
    const uint64_t compared = w < envelope_words ? uint64_t(compared_envelope_words) >> w
                                                 : body_words >> ((w - envelope_words) / 2);
    return (compared & 1) != 0 ? 0xffffffff : 0;
  }

  uint32_t expected_[words_a_packet] = {};
  uint32_t compared_bits_[words_a_packet] = {};
  uint32_t deadline_ = 0;  // the sign bit in the thread whose packet begins with the deadline, else 0
};

}  // namespace gyre
