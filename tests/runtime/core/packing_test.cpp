// Payloads to packets and back, by groups of four.
#include <gyre/runtime/core/packing.hpp>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "support/catch.hpp"

using namespace gyre;

TEST_CASE("packing by groups makes the packets that publishing makes, and no others, and unpacks again") {
  constexpr RingShape shape{4, 512, 7};
  std::mt19937 random(1);
  alignas(64) std::array<Packet, 4 * 32> published, packed;
  const Packet untouched{{0xa5a5a5a5, 0xa5a5a5a5, 0xa5a5a5a5}, 0x5a5a5a5a};
  for (uint32_t body_bytes = 0; body_bytes <= shape.body_capacity(); ++body_bytes) {
    const uint32_t packets = packets_for(body_bytes);
    std::vector<uint32_t> payload(packets * words_a_packet + 1);
    for (uint32_t& word : payload) word = uint32_t(random());
    published.fill(untouched);
    packed.fill(untouched);
    const uint64_t ticket = random() % 1000;
    // From an address that is aligned for words alone, too.
    const uint32_t* const from = payload.data() + body_bytes % 2;
    publish<Memory>(SingleThread{}, published.data(), shape, ticket, from, body_bytes);
    pack(from, packets, shape.stamp(ticket), packed.data() + shape.first_packet(ticket));
    INFO(body_bytes << " bytes");
    REQUIRE(std::memcmp(published.data(), packed.data(), sizeof published) == 0);

    alignas(16) std::array<std::byte, 32 * data_bytes_a_packet> unpacked;
    unpack(packed.data() + shape.first_packet(ticket), groups_for(body_bytes), unpacked.data());
    CHECK(std::memcmp(unpacked.data(), from, packets * data_bytes_a_packet) == 0);
  }
}
