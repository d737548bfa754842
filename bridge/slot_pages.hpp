// Places the slots of an H2D ring in GPU memory: in the pages of the L2 slice local to the worker.
#pragma once

#include <gyre/bridge/ring.hpp>

namespace gyre {

/// A GPU's L2 cache has two slices, and each 4096-byte page of memory belongs to one of them. A
/// multiprocessor sees the host's writes sooner in pages of its local slice (docs/decisions/005). One of
/// two neighbouring pages belongs to each slice. Therefore such a ring has two pages of memory for each
/// page of slots, and the worker chooses which one is used. A plain value, equal on both sides. By
/// default the ring lies in one piece, as RingShape says.
class SlotPages {
 public:
  static constexpr uint32_t page_bytes = 4096;
  static constexpr uint32_t most_pages = 64;  ///< of slots

  constexpr SlotPages() = default;
  /// Makes the placement of a ring that has pages(). Bit p of `second`: page p of the slots uses its second
  /// page.
  GYRE_DEVICE SlotPages(const RingShape& shape, uint64_t second)
      : second_(second), last_page_(pages(shape) - 1) {}

  /// Returns the number of pages that the slots fill, a power of two. 0: the ring lies in one piece, because
  /// the slots do not fill pages, fill only one, or fill more than most_pages.
  GYRE_DEVICE static constexpr uint32_t pages(const RingShape& shape) {
    const uint64_t count = shape.ring_bytes() / page_bytes;
    return page_bytes % shape.slot_bytes == 0 && count >= 2 && count <= most_pages ? uint32_t(count) : 0;
  }
  /// Returns the bytes of memory that the ring takes.
  GYRE_DEVICE static constexpr uint64_t ring_bytes(const RingShape& shape) {
    return pages(shape) != 0 ? 2 * shape.ring_bytes() : shape.ring_bytes();
  }
  /// Returns the first packet of one of the two candidates for page `page`, counted from the ring's start.
  GYRE_DEVICE static constexpr uint32_t candidate(uint32_t page, uint32_t second) {
    return (2 * page + second) * page_packets;
  }

  /// Returns where a packet lies, counted from the ring's start.
  /// @param packet  its place if the ring lay in one piece
  GYRE_DEVICE uint32_t place(uint32_t packet) const {
    const uint32_t page = packet / page_packets & last_page_;
    return packet + (page + uint32_t(second_ >> page & 1)) * page_packets;
  }
  GYRE_DEVICE uint64_t second() const { return second_; }

 private:
  static constexpr uint32_t page_packets = page_bytes / sizeof(Packet);

  uint64_t second_ = 0;
  uint32_t last_page_ = 0;  // 0 for a ring in one piece
};

}  // namespace gyre
