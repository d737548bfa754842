// Which packets one poll loads, and which thread loads which.
#pragma once

#include <gyre/device/platform.hpp>
#include <gyre/device/read/inbound_ring.hpp>

namespace gyre {

/// What a poll finds behind messages that were found before: `loads` packets of the calling thread.
template <uint32_t loads>
struct Prefetch {
  Packet packets[loads];  ///< PollWindow::begin() sets them: to do so before would delay the host's messages
  uint32_t messages = 0;  ///< that it covers; 0: none was begun
};

/// How the polling threads share out a poll. A poll covers a number of messages, and `width` packets of each:
/// 4, 8, 16 or 32, by the size that messages have. Thread r loads packet r mod width of message r / width. A
/// value; each thread has its own.
class PollWindow {
 public:
  /// Packets that one thread loads at most, for messages that are handled side by side.
  static constexpr uint32_t most_loads = 4;

  /// log2 of the width that covers a message of so many packets, as far as one load each can.
  GYRE_DEVICE static uint32_t log_width_for(uint32_t packets) {
    return packets <= 4 ? 2 : packets <= 8 ? 3 : packets <= 16 ? 4 : 5;
  }

  GYRE_DEVICE void set_width(uint32_t log_width, const RingShape& shape) {
    log_width_ = log_width;
    width_ = 1u << log_width;
    messages_a_load_ = width_ < PollGroup::size() ? PollGroup::size() / width_ : 1;
    const uint32_t k = PollGroup::rank() & (width_ - 1);
    message_ = k < shape.packets() ? PollGroup::rank() >> log_width : PollGroup::size();
    packet_ = (PollGroup::rank() >> log_width) * shape.packets() + k;
    packet_of_first_ = k < shape.packets() ? k : 0;
  }

  GYRE_DEVICE uint32_t log_width() const { return log_width_; }
  GYRE_DEVICE uint32_t width() const { return width_; }
  /// Messages that a poll of one load a thread covers.
  GYRE_DEVICE uint32_t messages_a_load() const { return messages_a_load_; }
  /// The number of the message, counted from the first, that the calling thread loads a packet of.
  GYRE_DEVICE uint32_t message() const { return message_; }
  /// The packet that the calling thread loads in a poll of `messages` messages. A thread whose message is
  /// beyond those loads a packet of the first, as another thread does: that costs less than a branch.
  GYRE_DEVICE uint32_t packet_to_load(uint32_t messages) const {
    return message_ < messages ? packet_ : packet_of_first_;
  }
  /// Packets of the first message that a poll covers.
  GYRE_DEVICE uint32_t packets_of_first(const RingShape& shape) const {
    const uint32_t threads = width_ < PollGroup::size() ? width_ : PollGroup::size();
    return threads < shape.packets() ? threads : shape.packets();
  }

  /// Begins to load packets of at most `most` messages, from the one `n` behind the next one of `ring` on.
  /// Stops at the end of the lap that they lie in.
  template <uint32_t loads>
  GYRE_DEVICE void begin(Prefetch<loads>& prefetch, const InboundRing& ring, uint32_t n,
                         uint32_t most) const {
    const RingShape& shape = ring.shape();
    uint32_t left = ring.left_of_lap() - n, first = n * shape.packets();
    if (left == 0) {
      left = shape.slots;
      first = 0 - ring.offset();
    }
    prefetch.messages = left < most ? left : most;
    prefetch.packets[0] = Memory::load(ring.cell(first + packet_to_load(prefetch.messages)));
    for (uint32_t i = 1; i < loads; ++i) {
      prefetch.packets[i] = Packet{};
      if (message_ + i * messages_a_load_ >= prefetch.messages) continue;
      prefetch.packets[i] = Memory::load(ring.cell(first + packet_ + i * messages_a_load_ * shape.packets()));
    }
  }

 private:
  uint32_t log_width_;
  uint32_t width_;            // packets of each message
  uint32_t message_;          // the group's size in a thread that loads none
  uint32_t packet_;           // that the thread loads, from the first message's first on
  uint32_t packet_of_first_;  // that it loads where the poll covers one message
  uint32_t messages_a_load_;
};

}  // namespace gyre
