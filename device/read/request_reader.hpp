// How a worker finds its requests: poll the ring, unpack what is there, say whether it may take the fast
// path.
//
//   poll()      loads the window, or takes the next message of the last one
//   classify()  says what there is, where poll() found no match
//   prefetch()  begins the next poll while the last message of this one is handled
//   adopt()     takes what the prefetch found
//   advance()   moves on to the next message
#pragma once

#include <gyre/device/read/command_watch.hpp>
#include <gyre/device/read/inbound_ring.hpp>
#include <gyre/device/read/match.hpp>
#include <gyre/device/read/poll_delay.hpp>
#include <gyre/device/read/poll_window.hpp>
#include <gyre/device/read/request_head.hpp>

namespace gyre {

/// What a poll found.
enum class PollOutcome : uint32_t { nothing, message, corrupt, stop };

/// Words of a worker's own memory that one message of `shape` is unpacked into or built in. A multiple of 16
/// bytes, and never fewer than a warp's packets: a warp may read past the end of a short message, or unpack
/// several side by side.
GYRE_DEVICE constexpr uint32_t message_words(const RingShape& shape) {
  return (shape.packets() < 32 ? 32 : shape.packets()) * words_a_packet;
}

/// The requests of one worker, in order. The polling threads' alone. A poll covers one message or, while
/// messages come faster than they are handled (a stream), as many as the threads have packets for.
///
/// What the last poll found, from the message in hand on (bit k stands for packet k of the window):
///   present_    packets whose stamp says that they are there
///   matching_   packets that match the remembered message; none where nothing is remembered
///   window_left_  messages that the poll covered and that are not handled yet; 0: the next poll() loads
class RequestReader {
 public:
  /// Empty polls in a row before pending credit is published.
  static constexpr uint32_t empty_polls_before_credit = 8;

  /// @param memory  MessageMemory::request_words() words of the group's own, 16-aligned
  GYRE_DEVICE RequestReader(const Bridge& bridge, uint32_t* memory)
      : command_line_(bridge.command_line),
        ring_(bridge.h2d, bridge.shape),
        memory_(pin_pointer(memory)),
        unpacked_(pin_pointer(memory + PollGroup::rank() * words_a_packet)),
        delay_(bridge.inbound_in_region),
        max_repeat_loads_(samples_command_each_poll || bridge.inbound_in_region ? 0 : loads_a_poll - 1) {
    window_.set_width(idle_log_width, ring_.shape());
  }

  GYRE_DEVICE uint64_t choose_slot_pages() { return ring_.choose_slot_pages(); }

  /// What poll() looks at beside the ring: nothing.
  struct NothingBeside {
    GYRE_DEVICE static constexpr void load() {}
    GYRE_DEVICE static constexpr bool is_alone(bool) { return false; }
  };

  /// Polls for a message, if `wants_message`, and for a command. Collective.
  /// @param beside  load() is called beside each load of the ring. The poll ends early, and finds nothing,
  ///                once is_alone(none) is true. `none`, which counts in the thread of rank 0: no message
  ///                begins in the ring
  /// @returns 0 if a whole message is there that matches the remembered one; where packets are not compared,
  ///          one that has the expected size. Else classify() says what there is.
  template <class Beside>
  GYRE_DEVICE uint32_t poll(bool wants_message, Beside& beside) {
    uint32_t late = 0;
    if (window_left_ == 0 || !wants_message) {
      if (load_window(wants_message ? next_window_ : 0, beside)) return 1;
      head_ = RequestHead::load(request());
    } else {
      if constexpr (!samples_command_each_poll) command_watch_.request_sample(*command_line_);
      head_ = RequestHead::load(request());
      // Time has passed since the packets were compared.
      if constexpr (compares_packets) late = head_.late_bit(command_watch_.now_us());
    }
    if constexpr (compares_packets) return (~(present_ & matching_) & expected_packets_) | late;
    return size_mismatch();
  }
  GYRE_DEVICE uint32_t poll(bool wants_message) {
    NothingBeside nothing;
    return poll(wants_message, nothing);
  }
  /// 0 where a whole message of the expected size is there.
  GYRE_DEVICE uint32_t size_mismatch() const {
    return (~present_ & expected_packets_) | (head_.body_bytes() ^ expected_bytes_);
  }
  /// Remembers the message in hand: from the next poll on, messages that PacketMatch accepts match it.
  /// Collective.
  /// @param body_words  as PacketMatch::remember's
  GYRE_DEVICE void remember(uint64_t body_words) {
    if constexpr (compares_packets) {
      match_bytes_ = head_.body_bytes();
      const uint32_t width = 1u << PollWindow::log_width_for(packets_for(match_bytes_));
      match_.remember(request(), PollGroup::rank() & (width - 1), body_words);
      matching_ = 0;  // the packets in hand were compared with another message
      batch_ready_ = 0;
      update_match_mask();
    }
  }
  /// Forgets the remembered message: nothing matches.
  GYRE_DEVICE void forget() {
    match_bytes_ = no_match;
    match_mask_ = 0;
    matching_ = 0;
    batch_ready_ = 0;
  }
  /// Whether poll() found that no message begins.
  GYRE_DEVICE bool begins_none() const { return (present_ & 1) == 0; }
  /// After begins_none(): the next poll loads anew.
  GYRE_DEVICE void drop_window() { window_left_ = 0; }
  /// Says what poll() found where it did not return 0: message, corrupt or nothing. Collective.
  GYRE_DEVICE PollOutcome classify() {
    if ((present_ & 1) == 0) return count_empty_poll();
    const uint32_t body_bytes = head_.body_bytes();  // as the message says, which may be wrong
    const uint32_t needed = packets_for(body_bytes < 0x7fffffff ? body_bytes : 0x7fffffff);
    if (is_whole(present_, needed, window_.width())) return PollOutcome::message;
    if (needed > window_.packets_of_first(ring_.shape()) || delay_.enabled()) return load_rest();
    window_left_ = 0;  // the message is there in part: the next poll begins with it
    return PollOutcome::nothing;
  }

  /// On the CPU alone: samples the command after the poll. The sample reads the clock, and the handler's time
  /// begins.
  GYRE_DEVICE void request_cached_command() {
    if constexpr (samples_command_each_poll) command_watch_.request_sample(*command_line_);
  }
  /// Samples the command, if that is due, and reads the clock: for a message that did not come by poll().
  GYRE_DEVICE void request_command() { command_watch_.request_sample(*command_line_); }
  /// CommandWatch::make_sample_due().
  GYRE_DEVICE void make_sample_due() { command_watch_.make_sample_due(); }
  /// CommandWatch::take_sample().
  GYRE_DEVICE bool take_command_sample() { return command_watch_.take_sample(); }
  GYRE_DEVICE const CommandWatch& command_watch() const { return command_watch_; }
  GYRE_DEVICE void read_clock_again() { command_watch_.read_clock_again(); }
  /// Polls that found nothing since the last message.
  GYRE_DEVICE uint32_t empty_polls() const { return empty_polls_; }

  /// The message in hand, and its head.
  GYRE_DEVICE const uint32_t* request() const { return memory_ + request_word_; }
  GYRE_DEVICE const RequestHead& head() const { return head_; }
  /// Makes head() that of another message, which did not come by poll(), until the next poll().
  GYRE_DEVICE void load_head(const uint32_t* request) { head_ = RequestHead::load(request); }
  /// Message `n` behind the one in hand, of the same window.
  GYRE_DEVICE const uint32_t* request_after(uint32_t n) const {
    return request() + n * (window_.width() * words_a_packet);
  }
  GYRE_DEVICE uint64_t ticket() const { return ring_.ticket(); }
  /// Messages from the one in hand on that the last poll covered; some may not be there.
  GYRE_DEVICE uint32_t window_left() const { return window_left_; }
  /// log2 of the packets of each message that a poll covers, which as many threads load.
  GYRE_DEVICE uint32_t log_width() const { return window_.log_width(); }
  /// True where messages were there at the first poll for them, several times in a row.
  GYRE_DEVICE bool in_stream() const { return hits_in_a_row_ >= stream_begins; }

  /// Begins to load what follows the next `n` messages while they are handled; nothing while the window holds
  /// more than `n`: then adopt() does nothing.
  /// @tparam loads  packets of each thread: 1, or PollWindow::most_loads behind a batch
  template <uint32_t loads>
  GYRE_DEVICE Prefetch<loads> prefetch(uint32_t n) const {
    Prefetch<loads> prefetch;
    if (n < window_left_) return prefetch;
    uint32_t begun = 1;
    if constexpr (loads != 1) {  // a load more than the batch filled
      begun = (n << window_.log_width()) / PollGroup::size() + 1;
      if (begun > loads) begun = loads;
    }
    window_.begin(prefetch, ring_, n, begun * window_.messages_a_load());
    return prefetch;
  }
  /// Takes what prefetch() found, after advance(). A first message that was not there is polled for again: it
  /// may have come since. Collective.
  template <uint32_t loads>
  GYRE_DEVICE void adopt(const Prefetch<loads>& prefetch) {
    if (prefetch.messages == 0) return;
    const uint32_t covered = PollGroup::ballot(window_.message() < prefetch.messages);
    present_ = PollGroup::ballot(prefetch.packets[0].stamp == ring_.stamp()) & covered;
    compare(prefetch.packets[0]);
    unpack(prefetch.packets[0], unpacked_, 0);
    if constexpr (loads != 1) adopt_further_loads(prefetch);
    PollGroup::sync();
    request_word_ = 0;
    handled_ = 0;
    const uint32_t most = window_.messages_a_load();
    window_left_ = (present_ & 1) == 0 ? 0 : prefetch.messages < most ? prefetch.messages : most;
    if (window_left_ == 0 && most == 1) leave_stream();
  }

  /// Messages that the last poll covered, or what is left of them.
  GYRE_DEVICE uint32_t polled_messages() const { return batch_ready_ != 0 ? batch_polled_ : window_left_; }
  /// Messages from the one in hand on that are whole and match; at most as many as threads. Deadlines that
  /// passed since the poll are not checked. Collective.
  GYRE_DEVICE uint32_t batch_size() const {
    if (batch_ready_ != 0) return batch_ready_;
    const uint32_t k = PollGroup::rank();
    return PollGroup::leading(k < window_left_ && matches_expected(present_ & matching_, k));
  }
  /// Loads, once, the messages behind the one in hand that are there, up to the end of the lap, whole and in
  /// a row, and unpacks them. Collective.
  /// @param most  messages, the one in hand counted; at most 32
  /// @param to    of the group's own memory: the first of them, and the others `stride` words apart
  /// @returns     how many there are, the one in hand counted
  GYRE_DEVICE uint32_t gather(uint32_t most, uint32_t* to, uint32_t stride) const {
    const RingShape& shape = ring_.shape();
    if (most > ring_.left_of_lap()) most = ring_.left_of_lap();
    uint32_t missing = most;  // the first that is not there, as this thread sees it
    GYRE_ROLLED
    for (uint32_t n = 1 + PollGroup::rank(); n < missing; n += PollGroup::size()) {
      const Packet first = Memory::load(ring_.cell(n * shape.packets()));
      const bool there = first.stamp == ring_.stamp() && body_bytes_in(first) <= shape.body_capacity();
      if (!there) missing = n;
      unpack(first, to + (n - 1) * stride, 0);
    }
    uint32_t count = first_missing(missing, most), packets = 0;
    PollGroup::sync();
    for (uint32_t n = 1; n < count; ++n) {
      const uint32_t of_this = packets_for(body_bytes_in(to + (n - 1) * stride));
      if (of_this > packets) packets = of_this;
    }
    missing = count;
    const uint32_t rest = packets == 0 ? 0 : packets - 1, total = (count - 1) * rest;
    constexpr uint32_t at_once = 4;  // loads under way
    for (uint32_t begin = PollGroup::rank(); begin < total; begin += at_once * PollGroup::size()) {
      Packet loaded[at_once] = {};
      uint32_t message[at_once], packet[at_once];
      for (uint32_t i = 0; i < at_once; ++i) {
        const uint32_t place = begin + i * PollGroup::size();
        message[i] = place / rest;
        packet[i] = 1 + place % rest;
        const bool is_one = place < total && packet[i] < packets_for(body_bytes_in(to + message[i] * stride));
        if (!is_one) packet[i] = 0;
        if (is_one) loaded[i] = Memory::load(ring_.cell((1 + message[i]) * shape.packets() + packet[i]));
      }
      for (uint32_t i = 0; i < at_once; ++i) {
        if (packet[i] == 0) continue;
        if (loaded[i].stamp != ring_.stamp() && 1 + message[i] < missing) missing = 1 + message[i];
        unpack(loaded[i], to + message[i] * stride, packet[i]);
      }
    }
    count = first_missing(missing, count);
    PollGroup::sync();
    return count;
  }

  /// Ends a batch, after advance().
  /// @param was_all  the batch was all that the poll covered; if not, the next poll is for one message
  GYRE_DEVICE void finish_batch(bool was_all) {
    if (window_left_ == 0 && !was_all) next_window_ = 1;
  }

  /// Moves on behind `n` messages of the window or of a batch, which the whole group has handled.
  GYRE_DEVICE void advance(uint32_t n = 1) {
    ring_.advance(n);
    const int32_t left = int32_t(window_left_) - int32_t(n);  // a batch may be larger than the window
    window_left_ = left > 0 ? uint32_t(left) : 0;
    handled_ += n;
    batch_ready_ = 0;
    const uint32_t packets = n * window_.width();
    present_ = packets < 32 ? present_ >> packets : 0;
    matching_ = packets < 32 ? matching_ >> packets : 0;
    request_word_ += packets * words_a_packet;
    if constexpr (delays_first_poll) {
      if (delay_.enabled()) delay_.adapt(empty_polls_, handled_ > 1);
    }
    repeat_loads_ = max_repeat_loads_;
    // Messages that were there at the first poll, several times in a row, may have others behind them.
    hits_in_a_row_ = empty_polls_ == 0 || hits_in_a_row_ < 0 ? hits_in_a_row_ + 1 : 0;
    next_window_ = in_stream() ? window_.messages_a_load() : 1;
    empty_polls_ = 0;
    if (head_.body_bytes() == expected_bytes_) return;
    if (head_.body_bytes() <= ring_.shape().body_capacity()) expect_size(head_.body_bytes());
    window_left_ = 0;
    next_window_ = 1;
    hits_in_a_row_ = 0;
  }

 private:
  static constexpr uint32_t idle_log_width = 2;             // one 64-byte line: idle workers share the bus
  static constexpr uint32_t empty_polls_before_idle = 200;  // before a worker counts as idle
  static constexpr int32_t stream_begins = 4;               // messages in a row
  // Loads in a row where a load does not cross the bus. Sixteen outlast a round trip, so that the next
  // message of a conversation arrives within one poll.
  static constexpr uint32_t loads_a_poll = 16;
  // Sizes that no body has: no message, one that a single poll does not cover, and no remembered message.
  static constexpr uint32_t no_body_bytes = 4, several_polls = 3, no_match = 5;

  // The least of the threads' numbers, each from 1 to `most`.
  GYRE_DEVICE static uint32_t first_missing(uint32_t missing, uint32_t most) {
    uint32_t n = 1;
    while (n < most && !PollGroup::any(missing == n)) ++n;
    return n;
  }
  // Chooses the window that covers messages of this size, if one can.
  GYRE_DEVICE void expect_size(uint32_t body_bytes) {
    const uint32_t needed = packets_for(body_bytes);
    window_.set_width(PollWindow::log_width_for(needed), ring_.shape());
    const bool by_one_poll = needed <= 32;
    expected_bytes_ = by_one_poll ? body_bytes : several_polls;
    expected_packets_ = by_one_poll ? 0xffffffffu >> (32 - needed) : 0xffffffffu;
    update_match_mask();
  }
  // A window is for messages of one size: nothing in it matches a remembered message of another.
  GYRE_DEVICE void update_match_mask() { match_mask_ = expected_bytes_ == match_bytes_ ? 0xffffffff : 0; }
  GYRE_DEVICE void compare(const Packet& packet) {
    if constexpr (compares_packets) {
      matching_ = PollGroup::ballot(match_.mismatch_bits(packet, command_watch_.now_us()) == 0) & match_mask_;
    }
  }
  // Whether all packets that a message of the expected size has are set in `packets`, for message `k` of a
  // load.
  GYRE_DEVICE bool matches_expected(uint32_t packets, uint32_t k) const {
    return ((packets >> (k << window_.log_width())) & expected_packets_) == expected_packets_;
  }
  // Unpacks all packets of a prefetch but the first of each thread, and finds which messages they complete.
  GYRE_DEVICE void adopt_further_loads(const Prefetch<PollWindow::most_loads>& prefetch) {
    const uint32_t k = PollGroup::rank(), most = window_.messages_a_load(), of_load = k & (most - 1);
    bool matches = k < most && matches_expected(present_ & matching_, of_load);
    for (uint32_t i = 1; i < PollWindow::most_loads; ++i) {
      const Packet& packet = prefetch.packets[i];
      const bool covered = window_.message() + i * most < prefetch.messages;
      const uint32_t good = PollGroup::ballot(covered && packet.stamp == ring_.stamp() &&
                                              match_.mismatch_bits(packet, command_watch_.now_us()) == 0);
      unpack(packet, unpacked_ + i * (32 * words_a_packet), 0);
      if ((k << window_.log_width()) / PollGroup::size() == i) matches = matches_expected(good, of_load);
    }
    batch_ready_ = PollGroup::leading(matches);
    batch_polled_ = prefetch.messages;
  }

  // Loads the window's packets of `messages` messages and unpacks them side by side. What is there is
  // unpacked before it is known to be whole; nothing reads it if it is not.
  // @returns whether it ended early, with nothing found
  template <class Beside>
  GYRE_DEVICE bool load_window(uint32_t messages, Beside& beside) {
    if constexpr (delays_first_poll) {
      if (empty_polls_ == 0 && delay_.ticks() != 0) wait_ticks(delay_.ticks());
    }
    if (messages > ring_.left_of_lap()) messages = ring_.left_of_lap();
    if constexpr (samples_command_each_poll) {
      Packet packet{{0, 0, 0}, 0};
      if (messages != 0) packet = Memory::load(ring_.cell(0));
      beside.load();
      present_ = packet.stamp == ring_.stamp() ? 1 : 0;
      unpack(packet, memory_, 0);
    } else {
      const Packet& cell = ring_.cell(window_.packet_to_load(messages));
      command_watch_.request_sample(*command_line_);
      const bool covered = window_.message() < messages;
      const bool expected =
          covered && window_.message() == 0 && (expected_packets_ >> PollGroup::rank() & 1) != 0;
      Packet packet;
      for (uint32_t more = repeat_loads_;; --more) {
        packet = Memory::load(cell);
        beside.load();
        if (more == 0) break;
        const bool is_there = packet.stamp == ring_.stamp();
        const uint32_t missing = PollGroup::ballot(expected && !is_there);
        if (missing == 0) break;
        if (beside.is_alone(!is_there)) return end_poll_early();
        // Where the message's first packet is there, one last load is made. What was missing has most likely
        // come by then, or the message is shorter than expected.
        if ((missing & 1) == 0) {
          more = 1;
        } else {
          ++empty_polls_;
        }
      }
      command_watch_.read_clock_again();
      present_ = PollGroup::ballot(covered && packet.stamp == ring_.stamp());
      unpack(packet, unpacked_, 0);
      compare(packet);
      PollGroup::sync();
    }
    request_word_ = 0;
    window_left_ = messages;
    handled_ = 0;
    batch_ready_ = 0;
    return false;
  }
  // The poll has found nothing: the next one loads anew. Returns true.
  GYRE_DEVICE bool end_poll_early() {
    present_ = 0;
    request_word_ = 0;
    window_left_ = 0;
    handled_ = 0;
    batch_ready_ = 0;
    return true;
  }

  GYRE_DEVICE void leave_stream() { hits_in_a_row_ = delay_.ticks() == 0 ? -64 : -1024; }

  GYRE_DEVICE PollOutcome count_empty_poll() {
    // A poll for several messages that found one costs more than a poll for one: the stream ends.
    if (next_window_ > 1 && handled_ == 1) leave_stream();
    next_window_ = 1;
    window_left_ = 0;
    ++empty_polls_;
    if (empty_polls_ >= empty_polls_before_idle && expected_bytes_ != no_body_bytes) {
      window_.set_width(idle_log_width, ring_.shape());
      expected_bytes_ = no_body_bytes;
      match_mask_ = 0;
      repeat_loads_ = 0;
    }
    return PollOutcome::nothing;
  }

  // Loads the rest of a message that is longer than the window or, where a poll crosses the bus, of one that
  // was polled before it was whole.
  GYRE_DEVICE PollOutcome load_rest() {
    const bool first = request_word_ == 0;
    window_left_ = 0;
    if (!first) return PollOutcome::nothing;  // the next poll begins with it
    const uint32_t polled = window_.packets_of_first(ring_.shape());
    const uint32_t known = is_whole(present_, polled, polled) ? polled : 1;
    const ReceiveOutcome outcome =
        receive_rest<Memory>(PollGroup{}, &ring_.cell(0), ring_.stamp(), ring_.shape(), known, memory_);
    head_ = RequestHead::load(memory_);
    if (outcome == ReceiveOutcome::nothing) return PollOutcome::nothing;
    window_left_ = 1;
    return outcome == ReceiveOutcome::message ? PollOutcome::message : PollOutcome::corrupt;
  }

  const CommandLine* command_line_;
  InboundRing ring_;
  uint32_t* memory_;           // messages of the window, unpacked
  uint32_t* unpacked_;         // in memory_: where this thread's packet goes
  uint32_t request_word_ = 0;  // in memory_: where the message in hand begins
  PollDelay delay_;
  RequestHead head_;
  CommandWatch command_watch_;
  uint32_t empty_polls_ = 0;
  PollWindow window_;
  uint32_t expected_bytes_ = no_body_bytes;  // the size of body that the window is for
  uint32_t expected_packets_ = 0xffffffff;   // bit k: a message of that size has a packet k
  uint32_t max_repeat_loads_;                // loads in a row after the first that a poll may take
  uint32_t repeat_loads_ = 0;                // that the next poll may take
  uint32_t next_window_ = 1;                 // messages that the next poll covers
  uint32_t handled_ = 0;                     // messages since the last load of a window
  int32_t hits_in_a_row_ = 0;  // messages that were there at the first poll; negative: not to count yet
  uint32_t window_left_ = 0;
  uint32_t present_ = 0;
  // Where packets are compared.
  PacketMatch match_;
  uint32_t match_bytes_ = no_match;  // the remembered message's size
  uint32_t match_mask_ = 0;          // all ones where the window is for messages of that size, else 0
  uint32_t matching_ = 0;
  uint32_t batch_ready_ = 0;   // batch_size() where a prefetch of several loads found it, else 0
  uint32_t batch_polled_ = 0;  // messages that such a prefetch covered
};

}  // namespace gyre
