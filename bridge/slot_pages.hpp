// Where the slots of an H2D ring lie that is in a GPU's memory: in the pages that its worker is near to.
#pragma once

#include <gyre/bridge/ring.hpp>

namespace gyre {

/// A GPU's L2 cache has two parts, and each 4096 bytes of its memory belong to one of them. What the host
/// writes is seen sooner where that is the part that the polling multiprocessor is connected to, on an H200
/// by 100 to 140 ns (docs/performance.md), and of two neighbouring pages one is. So such a ring has two pages
/// of memory for each page of slots, and the worker says which one is used. A plain value, the same on both
/// sides; by default the ring lies in one piece, as RingShape says.
class SlotPages {
 public:
  static constexpr uint32_t page_bytes = 4096;
  static constexpr uint32_t most_pages = 64;  ///< of slots

  constexpr SlotPages() = default;
  /// Of a ring that has pages(). Bit p of `second`: page p of the slots is the second of its two.
  GYRE_DEVICE SlotPages(const RingShape& shape, uint64_t second)
      : second_(second), last_page_(pages(shape) - 1) {}

  /// Of such a ring's slots, a power of two; 0 where the ring lies in one piece: one with slots that do not
  /// fill pages, with a page alone, or with more than most_pages.
  GYRE_DEVICE static constexpr uint32_t pages(const RingShape& shape) {
    const uint64_t count = shape.ring_bytes() / page_bytes;
    return page_bytes % shape.slot_bytes == 0 && count >= 2 && count <= most_pages ? uint32_t(count) : 0;
  }
  /// Bytes that such a ring takes.
  GYRE_DEVICE static constexpr uint64_t ring_bytes(const RingShape& shape) {
    return pages(shape) != 0 ? 2 * shape.ring_bytes() : shape.ring_bytes();
  }
  /// The first packet of one of the two pages for page `page` of the slots, counted from the ring's start.
  GYRE_DEVICE static constexpr uint32_t candidate(uint32_t page, uint32_t second) {
    return (2 * page + second) * page_packets;
  }

  /// Where packet `packet` is, counted from the ring's start, that would be there if the ring were in one
  /// piece.
  GYRE_DEVICE uint32_t place(uint32_t packet) const {
    const uint32_t page = packet / page_packets & last_page_;
    return packet + (page + uint32_t(second_ >> page & 1)) * page_packets;
  }
  GYRE_DEVICE uint64_t second() const { return second_; }

 private:
  static constexpr uint32_t page_packets = page_bytes / sizeof(Packet);

  uint64_t second_ = 0;
  uint32_t last_page_ = 0;  // a ring in one piece is a page that lies where it lies
};

}  // namespace gyre
