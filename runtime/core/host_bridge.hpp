// The host's end of one worker's bridge: claims and publishes requests, prepays replies, drains the D2H ring.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/runtime/core/command_sender.hpp>
#include <gyre/runtime/core/slot_message.hpp>
#include <gyre/runtime/core/tell_blocks.hpp>
#include <gyre/runtime/core/told_queue.hpp>
#include <gyre/runtime/cpu/doorbell.hpp>
#include <gyre/runtime/system/assert.hpp>

#include <algorithm>
#include <atomic>
#include <thread>

namespace gyre {

/// Thread-safe. Only drain_after_others() waits.
class HostBridge {
 public:
  /// @param bridge  the worker's, in the region
  /// @param bar     the inbound part in device memory, which the worker reads in place of the region's, if
  /// there is one
  /// @param bell    wakes the worker; null if nothing does
  /// @param told    slots of the D2H ring kept for messages of actors to the host: told_slots(), or 0
  explicit HostBridge(const Bridge& bridge, const BarBridge& bar = {}, Doorbell* bell = nullptr,
                      uint32_t told = 0)
      : bridge_(bridge),
        bar_(bar),
        bell_(bell),
        commands_(bridge, bar, bell),
        claim_(bridge.worker_line->h2d_credit, bridge.shape.slots),
        next_reply_(bridge.d2h, bridge.shape),
        told_slots_(told),
        told_(bridge.host_line, bridge.shape, told),
        tell_blocks_(bridge.shape.slots) {
    expect_reply();
  }

  const Bridge& bridge() const { return bridge_; }
  /// Returns how worker and waiting threads wake each other; null where they do not.
  Doorbell* bell() const { return bell_; }
  /// Reads where the worker's slots lie over BAR. Once the worker has started, before the first message.
  void take_slot_pages() {
    if (bar_.h2d != nullptr && SlotPages::pages(bridge_.shape) != 0)
      slot_pages_ = {bridge_.shape, bridge_.worker_line->slot_pages};
  }

  /// Returns how many D2H slots asks may hold. The rest is for control messages, so that a worker can always
  /// answer those, and for messages of actors to the host.
  uint32_t replies_allowed() const { return bridge_.shape.slots - control_reserve - told_slots_; }
  /// Messages of the worker's actors to the host.
  ToldQueue& told() { return told_; }

  /// Prepays up to `most` replies; returns how many, 0 where every D2H slot is promised already. Invariant,
  /// asserted in debug builds: prepaid replies that have not come are 0 to replies_allowed().
  uint32_t try_prepay_replies(uint32_t most) {
    // The counts are relaxed but for `returned_`: they guard no memory but the slots behind that count.
    uint32_t prepaid = prepaid_.load(std::memory_order_relaxed);
    for (;;) {
      // Signed: `prepaid` may be stale, and more have come back than that; then the exchange fails.
      int32_t owed = int32_t(prepaid - returned_seen_.load(std::memory_order_relaxed));
      if (owed + int32_t(most) > int32_t(replies_allowed())) {
        const uint32_t returned =
            returned_.load(std::memory_order_acquire);  // pairs with count_reply_taken()
        returned_seen_.store(returned, std::memory_order_relaxed);
        owed = int32_t(prepaid - returned);
        if (owed >= int32_t(replies_allowed())) return 0;
      }
      const uint32_t count = std::min(most, uint32_t(int32_t(replies_allowed()) - owed));
      GYRE_ASSERT(count != 0);
      if (prepaid_.compare_exchange_weak(prepaid, prepaid + count, std::memory_order_relaxed)) return count;
    }
  }
  /// Takes back prepaid replies of asks that were not sent.
  void cancel_prepaid(uint32_t count) {
    prepaid_.fetch_sub(count, std::memory_order_relaxed);  // as in try_prepay_replies()
  }
  /// Notes that the reply which drain() hands out was a prepaid one: there is room for another. Replies come
  /// from the worker, so it may return more than were prepaid.
  void count_reply_taken() {
    // The drainer alone stores it; pairs with the load in try_prepay_replies().
    returned_.store(returned_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  /// Claims a ticket. Calls `before_reuse()` before slots that the worker is done with are given out again.
  template <class BeforeReuse = TicketClaim<Memory>::Nothing>
  ClaimOutcome try_claim(uint64_t& ticket, BeforeReuse&& before_reuse = {}) {
    return note_full(claim_.try_claim(ticket, before_reuse));
  }
  template <class BeforeReuse = TicketClaim<Memory>::Nothing>
  ClaimOutcome try_claim_run(uint32_t most, uint64_t& first, uint32_t& count,
                             BeforeReuse&& before_reuse = {}) {
    return note_full(claim_.try_claim_run(most, first, count, before_reuse));
  }
  struct Depth {
    uint64_t taken;       // slots of the H2D ring: claimed, and not yet given back by the worker
    uint64_t high_water;  // the most that any sample found, or all slots where a claim found the ring full
  };
  /// Samples the depth of the H2D ring. Any thread; reads the worker's line, so not for the message path.
  Depth sample_depth() const {
    const uint64_t consumed = this->consumed();
    const uint64_t taken = std::min<uint64_t>(claimed() - consumed, bridge_.shape.slots);
    uint64_t most = depth_high_water_.load(std::memory_order_relaxed);  // a number alone: nothing to order
    while (taken > most && !depth_high_water_.compare_exchange_weak(most, taken, std::memory_order_relaxed)) {
    }
    return {taken, std::max(taken, most)};
  }

  using Message = SlotMessage;
  /// Publishes a message in a slot. The ticket must have been claimed, and the body must fit a slot.
  void publish(uint64_t ticket, const Message& message) {
    GYRE_ASSERT(ticket < claimed() && message.body_bytes() <= bridge_.shape.body_capacity());
    const RingCursor<Memory> at(bridge_.h2d, bridge_.shape, ticket);
    write_host_copy(at, message);
    if (!over_bar()) return ring_bell();
    Memory::store_fence();  // see publish_run
    store_over_bar(at, message.body_bytes());
    Memory::store_fence();  // sends what the processor combines
  }
  /// Publishes `message_of(i)` with ticket `first` + i, for each i below `count`. All those tickets must have
  /// been claimed, and the bodies must fit slots. `message_of` is called once for each i, in order; its
  /// result is read before the next call.
  template <class MessageOf>
  void publish_run(uint64_t first, uint32_t count, MessageOf&& message_of) {
    GYRE_ASSERT(first + count <= claimed());
    // Over BAR these are copies, which read_back reads. They come first: once a worker can have a message,
    // its slot may be another producer's.
    const RingCursor<Memory> begin(bridge_.h2d, bridge_.shape, first);
    RingCursor<Memory> at = begin;
    for (uint32_t i = 0; i < count; ++i) {
      write_host_copy(at, message_of(i));
      at.advance(bridge_.shape);
    }
    if (!over_bar()) return ring_bell();
    // Stores to such memory may overtake those before them: that calls are pending, and what their messages
    // refer to, come first.
    Memory::store_fence();
    at = begin;
    for (uint32_t i = 0; i < count; ++i) {
      // The engine could have written over it: no line behind the slot is stored.
      const uint32_t body_bytes = body_bytes_in(Memory::load(*at.slot()));
      store_over_bar(at, std::min(body_bytes, bridge_.shape.body_capacity()));
      at.advance(bridge_.shape);
    }
    Memory::store_fence();  // sends what the processor combines
  }

  /// Notes that the tell of `ticket`, claimed and not yet published, has its body in `block`; `free(BlockId)`
  /// receives the block of the previous tell in this slot, if that block is not free yet.
  template <class Free>
  void keep_tell_block(uint64_t ticket, BlockId block, Free&& free) {
    tell_blocks_.keep(ticket, block, free);
  }
  /// Hands the blocks of all tells that the worker is done with to `free(BlockId)`. Any thread.
  template <class Free>
  void take_tell_blocks(Free&& free) {
    tell_blocks_.free_until(consumed(), free);
  }

  void close() { claim_.close(); }
  bool closed() const { return claim_.closed(); }
  template <class BeforeReuse>
  bool try_claim_closed(uint64_t& ticket, BeforeReuse&& before_reuse) {
    return claim_.try_claim_closed(ticket, before_reuse) == ClaimOutcome::claimed;
  }
  uint64_t claimed() const { return claim_.claimed(); }
  /// False if the worker has said that it is done with all that was claimed.
  bool may_have_work() const { return claimed() > consumed(); }
  /// Returns how many tickets the worker is done with, as last published.
  /// Pairs with the worker's store of its credit.
  uint64_t consumed() const { return Memory::load_acquire(bridge_.worker_line->h2d_credit); }

  /// Unpacks the request of a ticket that the worker never took; `nothing` if its producer has not published
  /// it yet.
  ReceiveOutcome read_back(uint64_t ticket, uint32_t* payload) const {
    return receive<Memory>(bridge_.h2d, bridge_.shape, ticket, payload);
  }

  CommandSender& commands() { return commands_; }
  const CommandSender& commands() const { return commands_; }

  /// Returns true if the first packet of the next reply is there; drain() checks the whole message. Costs one
  /// read of memory that only the engine writes.
  bool has_reply() const {
    const Packet* const slot = next_slot_.load(std::memory_order_relaxed);  // see expect_reply()
    // The slot's second line misses the cache too: fetch both at once.
    if (bridge_.shape.slot_bytes > sizeof(Line)) _mm_prefetch(slot + Line::size, _MM_HINT_T0);
    return Memory::load(*slot).stamp == next_stamp_.load(std::memory_order_relaxed);
  }

  /// Returns true while a thread drains the D2H ring. Pairs with the store at the end of drain().
  bool draining() const { return draining_.load(std::memory_order_acquire); }
  /// Hands the messages now in the D2H ring to `take(const ArrivedReply*)`, at most replies_a_drain of them:
  /// no thread serves others for ever. Passes null for a corrupt message. Does nothing if another thread
  /// drains. `take` must not throw.
  /// @returns how many messages were handed out
  template <class Take>
  uint32_t drain(Take&& take) {
    // The exchange pairs with the store below, of the last thread that drained: next_reply_ is that thread's.
    if (!has_reply() || draining_.load(std::memory_order_relaxed) ||
        draining_.exchange(true, std::memory_order_acquire)) {
      return 0;
    }
    const uint32_t count = drain_alone(take, replies_a_drain);
    draining_.store(false, std::memory_order_release);  // pairs with the exchanges, and with draining()
    return count;
  }
  /// Drains the whole ring once other drainers have finished: for the end, when no more messages come.
  /// @returns false, with nothing taken, if `give_up()` was true before
  template <class Take, class GiveUp>
  bool drain_after_others(Take&& take, GiveUp&& give_up) {
    while (draining_.exchange(true, std::memory_order_acquire)) {  // as in drain()
      if (give_up()) return false;
      std::this_thread::yield();
    }
    drain_alone(take, ~uint32_t(0));
    draining_.store(false, std::memory_order_release);  // as in drain()
    return true;
  }

 private:
  void ring_bell() {
    if (bell_ != nullptr) bell_->ring();
  }
  bool over_bar() const { return bar_.h2d != nullptr; }
  // As gyre::publish, by groups of packets; over BAR the last line's other packets are stamped too.
  void write_host_copy(const RingCursor<Memory>& at, const Message& message) {
    const uint32_t needed = packets_for(message.body_bytes());
    uint32_t end = needed;
    if (over_bar()) end = (needed + Line::size - 1) / Line::size * Line::size;
    if (at.stamps_whole_slot()) end = bridge_.shape.packets();
    for (uint32_t k = needed; k < end; ++k) Memory::store(at.slot()[k], Packet{{0, 0, 0}, at.stamp()});
    message.pack(needed, at.stamp(), at.slot());
  }
  void store_over_bar(const RingCursor<Memory>& at, uint32_t body_bytes) {
    const Packet* const slot = at.slot();
    store_lines<Memory>(bar_.store, bar_.h2d + slot_pages_.place(uint32_t(slot - bridge_.h2d)),
                        at.stamps_whole_slot(), bridge_.shape, body_bytes,
                        [slot](uint32_t k) -> decltype(auto) { return own_line(slot + k); });
  }
#if defined(GYRE_THREAD_SANITIZER)
  // A later lap's producer writes there once the worker has the message, which ThreadSanitizer cannot know.
  static Line own_line(const Packet* packets) {
    Line line;
    for (uint32_t k = 0; k < Line::size; ++k) line.packets[k] = Memory::load(packets[k]);
    return line;
  }
#else
  static const Line& own_line(const Packet* packets) { return *reinterpret_cast<const Line*>(packets); }
#endif
  ClaimOutcome note_full(ClaimOutcome outcome) {
    if (outcome == ClaimOutcome::full) [[unlikely]]
      depth_high_water_.store(bridge_.shape.slots, std::memory_order_relaxed);  // as in sample_depth()
    return outcome;
  }

  static constexpr uint32_t control_reserve = 1;  // one drain acknowledgement; a ring has at least 2 slots
  static constexpr uint32_t replies_a_drain = 64;
  static constexpr uint32_t prefetch_slots = 6;

  // The drainer's: publishes where next_reply_ is. Relaxed: a thread that reads an old pair finds no reply,
  // or one that drain() classifies again.
  void expect_reply() {
    next_slot_.store(next_reply_.slot(), std::memory_order_relaxed);
    next_stamp_.store(next_reply_.stamp(), std::memory_order_relaxed);
  }

  ReceiveOutcome classify_next() const {
    const Packet* const slot = next_reply_.slot();
    const uint32_t stamp = next_reply_.stamp();
    const __m128i first = Memory::load_vector(*slot), stamped = _mm_set1_epi32(int(stamp));
    constexpr int stamp_bits = 0xf000;  // of a mask of bytes
    __m128i same = _mm_cmpeq_epi32(first, stamped);
    if ((_mm_movemask_epi8(same) & stamp_bits) == 0) return ReceiveOutcome::nothing;
    // Envelope::body_bytes, bytes 8…11
    const auto body_bytes = uint32_t(_mm_cvtsi128_si32(_mm_srli_si128(first, 8)));
    if (body_bytes > bridge_.shape.body_capacity()) return ReceiveOutcome::corrupt;
    for (uint32_t k = packets_for(body_bytes); k-- > 1;)
      same = _mm_and_si128(same, _mm_cmpeq_epi32(Memory::load_vector(slot[k]), stamped));
    return (_mm_movemask_epi8(same) & stamp_bits) != 0 ? ReceiveOutcome::message : ReceiveOutcome::nothing;
  }

  // Pairs with the worker's load of the credit: it writes to these slots again only after they were read.
  // Invariant, asserted in debug builds: the worker sends at most a ring beyond the credit.
  void publish_credit() {
    Memory::Word& credit = bridge_.host_line->d2h_credit;
    GYRE_ASSERT(next_reply_.ticket() - Memory::load_relaxed(credit) <= bridge_.shape.slots);
    Memory::store_release(credit, next_reply_.ticket());
  }
  void fetch(uint64_t ticket) const {
    _mm_prefetch(bridge_.d2h + bridge_.shape.first_packet(ticket), _MM_HINT_T0);
  }

  template <class Take>
  uint32_t drain_alone(Take& take, uint32_t most) {
    uint32_t count = 0;
    // Each message that the engine wrote misses the cache: prefetch those that may be there. Relaxed: a
    // guess.
    const uint32_t expected =
        prepaid_.load(std::memory_order_relaxed) - returned_.load(std::memory_order_relaxed);
    for (uint32_t k = 1; k < prefetch_slots && k < expected; ++k) fetch(next_reply_.ticket() + k);
    while (count < most) {
      const ReceiveOutcome outcome = classify_next();
      if (outcome == ReceiveOutcome::corrupt) take(static_cast<const ArrivedReply*>(nullptr));
      if (outcome != ReceiveOutcome::message) break;
      if (count + prefetch_slots < expected) fetch(next_reply_.ticket() + prefetch_slots);
      const ArrivedReply reply(next_reply_.slot(), bridge_.shape.body_capacity());
      take(&reply);
      next_reply_.advance(bridge_.shape);
      if (++count % 16 == 0) publish_credit();
    }
    if (count != 0) {
      expect_reply();
      publish_credit();
    }
    return count;
  }

  Bridge bridge_;
  BarBridge bar_;
  Doorbell* bell_;
  SlotPages slot_pages_;  // of bar_.h2d
  CommandSender commands_;
  TicketClaim<Memory> claim_;
  alignas(64) std::atomic<uint32_t> prepaid_{0};  // replies prepaid since the start
  std::atomic<uint32_t> returned_seen_{0};
  mutable std::atomic<uint64_t> depth_high_water_{0};
  // Waiting threads read the first of these lines each turn. The drainer writes it once a drain, and the
  // second line for each reply.
  alignas(128) std::atomic<bool> draining_{false};
  std::atomic<uint32_t> next_stamp_{0};  // of the next message, in next_slot_
  std::atomic<const Packet*> next_slot_{nullptr};
  alignas(128) std::atomic<uint32_t> returned_{0};  // prepaid replies that arrived since the start
  RingCursor<Memory> next_reply_;                   // the drainer's
  const uint32_t told_slots_;
  ToldQueue told_;
  alignas(64) TellBlocks tell_blocks_;
};

}  // namespace gyre
