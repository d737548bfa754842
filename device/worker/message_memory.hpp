// The memory of its own that a worker unpacks requests into and builds replies in.
#pragma once

#include <gyre/device/read/request_reader.hpp>

namespace gyre {

/// Most messages that a warp handles side by side: of up to 4 packets, each by one thread.
inline constexpr uint32_t most_side_by_side = 32;
/// log2 of a warp's threads.
inline constexpr uint32_t log_warp_size = 5;

/// Sizes of that memory in 32-bit words: requests, then replies, each part 16-aligned, replies zeroed at
/// first. One request and one reply, or several where the worker is one warp of a GPU and has actors that
/// handle messages side by side. A value, the same on both sides.
class MessageMemory {
 public:
  /// @param is_warp       the worker is one warp of a GPU
  /// @param side_by_side  it has actors that handle messages side by side
  GYRE_DEVICE constexpr MessageMemory(const RingShape& shape, bool is_warp, bool side_by_side)
      : message_words_(message_words(shape)),
        replies_(is_warp && side_by_side && shape.packets() <= most_packets ? most_side_by_side : 1) {}

  /// Replies that are built at the same time.
  GYRE_DEVICE constexpr uint32_t replies() const { return replies_; }
  GYRE_DEVICE constexpr uint32_t request_words() const {
    return replies_ == 1 || message_words_ > side_by_side_words ? message_words_ : side_by_side_words;
  }
  /// From one reply to the next. With most slot sizes, eight threads that write 16 bytes each to replies of
  /// their own use different banks of shared memory.
  GYRE_DEVICE constexpr uint32_t reply_stride() const { return message_words_ + (replies_ == 1 ? 0 : 4); }
  GYRE_DEVICE constexpr uint32_t words() const { return request_words() + replies_ * reply_stride(); }

 private:
  static constexpr uint32_t most_packets = 64;  // of a slot: more would take too much shared memory
  // The last message's head may be read past its end.
  static constexpr uint32_t side_by_side_words = PollWindow::most_loads * 32 * words_a_packet + 4;

  uint32_t message_words_;
  uint32_t replies_;
};

}  // namespace gyre
