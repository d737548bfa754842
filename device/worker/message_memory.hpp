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
/// handle messages side by side, or where an actor has an on_batch(). Requests are those of a poll, then the
/// second and later ones of a batch. A value, the same on both sides.
class MessageMemory {
 public:
  /// @param is_warp       the worker is one warp of a GPU
  /// @param side_by_side  it has actors that handle messages side by side
  /// @param most_gathered  most messages that an on_batch() of its actors takes; 0: none has one
  GYRE_DEVICE constexpr MessageMemory(const RingShape& shape, bool is_warp, bool side_by_side,
                                      uint32_t most_gathered)
      : message_words_(message_words(shape)),
        slot_words_((shape.packets() * words_a_packet + 3) / 4 * 4),
        side_by_side_(is_warp && side_by_side && shape.packets() <= most_packets),
        gathered_(shape.packets() <= most_packets && most_gathered != 0 ? most_gathered : 1),
        replies_(side_by_side_ ? most_side_by_side : gathered_) {}

  /// Replies that are built at the same time.
  GYRE_DEVICE constexpr uint32_t replies() const { return replies_; }
  /// Messages that an on_batch() may get in one call; 1: none is called.
  GYRE_DEVICE constexpr uint32_t gathered() const { return gathered_; }
  /// Of what a poll loads.
  GYRE_DEVICE constexpr uint32_t polled_words() const {
    return !side_by_side_ || message_words_ > side_by_side_words ? message_words_ : side_by_side_words;
  }
  /// From one gathered request to the next; the second lies behind polled_words().
  GYRE_DEVICE constexpr uint32_t request_stride() const { return message_words_; }
  GYRE_DEVICE constexpr uint32_t request_words() const {
    return polled_words() + (gathered_ - 1) * request_stride();
  }
  /// From one reply to the next: what a slot holds, as an odd multiple of 16 bytes. So eight threads that
  /// write 16 bytes each to replies of their own use different banks of shared memory.
  GYRE_DEVICE constexpr uint32_t reply_stride() const { return slot_words_ | 4; }
  /// A warp reads as many words from the begin of the last one as from any message.
  GYRE_DEVICE constexpr uint32_t reply_words() const {
    return (replies_ - 1) * reply_stride() + message_words_;
  }
  GYRE_DEVICE constexpr uint32_t words() const { return request_words() + reply_words(); }

 private:
  static constexpr uint32_t most_packets = 64;  // of a slot: more would take too much shared memory
  // The last message's head may be read past its end.
  static constexpr uint32_t side_by_side_words = PollWindow::most_loads * 32 * words_a_packet + 4;

  uint32_t message_words_;
  uint32_t slot_words_;
  bool side_by_side_;
  uint32_t gathered_;
  uint32_t replies_;
};

}  // namespace gyre
