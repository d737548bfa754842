// The ring that a worker reads its requests from, wherever its slots lie.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/device/platform.hpp>
#include <gyre/device/read/local_slices.hpp>

namespace gyre {

/// A worker's position in its host-to-device ring. In a GPU's memory the slots lie in pages of the worker's
/// local L2 slice (SlotPages); elsewhere they lie in one piece. Refers to the ring. The polling threads'
/// alone.
class InboundRing {
 public:
  GYRE_DEVICE InboundRing(Packet* ring, const RingShape& shape)
      : shape_(shape), ring_(ring), next_(ring, shape) {}

  /// Chooses, for a ring in the GPU's memory, the page of memory for each page of slots. Before the first
  /// poll. Collective over PollGroup.
  /// @returns what the host has to know: SlotPages::second()
  GYRE_DEVICE uint64_t choose_slot_pages() {
    const uint64_t second = nearer_pages(ring_, shape_);
    const uint32_t low = PollGroup::broadcast(uint32_t(second));
    const uint32_t high = PollGroup::broadcast(uint32_t(second >> 32));
    slot_pages_ = {shape_, low | uint64_t(high) << 32};
    return slot_pages_.second();
  }

  GYRE_DEVICE const RingShape& shape() const { return shape_; }
  /// The next message's ticket, and the stamp that its packets carry.
  GYRE_DEVICE uint64_t ticket() const { return next_.ticket(); }
  GYRE_DEVICE uint32_t stamp() const { return next_.stamp(); }
  /// Messages up to the end of the lap, the next one included.
  GYRE_DEVICE uint32_t left_of_lap() const { return next_.left_of_lap(); }
  /// The next message's slot, as an offset from the ring's begin in packets.
  GYRE_DEVICE uint32_t offset() const { return uint32_t(next_.slot() - ring_); }
  /// Packet `packet`, counted from the next message's first.
  GYRE_DEVICE const Packet& cell(uint32_t packet) const {
    return ring_[slot_pages_.place(offset() + packet)];
  }
  /// Moves on by `n` messages.
  GYRE_DEVICE void advance(uint32_t n) { next_.advance(shape_, n); }

 private:
  RingShape shape_;
  Packet* ring_;
  SlotPages slot_pages_;
  RingCursor<Memory> next_;  // as if the ring were in one piece
};

}  // namespace gyre
