// How a worker comes by its requests: the looks at the ring, and at what the host commands meanwhile.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/device/platform.hpp>

#if !defined(__CUDACC_RTC__)
#include <cstring>
#endif

namespace gyre {

enum class Decision : uint32_t { nothing, message, corrupt, stop };

/// The first 40 bytes of a request, as words: its envelope, and as much of its body as any slot has room for.
struct RequestHead {
  uint32_t word[10];

  /// `request`: 16-aligned.
  GYRE_DEVICE static RequestHead load(const uint32_t* request) {
#if defined(__CUDACC_RTC__)
    const uint4* const quarters = reinterpret_cast<const uint4*>(request);
    const uint4 a = quarters[0], b = quarters[1];
    const uint2 c = reinterpret_cast<const uint2*>(quarters + 2)[0];
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, c.x, c.y}};
#else
    RequestHead head;
    memcpy(head.word, request, sizeof head);
    return head;
#endif
  }
  GYRE_DEVICE uint32_t body_bytes() const { return word[2]; }
  GYRE_DEVICE uint32_t deadline_us() const { return word[3]; }
  GYRE_DEVICE uint64_t key() const { return word[4] | uint64_t(word[5]) << 32; }
  /// Actor type, and message type above it.
  GYRE_DEVICE uint32_t types() const { return word[6]; }
  /// Origin, priority and, highest, the flags.
  GYRE_DEVICE uint32_t flags() const { return word[7]; }
  GYRE_DEVICE uint64_t root_word() const { return word[8] | uint64_t(word[9]) << 32; }
};

/// Words of a worker's own memory that one message of `shape` is unpacked into, or built in: a multiple of 16
/// bytes, and a warp may read past the end of a short one, or unpack several side by side.
GYRE_DEVICE constexpr uint32_t message_words(const RingShape& shape) {
  return (shape.packets() < 32 ? 32 : shape.packets()) * words_a_packet;
}

/// The looks at command word and clock.
class Lookout {
 public:
  GYRE_DEVICE CommandWord command() const { return {command_}; }
  /// The worker's clock when it last looked, in microseconds.
  GYRE_DEVICE uint32_t now_us() const { return now_us_; }

  /// clock_ticks() at the last time this asked, or read_clock_again().
  GYRE_DEVICE uint64_t ticks() const { return ticks_; }
  GYRE_DEVICE void read_clock_again() { ticks_ = clock_ticks(); }

  /// Asks for the command word if a look is due: while a look at the ring is under way, so that the two cross
  /// the bus together. This and the next: collective over PollGroup.
  GYRE_DEVICE void ask(const CommandLine& command_line) {
    ticks_ = clock_ticks();
    const bool due = PollGroup::any(uint32_t(ticks_) - looked_at_ >= look_interval);
    if (due) {
      looked_at_ = uint32_t(ticks_);
      now_us_ = uint32_t(now_ns() / 1000);
    }
    if (due || looks_at_each_poll) {
      asked_ = true;
      due_ = due;
      answer_ = uint32_t(Memory::load_relaxed(command_line.command));
    }
  }
  /// Takes the answer, if one was asked for; true where the look was due, or the command is another than
  /// before.
  GYRE_DEVICE bool accept() {
    if (!asked_) return false;
    asked_ = false;
    const uint32_t before = command_;
    command_ = PollGroup::broadcast(answer_);
    return !looks_at_each_poll || due_ || command_ != before;
  }

 private:
  uint32_t command_ = 0;  // CommandWord::word
  uint32_t now_us_ = 0;
  uint64_t ticks_ = 0;
  uint32_t looked_at_ = 0;  // low bits of ticks_, when a look was due
  uint32_t answer_ = 0;
  bool asked_ = false;
  bool due_ = false;  // the look that was asked for
};

/// How long the first look after a message waits, in clock_ticks(). In a conversation the host's next message
/// comes some time after the reply, and a look that just misses it costs a whole crossing of the bus: the
/// first look waits until most of the time it finds its message. Each miss by one look makes it later, each
/// hit a little earlier: some one in a hundred misses. A stream waits for nothing.
class LookDelay {
 public:
  static constexpr uint32_t later = 96;
  static constexpr uint32_t longest = 1600;  ///< about what a look over the bus takes

  /// Without `looks_cross_bus` it stays 0.
  GYRE_DEVICE explicit LookDelay(bool looks_cross_bus) : longest_(looks_cross_bus ? longest : 0) {}
  GYRE_DEVICE uint32_t ticks() const { return ticks_; }

  /// A message was found after so many looks that found nothing; `in_stream`: with another, by one look.
  GYRE_DEVICE void found(uint32_t empty_looks, bool in_stream) {
    if (in_stream) {
      ticks_ = 0;
    } else if (empty_looks == 1) {
      ticks_ = ticks_ + later < longest_ ? ticks_ + later : longest_;
    } else if (empty_looks == 0 && ticks_ != 0) {
      --ticks_;
    }
  }

 private:
  uint32_t ticks_ = 0;
  uint32_t longest_;
};

/// The requests of one worker, in order. The polling threads' alone. One look is for one message or, where
/// they come faster than they are taken, for as many as the threads have packets for.
class Inbox {
 public:
  /// Empty looks before the ring counts as empty.
  static constexpr uint32_t looks_before_credit = 8;

  /// `memory`: message_words(bridge.shape) words of the group's own, 16-aligned.
  GYRE_DEVICE Inbox(const Bridge& bridge, uint32_t* memory)
      : shape_(bridge.shape),
        command_line_(bridge.command_line),
        next_(bridge.h2d, bridge.shape),
        memory_(kept(memory)),
        request_(memory_),
        delay_(bridge.inbound_in_region) {
    set_width(idle_log_width);
  }

  /// Looks once, for a message if it `wants` one, and for a command. message, corrupt or nothing. Collective.
  GYRE_DEVICE Decision look(bool wants) {
    if (seen_ == 0 || !wants) {
      glimpse(wants ? window_ : 0);
    } else if constexpr (!looks_at_each_poll) {
      lookout_.ask(*command_line_);
    }
    head_ = RequestHead::load(request_);
    if ((there_ & 1) == 0) {
      if constexpr (looks_at_each_poll) lookout_.ask(*command_line_);
      return nothing();
    }
    // On the CPU the clock is read once it is known that there is a message: its handler's time begins.
    if constexpr (looks_at_each_poll) lookout_.ask(*command_line_);
    const uint32_t needed = packets_for(head_.body_bytes() < 0x7fffffff ? head_.body_bytes() : 0x7fffffff);
    if (is_whole(there_, needed, width_)) return Decision::message;
    return look_for_rest();
  }
  /// Whether a look was due, or found another command, since the last time this was asked. Collective.
  GYRE_DEVICE bool looked_out() { return lookout_.accept(); }
  GYRE_DEVICE const Lookout& lookout() const { return lookout_; }
  GYRE_DEVICE void read_clock_again() { lookout_.read_clock_again(); }
  /// In a row, so far.
  GYRE_DEVICE uint32_t empty_looks() const { return empty_looks_; }

  /// The message that was found, and its head.
  GYRE_DEVICE const uint32_t* request() const { return request_; }
  GYRE_DEVICE const RequestHead& head() const { return head_; }
  GYRE_DEVICE uint64_t ticket() const { return next_.ticket(); }
  /// It is done with, by the whole group: on to the next.
  GYRE_DEVICE void next() {
    next_.advance(shape_);
    --seen_;
    ++taken_;
    there_ = width_ < 32 ? there_ >> width_ : 0;
    request_ += width_ * words_a_packet;
    if constexpr (delays_first_look) delay_.found(empty_looks_, taken_ > 1);
    // Messages that were there when they were looked for, several times in a row, may have others behind
    // them.
    in_a_row_ = empty_looks_ == 0 || in_a_row_ < 0 ? in_a_row_ + 1 : 0;
    window_ = in_a_row_ >= 4 ? most_ : 1;
    empty_looks_ = 0;
    if (head_.body_bytes() == last_body_bytes_) return;
    last_body_bytes_ = head_.body_bytes();
    const uint32_t needed = packets_for(last_body_bytes_);
    set_width(needed <= 4 ? 2 : needed <= 8 ? 3 : needed <= 16 ? 4 : 5);
    seen_ = 0;
    window_ = 1;
    in_a_row_ = 0;
  }

 private:
  static constexpr uint32_t idle_log_width = 2;  // one 64-byte line: idle workers share the bus
  static constexpr uint32_t patience = 200;      // empty looks before a worker counts as idle

  GYRE_DEVICE void set_width(uint32_t log_width) {
    width_ = 1u << log_width;
    most_ = width_ < PollGroup::size() ? PollGroup::size() / width_ : 1;
    const uint32_t k = PollGroup::rank() & (width_ - 1);
    message_ = k < shape_.packets() ? PollGroup::rank() >> log_width : PollGroup::size();
    packet_ = (PollGroup::rank() >> log_width) * shape_.packets() + k;
  }

  // Loads the first packets of so many messages and unpacks them side by side: what is there is unpacked
  // before it is known to be whole, and nobody looks at it if it is not.
  GYRE_DEVICE void glimpse(uint32_t messages) {
    if constexpr (delays_first_look) {
      if (empty_looks_ == 0 && delay_.ticks() != 0) wait_ticks(delay_.ticks());
    }
    if (messages > next_.left_of_lap()) messages = next_.left_of_lap();
    const bool polls = message_ < messages;
    Packet packet{{0, 0, 0}, 0};
    if (polls) packet = Memory::load(next_.slot()[packet_]);
    if constexpr (!looks_at_each_poll) lookout_.ask(*command_line_);
    if (polls) unpack(packet, memory_, PollGroup::rank());
    there_ = PollGroup::ballot(packet.stamp == next_.stamp());
    PollGroup::sync();
    request_ = memory_;
    seen_ = messages;
    taken_ = 0;
  }

  GYRE_DEVICE Decision nothing() {
    // A look for several that found one is not repeated soon: it takes longer.
    if (window_ > 1 && taken_ == 1) in_a_row_ = delay_.ticks() == 0 ? -64 : -1024;
    window_ = 1;
    seen_ = 0;
    ++empty_looks_;
    if (empty_looks_ == patience) {
      set_width(idle_log_width);
      last_body_bytes_ = no_body_bytes;
    }
    return Decision::nothing;
  }

  // A message that is longer than the one before it, or that was seen before it was whole.
  GYRE_DEVICE Decision look_for_rest() {
    const bool first = request_ == memory_;
    seen_ = 0;
    if (!first) return Decision::nothing;  // the next look begins with it
    const uint32_t looked = width_ < PollGroup::size() ? width_ : PollGroup::size();
    const uint32_t known = is_whole(there_, looked, looked) ? looked : 1;
    const ReceiveOutcome outcome = receive_rest<Memory>(PollGroup{}, next_, shape_, known, memory_);
    head_ = RequestHead::load(memory_);
    if (outcome == ReceiveOutcome::nothing) return Decision::nothing;
    seen_ = 1;
    return outcome == ReceiveOutcome::message ? Decision::message : Decision::corrupt;
  }

  static constexpr uint32_t no_body_bytes = 4;  // that no body has

  RingShape shape_;
  const CommandLine* command_line_;
  RingCursor<Memory> next_;
  uint32_t* memory_;
  const uint32_t* request_;
  LookDelay delay_;
  RequestHead head_;
  Lookout lookout_;
  uint32_t empty_looks_ = 0;
  uint32_t last_body_bytes_ = no_body_bytes;  // that width_ is for
  uint32_t width_;                            // packets of each message that a look covers: 4, 8, 16 or 32
  uint32_t message_;      // that this thread looks for a packet of, of those that a look is for
  uint32_t packet_;       // which, from the first of them on
  uint32_t window_ = 1;   // messages that the next look is for
  uint32_t most_;         // of them
  uint32_t taken_ = 0;    // messages since the last glimpse
  int32_t in_a_row_ = 0;  // messages that were there at the first look
  uint32_t seen_ = 0;     // messages from request_ on that the last look was for
  uint32_t there_ = 0;    // bit k: packet k from request_ on is there
};

}  // namespace gyre
