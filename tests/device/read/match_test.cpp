// Which messages match the last one of the fast path, packet by packet, as the threads of a warp compare
// them.
#include <gyre/device/read/match.hpp>

#include <random>
#include <vector>

#include "support/catch.hpp"

namespace {

using namespace gyre;

constexpr uint32_t packets = 32, words = packets * words_a_packet, now_us = 1'000'000;

using Message = std::vector<uint32_t>;  // `words` of an envelope and a body

Packet packet(const Message& message, uint32_t k) {
  return {{message[3 * k], message[3 * k + 1], message[3 * k + 2]}, 0};
}

// Whether every thread finds that its packet matches.
bool matches(const Message& message, const Message& other, uint64_t body_words) {
  bool all_match = true;
  for (uint32_t k = 0; k < packets; ++k) {
    PacketMatch match;
    match.remember(message.data(), k, body_words);
    all_match = all_match && match.mismatch_bits(packet(other, k), now_us) == 0;
  }
  return all_match;
}

Message any_message(std::mt19937_64& random) {
  Message message(words);
  for (uint32_t& word : message) word = uint32_t(random());
  message[3] = 0;                                                  // no deadline
  message[7] = random() % 2 == 0 ? envelope_flags::ask << 24 : 0;  // no more than an ask or a tell
  return message;
}

TEST_CASE("a message matches where its size, key, types, flags and the compared words are equal") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const Message message = any_message(random);
    const uint64_t body_words = (random() | 1) & ((uint64_t(1) << PacketMatch::body_words) - 1);
    REQUIRE(matches(message, message, body_words));
    for (uint32_t w = 0; w < words; ++w) {
      Message other = message;
      other[w] ^= uint32_t(1) << random() % 32;
      if (w == 3) other[w] = now_us;  // a deadline that is not past
      INFO("word " << w);
      const bool in_envelope = w == 2 || w == 4 || w == 5 || w == 6;
      const bool is_compared = w < 8 ? in_envelope : (body_words >> (w - 8) / 2 & 1) != 0;
      // The one flag that may differ is whether it is an ask.
      const bool same_flags = ((other[7] ^ message[7]) & ~(uint32_t(envelope_flags::ask) << 24)) == 0;
      REQUIRE(matches(message, other, body_words) == (!is_compared && same_flags));
    }
  }
}

TEST_CASE("a message whose deadline is past matches no other, also where the clock passes 2^32") {
  std::mt19937_64 random(4);
  const Message message = any_message(random);
  const auto matches_with_deadline = [&](uint32_t deadline_us) {
    Message other = message;
    other[3] = deadline_us;
    return matches(message, other, 1);
  };
  CHECK(matches_with_deadline(0));  // none
  CHECK(matches_with_deadline(now_us));
  CHECK(matches_with_deadline(now_us + 1));
  CHECK(matches_with_deadline(now_us + 0x7fffffff));
  CHECK_FALSE(matches_with_deadline(now_us - 1));
  CHECK_FALSE(matches_with_deadline(1));
  CHECK_FALSE(matches_with_deadline(uint32_t(now_us - 0x7fffffff)));
}

}  // namespace
