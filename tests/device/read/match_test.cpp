// Which messages a worker of a warp takes for another like the last: packet by packet, as its threads do.
#include <gyre/device/read/request_reader.hpp>

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

// Whether all threads say that it is alike.
bool is_like(const Message& message, const Message& other, uint64_t body_words) {
  bool alike = true;
  for (uint32_t k = 0; k < packets; ++k) {
    PacketMatch match;
    match.take(message.data(), k, body_words);
    alike = alike && match.difference(packet(other, k), now_us) == 0;
  }
  return alike;
}

Message any_message(std::mt19937_64& random) {
  Message message(words);
  for (uint32_t& word : message) word = uint32_t(random());
  message[3] = 0;                                                  // no deadline
  message[7] = random() % 2 == 0 ? envelope_flags::ask << 24 : 0;  // no more than an ask or a tell
  return message;
}

TEST_CASE("a message is alike where size, key, types, flags and the words that decide are the same") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const Message message = any_message(random);
    const uint64_t body_words = (random() | 1) & ((uint64_t(1) << PacketMatch::body_words) - 1);
    REQUIRE(is_like(message, message, body_words));
    for (uint32_t w = 0; w < words; ++w) {
      Message other = message;
      other[w] ^= uint32_t(1) << random() % 32;
      if (w == 3) other[w] = now_us;  // a deadline that is not past
      INFO("word " << w);
      const bool in_envelope = w == 2 || w == 4 || w == 5 || w == 6;
      const bool decides = w < 8 ? in_envelope : (body_words >> (w - 8) / 2 & 1) != 0;
      // The one flag that may differ is whether it is an ask.
      const bool same_flags = ((other[7] ^ message[7]) & ~(uint32_t(envelope_flags::ask) << 24)) == 0;
      REQUIRE(is_like(message, other, body_words) == (!decides && same_flags));
    }
  }
}

TEST_CASE("a message whose deadline is past is like no other, also where the clock passes 2^32") {
  std::mt19937_64 random(4);
  const Message message = any_message(random);
  const auto alike_with_deadline = [&](uint32_t deadline_us) {
    Message other = message;
    other[3] = deadline_us;
    return is_like(message, other, 1);
  };
  CHECK(alike_with_deadline(0));  // none
  CHECK(alike_with_deadline(now_us));
  CHECK(alike_with_deadline(now_us + 1));
  CHECK(alike_with_deadline(now_us + 0x7fffffff));
  CHECK_FALSE(alike_with_deadline(now_us - 1));
  CHECK_FALSE(alike_with_deadline(1));
  CHECK_FALSE(alike_with_deadline(uint32_t(now_us - 0x7fffffff)));
}

}  // namespace
