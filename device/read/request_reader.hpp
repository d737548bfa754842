// How a worker comes by its requests: the looks at the ring, and at what the host commands meanwhile.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/device/platform.hpp>
#include <gyre/device/read/near_pages.hpp>

#if !defined(__CUDACC_RTC__)
#include <cstring>
#endif

namespace gyre {

enum class PollOutcome : uint32_t { nothing, message, corrupt, stop };

/// The sign bit is set where a deadline, as in Envelope::deadline_us, is past at `now_us`; the others say
/// nothing. In bits, not a truth: a lone warp waits longer for a predicate than for a word.
GYRE_DEVICE inline uint32_t sign_if_past(uint32_t deadline_us, uint32_t now_us) {
  const uint32_t past = deadline_us - now_us, has_deadline = deadline_us | (0 - deadline_us);
  return past & has_deadline;
}

/// The first 64 bytes of a request, as words: its envelope, the pointer to its root, and the first words of
/// that, where it is where it usually is. Of a shorter one, and in a small slot, some of it is anything.
struct RequestHead {
  static constexpr uint32_t words = 16;
  static constexpr uint32_t root_words = 3;  ///< of 64 bits, behind the pointer

  uint32_t word[words];

  /// `request`: 16-aligned.
  GYRE_DEVICE static RequestHead load(const uint32_t* request) {
#if defined(__CUDACC_RTC__)
    const uint4* const quarters = reinterpret_cast<const uint4*>(request);
    const uint4 a = quarters[0], b = quarters[1], c = quarters[2], d = quarters[3];
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w, d.x, d.y, d.z, d.w}};
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
  /// Word k of 64 bits behind the root's pointer, below root_words.
  GYRE_DEVICE uint64_t behind_root_word(uint32_t k) const {
    return word[10 + 2 * k] | uint64_t(word[11 + 2 * k]) << 32;
  }
  /// That no message has.
  GYRE_DEVICE static constexpr RequestHead of_none() { return {{0, 0, 0xffffffff, 0, 0, 0, 0xffffffff}}; }
  GYRE_DEVICE void forget_actor() { word[6] = 0xffffffff; }
  GYRE_DEVICE void forget_size() { word[2] = 0xffffffff; }
  /// Not 0 where its deadline is past at `now_us`.
  GYRE_DEVICE uint32_t lateness(uint32_t now_us) const {
    constexpr uint32_t sign_bit = 31;
    return sign_if_past(deadline_us(), now_us) >> sign_bit;
  }
  /// 0 where it is of the same size, for the same handler of the same actor, with a root that lies the same.
  GYRE_DEVICE uint32_t difference(const RequestHead& other) const {
    return ((word[2] ^ other.word[2]) | (word[4] ^ other.word[4]) | (word[5] ^ other.word[5]) |
            (word[6] ^ other.word[6]) | (word[8] ^ other.word[8]) | (word[9] ^ other.word[9]));
  }
};

/// Whether messages are held against the last one that went the short way while they are in registers still,
/// each packet by the thread that loaded it: where a worker is one warp of a GPU. Elsewhere RequestHeads are
/// compared.
inline constexpr bool compares_packets = HandlerGroup::only_polls() && !samples_command_each_poll;

/// What the calling thread's packet of a message must be like, for the message to be like one before it.
class PacketMatch {
 public:
  /// Words of 64 bits of a body that can be compared: those in a warp's packets.
  static constexpr uint32_t body_words = (32 * words_a_packet - uint32_t(sizeof(Envelope) / 4)) / 2;

  /// Like `request`: of its size, type and key, no more than it an ask or a tell, and equal in the words of
  /// its body that `words` has as bits. `k`: which packet this thread will load.
  GYRE_DEVICE void take(const uint32_t* request, uint32_t k, uint64_t words) {
    for (uint32_t i = 0; i < words_a_packet; ++i) {
      const uint32_t w = k * words_a_packet + i;
      like_[i] = request[w];
      decides_[i] = bits_that_decide(w, words);
    }
    deadline_ = k * words_a_packet == deadline_word ? sign_bit : 0;
  }
  /// Not 0 where the packet is another, or has a deadline that is past at `now_us`.
  GYRE_DEVICE uint32_t difference(const Packet& packet, uint32_t now_us) const {
    return ((packet.data[0] ^ like_[0]) & decides_[0]) | ((packet.data[1] ^ like_[1]) & decides_[1]) |
           ((packet.data[2] ^ like_[2]) & decides_[2]) | (sign_if_past(packet.data[0], now_us) & deadline_);
  }

 private:
  static constexpr uint32_t sign_bit = 0x80000000, deadline_word = 3, flags_word = 7, envelope_words = 8;
  static constexpr uint32_t envelope_words_that_decide = 1u << 2 | 1u << 4 | 1u << 5 | 1u << 6;

  GYRE_DEVICE static uint32_t bits_that_decide(uint32_t w, uint64_t words) {
    if (w == flags_word) return ~(uint32_t(envelope_flags::ask) << 24);
    const uint64_t admit =
        w < envelope_words ? uint64_t(envelope_words_that_decide) >> w : words >> ((w - envelope_words) / 2);
    return (admit & 1) != 0 ? 0xffffffff : 0;
  }

  uint32_t like_[words_a_packet] = {};
  uint32_t decides_[words_a_packet] = {};  // the bits
  uint32_t deadline_ = 0;  // the sign bit in the thread that has the deadline first in its packet
};

/// Words of a worker's own memory that one message of `shape` is unpacked into, or built in: a multiple of 16
/// bytes, and a warp may read past the end of a short one, or unpack several side by side.
GYRE_DEVICE constexpr uint32_t message_words(const RingShape& shape) {
  return (shape.packets() < 32 ? 32 : shape.packets()) * words_a_packet;
}

/// The looks at command word and clock.
class CommandWatch {
 public:
  GYRE_DEVICE CommandWord command() const { return {command_}; }
  /// The host's clock when the worker last looked, in microseconds: the worker's estimate, by its own clock
  /// since the host last said the time. Good enough to suspect that a message is late, not to refuse it:
  /// clocks drift, and a GPU's may step.
  GYRE_DEVICE uint32_t now_us() const { return now_us_; }

  /// clock_ticks() at the last time this asked, or read_clock_again().
  GYRE_DEVICE uint64_t ticks() const { return ticks_; }
  GYRE_DEVICE void read_clock_again() { ticks_ = clock_ticks(); }

  /// Asks for the command word if a look is due: while a look at the ring is under way, so that the two cross
  /// the bus together. This and the next: collective over PollGroup.
  GYRE_DEVICE void ask(const CommandLine& command_line) {
    ticks_ = clock_ticks();
    const bool due = PollGroup::any(uint32_t(ticks_) - sampled_at_ >= command_poll_interval);
    if (due) {
      sampled_at_ = uint32_t(ticks_);
      now_us_ = uint32_t(now_ns() / 1000) + host_ahead_us_;
    }
    if (due || samples_command_each_poll) {
      pending_ = true;
      due_ = due;
      sample_ = Memory::load_relaxed(command_line.command);
    }
  }
  /// Takes the answer, if one was asked for; true where the look was due, or the command is another than
  /// before.
  GYRE_DEVICE bool accept() {
    if (!pending_) return false;
    pending_ = false;
    const uint32_t before = command_;
    command_ = PollGroup::broadcast(uint32_t(sample_));
    if constexpr (!shares_host_clock) set_host_time(PollGroup::broadcast(CommandLine::host_us_in(sample_)));
    return !samples_command_each_poll || due_ || command_ != before;
  }

 private:
  GYRE_DEVICE void set_host_time(uint32_t host_us) {
    if (host_us == host_us_) return;
    host_us_ = host_us;
    host_ahead_us_ += host_us - now_us_;
    now_us_ = host_us;
  }

  uint32_t command_ = 0;  // CommandWord::word
  uint32_t now_us_ = 0;
  uint32_t host_us_ = 0;       // what the host last said
  uint32_t host_ahead_us_ = 0;  // of the worker's clock, by the estimate
  uint64_t ticks_ = 0;
  uint32_t sampled_at_ = 0;  // low bits of ticks_, when a look was due
  uint64_t sample_ = 0;     // CommandLine::command
  bool pending_ = false;
  bool due_ = false;  // the look that was asked for
};

/// How long the first look after a message waits, in clock_ticks(). In a conversation the host's next message
/// comes some time after the reply, and a look that just misses it costs a whole crossing of the bus: the
/// first look waits until most of the time it finds its message. Each miss by one look makes it later, each
/// hit a little earlier: some one in a hundred misses. A stream waits for nothing.
class PollDelay {
 public:
  static constexpr uint32_t miss_step = 96;
  static constexpr uint32_t longest = 1600;  ///< about what a look over the bus takes

  /// Without `looks_cross_bus` it stays 0.
  GYRE_DEVICE explicit PollDelay(bool looks_cross_bus) : longest_(looks_cross_bus ? longest : 0) {}
  GYRE_DEVICE uint32_t ticks() const { return ticks_; }
  GYRE_DEVICE bool ever() const { return longest_ != 0; }

  /// A message was found after so many looks that found nothing; `in_stream`: with another, by one look.
  GYRE_DEVICE void found(uint32_t empty_polls, bool in_stream) {
    if (in_stream) {
      ticks_ = 0;
    } else if (empty_polls == 1) {
      ticks_ = ticks_ + miss_step < longest_ ? ticks_ + miss_step : longest_;
    } else if (empty_polls == 0 && ticks_ != 0) {
      --ticks_;
    }
  }

 private:
  uint32_t ticks_ = 0;
  uint32_t longest_;
};

/// The requests of one worker, in order. The polling threads' alone. One look is for one message or, where
/// they come faster than they are taken, for as many as the threads have packets for: one each, or up to
/// most_loads.
class RequestReader {
 public:
  /// Empty looks before the ring counts as empty.
  static constexpr uint32_t empty_polls_before_credit = 8;
  /// Packets of a thread that one look loads at most, for messages that are handled side by side.
  static constexpr uint32_t most_loads = 4;

  /// `memory`: MessageMemory::request_words() words of the group's own, 16-aligned.
  GYRE_DEVICE RequestReader(const Bridge& bridge, uint32_t* memory)
      : shape_(bridge.shape),
        command_line_(bridge.command_line),
        ring_(bridge.h2d),
        next_(bridge.h2d, bridge.shape),
        memory_(pin_pointer(memory)),
        place_(pin_pointer(memory + PollGroup::rank() * words_a_packet)),
        delay_(bridge.inbound_in_region),
        most_more_polls_(samples_command_each_poll || bridge.inbound_in_region ? 0 : polls_a_turn - 1) {
    set_width(idle_log_width);
  }

  /// Before the first look, for a ring in the GPU's memory: which of its two pages of memory each page of
  /// slots gets, by how far they are. What the host has to know; polling threads, collective.
  GYRE_DEVICE uint64_t choose_slot_pages() {
    const uint64_t second = nearer_pages(ring_, shape_);
    const uint32_t low = PollGroup::broadcast(uint32_t(second));
    const uint32_t high = PollGroup::broadcast(uint32_t(second >> 32));
    slot_pages_ = {shape_, low | uint64_t(high) << 32};
    return slot_pages_.second();
  }
  /// Looks, for a message if it `wants` one, and for a command: some looks in a row where they are cheap.
  /// 0 if there is a message, whole and like the one of the last remember(); where messages are not compared
  /// so, what missing() says. Collective.
  GYRE_DEVICE uint32_t poll(bool wants) {
    uint32_t late = 0;
    if (window_left_ == 0 || !wants) {
      load_window(wants ? window_ : 0);
      head_ = RequestHead::load(request());
    } else {
      if constexpr (!samples_command_each_poll) command_watch_.ask(*command_line_);
      head_ = RequestHead::load(request());
      if constexpr (compares_packets) late = head_.lateness(command_watch_.now_us());  // since it was compared
    }
    if constexpr (compares_packets) return (~(present_ & matching_) & expected_packets_) | late;
    return size_mismatch();
  }
  /// 0 if what glance() found is a message of the size of the one before it, whole; else look_closer() says
  /// what there is.
  GYRE_DEVICE uint32_t size_mismatch() const {
    return (~present_ & expected_packets_) | (head_.body_bytes() ^ expected_bytes_);
  }
  /// Those to come that are like the message in hand, by the words of its body that `words` has as bits, are
  /// what glance() says 0 of. Collective.
  GYRE_DEVICE void remember(uint64_t words) {
    if constexpr (compares_packets) {
      match_bytes_ = head_.body_bytes();
      const uint32_t width = 1u << log_width_for(packets_for(match_bytes_));
      match_.take(request(), PollGroup::rank() & (width - 1), words);
      matching_ = 0;  // those seen already were held against another
      batch_ready_ = 0;
      update_match_mask();
    }
  }
  /// None is, any more.
  GYRE_DEVICE void forget() {
    match_bytes_ = no_match;
    match_mask_ = 0;
    matching_ = 0;
    batch_ready_ = 0;
  }
  /// What glance() found, if not that: message, corrupt or nothing. Collective.
  GYRE_DEVICE PollOutcome classify() {
    if ((present_ & 1) == 0) return nothing();
    const uint32_t body_bytes = head_.body_bytes();  // says the message, whatever it is
    const uint32_t needed = packets_for(body_bytes < 0x7fffffff ? body_bytes : 0x7fffffff);
    if (is_whole(present_, needed, width_)) return PollOutcome::message;
    if (needed > window_packets() || delay_.ever()) return load_rest();
    window_left_ = 0;  // in part, after a row of looks: the next begins with it
    return PollOutcome::nothing;
  }
  /// Asks for the command once it is known whether there is a message, where that is in the cache: the clock
  /// is read then, and its handler's time begins.
  GYRE_DEVICE void ask_at_each_poll() {
    if constexpr (samples_command_each_poll) command_watch_.ask(*command_line_);
  }
  /// Whether a look was due, or found another command, since the last time this was asked. Collective.
  GYRE_DEVICE bool take_command_sample() { return command_watch_.accept(); }
  GYRE_DEVICE const CommandWatch& command_watch() const { return command_watch_; }
  GYRE_DEVICE void read_clock_again() { command_watch_.read_clock_again(); }
  /// In a row, so far.
  GYRE_DEVICE uint32_t empty_polls() const { return empty_polls_; }

  /// The message that was found, and its head.
  GYRE_DEVICE const uint32_t* request() const { return memory_ + request_word_; }
  GYRE_DEVICE const RequestHead& head() const { return head_; }
  GYRE_DEVICE uint64_t ticket() const { return next_.ticket(); }
  /// How many there may be with it, itself too, that need no other look.
  GYRE_DEVICE uint32_t window_left() const { return window_left_; }
  /// Whether messages have been there before they were looked for, several times in a row.
  GYRE_DEVICE bool in_stream() const { return hits_in_a_row_ >= stream_begins; }

  /// What a look finds behind messages that were found before: `loads` packets of the calling thread.
  template <uint32_t loads>
  struct Prefetch {
    Packet packets[loads] = {};
    uint32_t messages = 0;  // that it is for
  };
  /// Begins that look, while the last `n` of those seen are yet to be handled; for none where there are more.
  /// The packet is there when it is used.
  GYRE_DEVICE Prefetch<1> prefetch(uint32_t n) const {
    Prefetch<1> prefetched;
    if (n == window_left_) begin(prefetched, n, most_);
    return prefetched;
  }
  /// Messages that the last look was for, or what is left of them.
  GYRE_DEVICE uint32_t polled_messages() const { return batch_ready_ != 0 ? batch_polled_ : window_left_; }
  /// Begins a look behind `n` that are handled side by side, by a load more than there are whole ones of
  /// them.
  GYRE_DEVICE Prefetch<most_loads> prefetch_batch(uint32_t n) const {
    Prefetch<most_loads> prefetched;
    const uint32_t loads = (n << log_width_) / PollGroup::size() + 1;
    begin(prefetched, n, (loads < most_loads ? loads : most_loads) * most_);
    return prefetched;
  }
  /// After next(n): what look_ahead(n) found. Where the first of its messages was not there it is looked for
  /// again: it may have come since. Collective.
  template <uint32_t loads>
  GYRE_DEVICE void adopt(const Prefetch<loads>& prefetched) {
    if (prefetched.messages == 0) return;
    const uint32_t among = PollGroup::ballot(message_ < prefetched.messages);
    present_ = PollGroup::ballot(prefetched.packets[0].stamp == next_.stamp()) & among;
    compare(prefetched.packets[0]);
    unpack(prefetched.packets[0], place_, 0);
    if constexpr (loads != 1) adopt_batch(prefetched);
    PollGroup::sync();
    request_word_ = 0;
    taken_ = 0;
    window_left_ = (present_ & 1) == 0 ? 0 : prefetched.messages < most_ ? prefetched.messages : most_;
    if (window_left_ == 0 && most_ == 1) leave_stream();
  }
  /// After next() of messages that were handled side by side. Where they were not `all` that the last look
  /// was for, and nothing else of it is in hand, the next look is for one.
  GYRE_DEVICE void finish_batch(bool all) {
    if (window_left_ == 0 && !all) window_ = 1;
  }
  /// log2 of the packets that a look covers of each, and of the threads that loaded them.
  GYRE_DEVICE uint32_t log_width() const { return log_width_; }
  /// That of number `n` behind the message that was found.
  GYRE_DEVICE const uint32_t* request_after(uint32_t n) const {
    return request() + n * (width_ * words_a_packet);
  }
  /// How many from the one that was found on, at most as many as threads, glance() would say 0 of, but for
  /// deadlines that passed since the look. Collective.
  GYRE_DEVICE uint32_t batch_size() const {
    if (batch_ready_ != 0) return batch_ready_;
    const uint32_t k = PollGroup::rank();
    return PollGroup::leading(k < window_left_ && matches_expected(present_ & matching_, k));
  }
  /// It is done with, by the whole group: on to the next, or to that behind `n` of those seen, or of a row.
  GYRE_DEVICE void next(uint32_t n = 1) {
    next_.advance(shape_, n);
    const int32_t seen_behind = int32_t(window_left_) - int32_t(n);  // of a row there may be more than were seen
    window_left_ = seen_behind > 0 ? uint32_t(seen_behind) : 0;
    taken_ += n;
    batch_ready_ = 0;
    present_ = n * width_ < 32 ? present_ >> (n * width_) : 0;
    matching_ = n * width_ < 32 ? matching_ >> (n * width_) : 0;
    request_word_ += n * (width_ * words_a_packet);
    if constexpr (delays_first_poll) {
      if (delay_.ever()) delay_.found(empty_polls_, taken_ > 1);
    }
    more_polls_ = most_more_polls_;
    // Messages that were there when they were looked for, several times in a row, may have others behind
    // them.
    hits_in_a_row_ = empty_polls_ == 0 || hits_in_a_row_ < 0 ? hits_in_a_row_ + 1 : 0;
    window_ = in_stream() ? most_ : 1;
    empty_polls_ = 0;
    if (head_.body_bytes() == expected_bytes_) return;
    if (head_.body_bytes() <= shape_.body_capacity()) expect_size(head_.body_bytes());
    window_left_ = 0;
    window_ = 1;
    hits_in_a_row_ = 0;
  }

 private:
  static constexpr uint32_t idle_log_width = 2;  // one 64-byte line: idle workers share the bus
  static constexpr uint32_t empty_polls_before_idle = 200;      // empty looks before a worker counts as idle
  static constexpr int32_t stream_begins = 4;    // messages in a row
  // In a row, with nothing between them, where a look does not cross the bus: more than a conversation's next
  // message takes to come, or it would come between two such rows.
  static constexpr uint32_t polls_a_turn = 16;

  // Messages of this size: one look is to be enough for them, where it can be.
  GYRE_DEVICE void expect_size(uint32_t body_bytes) {
    const uint32_t needed = packets_for(body_bytes);
    set_width(log_width_for(needed));
    const bool by_one_look = needed <= 32;
    expected_bytes_ = by_one_look ? body_bytes : several_loads;
    expected_packets_ = by_one_look ? 0xffffffffu >> (32 - needed) : 0xffffffffu;
    update_match_mask();
  }
  GYRE_DEVICE static uint32_t log_width_for(uint32_t packets) {
    return packets <= 4 ? 2 : packets <= 8 ? 3 : packets <= 16 ? 4 : 5;
  }
  // Looks are for messages of one size: those of another are not held against the one remembered.
  GYRE_DEVICE void update_match_mask() { match_mask_ = expected_bytes_ == match_bytes_ ? 0xffffffff : 0; }
  GYRE_DEVICE void compare(const Packet& packet) {
    if constexpr (compares_packets) {
      matching_ = PollGroup::ballot(match_.difference(packet, command_watch_.now_us()) == 0) & match_mask_;
    }
  }
  GYRE_DEVICE void set_width(uint32_t log_width) {
    log_width_ = log_width;
    width_ = 1u << log_width;
    most_ = width_ < PollGroup::size() ? PollGroup::size() / width_ : 1;
    const uint32_t k = PollGroup::rank() & (width_ - 1);
    message_ = k < shape_.packets() ? PollGroup::rank() >> log_width : PollGroup::size();
    packet_ = (PollGroup::rank() >> log_width) * shape_.packets() + k;
    packet_of_first_ = k < shape_.packets() ? k : 0;
  }

  // Whether all packets of a message of the usual size are among those of a load, number `k` of its messages.
  GYRE_DEVICE bool matches_expected(uint32_t packets, uint32_t k) const {
    return ((packets >> (k << log_width_)) & expected_packets_) == expected_packets_;
  }
  // Loads packets of `most` messages at the most, `n` behind the one in hand: to the end of their lap, which
  // is the next where this one ends there.
  template <uint32_t loads>
  GYRE_DEVICE void begin(Prefetch<loads>& prefetched, uint32_t n, uint32_t most) const {
    uint32_t left = next_.left_of_lap() - n, first = n * shape_.packets();
    if (left == 0) {
      left = shape_.slots;
      first = 0 - uint32_t(next_.slot() - ring_);
    }
    prefetched.messages = left < most ? left : most;
    prefetched.packets[0] = Memory::load(cell(first + packet_to_load(prefetched.messages)));
    for (uint32_t i = 1; i < loads; ++i) {
      if (message_ + i * most_ >= prefetched.messages) continue;
      prefetched.packets[i] = Memory::load(cell(first + packet_ + i * most_ * shape_.packets()));
    }
  }
  // All packets but the first of each thread, and which messages they make.
  GYRE_DEVICE void adopt_batch(const Prefetch<most_loads>& prefetched) {
    const uint32_t k = PollGroup::rank(), of_load = k & (most_ - 1);
    bool usual = k < most_ && matches_expected(present_ & matching_, of_load);
    for (uint32_t i = 1; i < most_loads; ++i) {
      const Packet& packet = prefetched.packets[i];
      const bool among = message_ + i * most_ < prefetched.messages;
      const uint32_t good = PollGroup::ballot(among && packet.stamp == next_.stamp() &&
                                              match_.difference(packet, command_watch_.now_us()) == 0);
      unpack(packet, place_ + i * (32 * words_a_packet), 0);
      if ((k << log_width_) / PollGroup::size() == i) usual = matches_expected(good, of_load);
    }
    batch_ready_ = PollGroup::leading(usual);
    batch_polled_ = prefetched.messages;
  }

  // Packet `packet` from the message in hand on.
  GYRE_DEVICE const Packet& cell(uint32_t packet) const {
    return ring_[slot_pages_.place(uint32_t(next_.slot() - ring_) + packet)];
  }
  // Which this thread loads, where a look is for so many messages. Threads beyond those load what others do:
  // that costs nothing, and knowing them would.
  GYRE_DEVICE uint32_t packet_to_load(uint32_t messages) const {
    return message_ < messages ? packet_ : packet_of_first_;
  }

  // Loads the first packets of so many messages and unpacks them side by side: what is there is unpacked
  // before it is known to be whole, and nobody looks at it if it is not.
  GYRE_DEVICE void load_window(uint32_t messages) {
    if constexpr (delays_first_poll) {
      if (empty_polls_ == 0 && delay_.ticks() != 0) wait_ticks(delay_.ticks());
    }
    if (messages > next_.left_of_lap()) messages = next_.left_of_lap();
    if constexpr (samples_command_each_poll) {
      Packet packet{{0, 0, 0}, 0};
      if (messages != 0) packet = Memory::load(cell(0));
      present_ = packet.stamp == next_.stamp() ? 1 : 0;
      unpack(packet, memory_, 0);
    } else {
      const Packet& looked_at = cell(packet_to_load(messages));
      Packet packet = Memory::load(looked_at);
      command_watch_.ask(*command_line_);
      const bool among = message_ < messages;
      const bool expected = among && message_ == 0 && (expected_packets_ >> PollGroup::rank() & 1) != 0;
      for (uint32_t more = more_polls_; more != 0; --more) {
        const bool size_mismatch = expected && packet.stamp != next_.stamp();
        if (!PollGroup::any(size_mismatch)) break;
        packet = Memory::load(looked_at);
        // While that is under way: where a message's first packet was there, it is the last look of the row.
        // What was missing has most likely come by then, or it is a shorter message.
        if (PollGroup::any(expected && !size_mismatch && PollGroup::rank() == 0)) {
          more = 1;
        } else {
          ++empty_polls_;
        }
      }
      command_watch_.read_clock_again();
      present_ = PollGroup::ballot(among && packet.stamp == next_.stamp());
      unpack(packet, place_, 0);
      compare(packet);
      PollGroup::sync();
    }
    request_word_ = 0;
    window_left_ = messages;
    taken_ = 0;
    batch_ready_ = 0;
  }

  GYRE_DEVICE void leave_stream() { hits_in_a_row_ = delay_.ticks() == 0 ? -64 : -1024; }

  GYRE_DEVICE PollOutcome nothing() {
    // A look for several that found one is not repeated soon: it takes longer.
    if (window_ > 1 && taken_ == 1) leave_stream();
    window_ = 1;
    window_left_ = 0;
    ++empty_polls_;
    if (empty_polls_ >= empty_polls_before_idle && expected_bytes_ != no_body_bytes) {
      set_width(idle_log_width);
      expected_bytes_ = no_body_bytes;
      match_mask_ = 0;
      more_polls_ = 0;
    }
    return PollOutcome::nothing;
  }

  // Packets of the first message that a look covers.
  GYRE_DEVICE uint32_t window_packets() const {
    const uint32_t threads = width_ < PollGroup::size() ? width_ : PollGroup::size();
    return threads < shape_.packets() ? threads : shape_.packets();
  }
  // A message that is longer than the one before it, or, where a look takes long, one that was seen before it
  // was whole.
  GYRE_DEVICE PollOutcome load_rest() {
    const bool first = request_word_ == 0;
    window_left_ = 0;
    if (!first) return PollOutcome::nothing;  // the next look begins with it
    const uint32_t known = is_whole(present_, window_packets(), window_packets()) ? window_packets() : 1;
    const ReceiveOutcome outcome =
        receive_rest<Memory>(PollGroup{}, &cell(0), next_.stamp(), shape_, known, memory_);
    head_ = RequestHead::load(memory_);
    if (outcome == ReceiveOutcome::nothing) return PollOutcome::nothing;
    window_left_ = 1;
    return outcome == ReceiveOutcome::message ? PollOutcome::message : PollOutcome::corrupt;
  }

  // Sizes that no body has: of no message, of one that one look is not enough for, and what no message is
  // like.
  static constexpr uint32_t no_body_bytes = 4, several_loads = 3, no_match = 5;

  RingShape shape_;
  const CommandLine* command_line_;
  Packet* ring_;
  SlotPages slot_pages_;
  RingCursor<Memory> next_;  // as if the ring were in one piece
  uint32_t* memory_;
  uint32_t* place_;            // of this thread's packet in it
  uint32_t request_word_ = 0;  // in it, where the message in hand begins
  PollDelay delay_;
  RequestHead head_;
  CommandWatch command_watch_;
  uint32_t empty_polls_ = 0;
  uint32_t expected_bytes_ = no_body_bytes;  // that width_ is for
  uint32_t expected_packets_ = 0xffffffff;       // bit k: a message of that size has a packet k
  uint32_t most_more_polls_;                  // after the first, at once
  uint32_t more_polls_ = 0;                   // of them, that the next glimpse takes
  uint32_t log_width_;
  uint32_t width_;            // packets of each message that a look covers: 4, 8, 16 or 32
  uint32_t message_;          // that this thread looks for a packet of, of those that a look is for
  uint32_t packet_;           // which, from the first of them on
  uint32_t packet_of_first_;  // which of the first one, where that is all that is looked for
  uint32_t window_ = 1;       // messages that the next look is for
  uint32_t most_;             // of them
  uint32_t taken_ = 0;        // messages since the last glimpse
  int32_t hits_in_a_row_ = 0;      // messages that were there at the first look
  uint32_t window_left_ = 0;         // messages from the message in hand on that the last look was for
  uint32_t present_ = 0;        // bit k: packet k from the message in hand on is there
  // Where messages are compared by packets.
  PacketMatch match_;
  uint32_t match_bytes_ = no_match;  // the size of a message that is alike
  uint32_t match_mask_ = 0;                        // all bits: such messages are what looks are for
  uint32_t matching_ = 0;           // bit k: packet k from the message in hand on may be such a message's
  uint32_t batch_ready_ = 0;             // usual_in_a_row(), where a look for more than seen_ found it: that was for
  uint32_t batch_polled_ = 0;  // so many
};

}  // namespace gyre
