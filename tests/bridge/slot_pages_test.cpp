#include <gyre/bridge/slot_pages.hpp>

#include <random>
#include <vector>

#include "support/catch.hpp"

using namespace gyre;

TEST_CASE("whatever pages a worker chooses, each slot lies whole in one place, and no two in the same") {
  std::mt19937_64 random(5);
  for (const RingShape shape : {RingShape{256, 512, 1}, RingShape{2, 4096, 1}, RingShape{256, 64, 1},
                                RingShape{64, 4096, 1}, RingShape{256, 1024, 1}}) {
    const uint32_t pages = SlotPages::pages(shape);
    REQUIRE(pages == shape.ring_bytes() / SlotPages::page_bytes);
    CHECK(SlotPages::ring_bytes(shape) == 2 * shape.ring_bytes());
    for (const uint64_t second : {uint64_t(0), ~uint64_t(0), uint64_t(random()), uint64_t(random())}) {
      const SlotPages slot_pages(shape, second);
      CHECK(slot_pages.second() == second);
      std::vector<int> taken(SlotPages::ring_bytes(shape) / sizeof(Packet));
      bool right = true;
      for (uint64_t ticket = 0; ticket < shape.slots; ++ticket) {
        const auto first = uint32_t(shape.first_packet(ticket));
        const uint32_t place = slot_pages.place(first);
        const uint32_t page = first * uint32_t(sizeof(Packet)) / SlotPages::page_bytes;
        const uint32_t begin = SlotPages::candidate(page, second >> page & 1);
        right = right && place >= begin &&
                place + shape.packets() <= begin + SlotPages::page_bytes / sizeof(Packet);
        for (uint32_t k = 0; k < shape.packets(); ++k) {
          right = right && slot_pages.place(first + k) == place + k && taken.at(place + k)++ == 0;
        }
      }
      CHECK(right);
    }
  }
}

TEST_CASE("a ring whose slots do not fill pages, that is one page, or that has too many, lies in one piece") {
  for (const RingShape shape : {RingShape{256, 192, 1}, RingShape{256, 8192, 1}, RingShape{8, 512, 1},
                                RingShape{2, 64, 1}, RingShape{1024, 512, 1}}) {
    CHECK(SlotPages::pages(shape) == 0);
    CHECK(SlotPages::ring_bytes(shape) == shape.ring_bytes());
  }
  const SlotPages one_piece;
  bool same = true;
  for (uint32_t packet = 0; packet < 1u << 16; ++packet) same = same && one_piece.place(packet) == packet;
  CHECK(same);
}
