// The host's end of one worker's bridge: claims and publishes requests, prepays replies, drains the D2H ring.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/runtime/arena.hpp>

#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

namespace gyre {

/// The envelope in front of an unpacked message.
inline Envelope envelope_of(const uint32_t* payload) {
  Envelope envelope;
  std::memcpy(&envelope, payload, sizeof envelope);
  return envelope;
}

/// Thread-safe; nothing here waits.
class HostBridge {
 public:
  explicit HostBridge(const Bridge& bridge)
      : bridge_(bridge),
        claim_(bridge.worker_line->h2d_credit, bridge.shape.slots),
        drained_(bridge.shape.packets()),
        tell_blocks_(bridge.shape.slots) {}

  const Bridge& bridge() const { return bridge_; }

  /// D2H slots that asks may hold: the rest is for control messages, so that a worker can always answer those
  /// too.
  uint32_t replies_allowed() const { return bridge_.shape.slots - control_reserve; }

  /// Prepays one reply; false when every D2H slot is promised already.
  bool try_prepay_reply() {
    uint32_t owed = replies_owed_.load(std::memory_order_relaxed);
    do {
      if (owed >= replies_allowed()) return false;
    } while (!replies_owed_.compare_exchange_weak(owed, owed + 1, std::memory_order_relaxed));
    return true;
  }
  /// The reply has been drained, or its ask was never sent.
  void return_reply() { replies_owed_.fetch_sub(1, std::memory_order_relaxed); }

  ClaimOutcome try_claim(uint64_t& ticket) { return claim_.try_claim(ticket); }
  /// `payload`: envelope and body as words, padded to whole packets. The ticket must have been claimed.
  void publish(uint64_t ticket, const uint32_t* payload, uint32_t body_bytes) {
    gyre::publish<Memory>(SingleThread{}, bridge_.h2d, bridge_.shape, ticket, payload, body_bytes);
  }

  /// Notes that the tell of `ticket`, claimed and not yet published, has its body in `block`; `free(BlockId)`
  /// gets the block that this slot's last such tell had, if nobody took that yet.
  template <class Free>
  void keep_tell_block(uint64_t ticket, BlockId block, Free&& free) {
    TellBlock& entry = tell_blocks_[ticket & (bridge_.shape.slots - 1)];
    if (const BlockId old = entry.block.exchange(0, std::memory_order_acq_rel); old != 0) free(old);
    entry.ticket.store(ticket, std::memory_order_relaxed);
    entry.block.store(block, std::memory_order_release);
  }
  /// Hands the blocks of all tells that the worker is done with to `free(BlockId)`. Any thread.
  template <class Free>
  void take_tell_blocks(Free&& free) {
    const uint64_t done = consumed();
    for (TellBlock& entry : tell_blocks_) {
      BlockId block = entry.block.load(std::memory_order_acquire);
      if (block == 0 || entry.ticket.load(std::memory_order_relaxed) >= done) continue;
      if (entry.block.compare_exchange_strong(block, 0, std::memory_order_acq_rel)) free(block);
    }
  }

  void close() { claim_.close(); }
  bool closed() const { return claim_.closed(); }
  bool try_claim_closed(uint64_t& ticket) { return claim_.try_claim_closed(ticket) == ClaimOutcome::claimed; }
  uint64_t claimed() const { return claim_.claimed(); }
  /// Tickets the worker is done with, as last published.
  uint64_t consumed() const { return Memory::load_acquire(bridge_.worker_line->h2d_credit); }

  /// Unpacks the request of a ticket that the worker never took; `nothing` if its producer has not published
  /// it yet.
  ReceiveOutcome read_back(uint64_t ticket, uint32_t* payload) const {
    return receive<Memory>(SingleThread{}, bridge_.h2d, bridge_.shape, ticket, 1, payload);
  }

  /// Commands the worker; what it will acknowledge. Waits for another thread that does the same.
  CommandWord command(Command command) {
    const std::lock_guard lock(command_mutex_);
    commanded_ = commanded_.next(command);
    Memory::store_release(bridge_.host_line->command, commanded_.word);
    return commanded_;
  }
  /// Commands once more what was commanded last.
  CommandWord command_again() {
    const std::lock_guard lock(command_mutex_);
    commanded_ = commanded_.next(commanded_.command());
    Memory::store_release(bridge_.host_line->command, commanded_.word);
    return commanded_;
  }
  /// The last command that the worker obeys.
  CommandWord acknowledged() const {
    return {uint32_t(Memory::load_acquire(bridge_.worker_line->acknowledged))};
  }
  /// Whether that is `word` or a later one.
  bool obeys(CommandWord word) const {
    return int32_t((acknowledged().word >> 8 << 8) - (word.word >> 8 << 8)) >= 0;
  }
  /// True while a thread is in drain().
  bool draining() const { return draining_.load(std::memory_order_acquire); }

  /// Hands every message now in the D2H ring to `take(const uint32_t* payload)`, unless another thread is
  /// doing that. `take` must not throw. Returns how many.
  template <class Take>
  uint32_t drain(Take&& take) {
    if (draining_.load(std::memory_order_relaxed) || draining_.exchange(true, std::memory_order_acquire))
      return 0;
    uint32_t count = 0;
    uint64_t ticket = d2h_ticket_.load(std::memory_order_relaxed);
    uint32_t* const payload = drained_.front().data;
    for (;;) {
      const ReceiveOutcome outcome =
          receive<Memory>(SingleThread{}, bridge_.d2h, bridge_.shape, ticket, 1, payload);
      if (outcome == ReceiveOutcome::corrupt) take(static_cast<const uint32_t*>(nullptr));
      if (outcome != ReceiveOutcome::message) break;
      take(static_cast<const uint32_t*>(payload));
      ++ticket;
      ++count;
      d2h_ticket_.store(ticket, std::memory_order_relaxed);
      if (count % 16 == 0) Memory::store_release(bridge_.host_line->d2h_credit, ticket);
    }
    if (count != 0) Memory::store_release(bridge_.host_line->d2h_credit, ticket);
    draining_.store(false, std::memory_order_release);
    return count;
  }

 private:
  static constexpr uint32_t control_reserve = 1;  // one drain acknowledgement; a ring has at least 2 slots

  Bridge bridge_;
  std::mutex command_mutex_;
  CommandWord commanded_;
  TicketClaim<Memory> claim_;
  alignas(64) std::atomic<uint32_t> replies_owed_{0};
  alignas(64) std::atomic<bool> draining_{false};
  std::atomic<uint64_t> d2h_ticket_{0};
  // Out-of-line tells by slot: their blocks are freed by credit.
  struct TellBlock {
    std::atomic<BlockId> block{0};
    std::atomic<uint64_t> ticket{0};
  };
  std::vector<Packet> drained_;  // the drainer's, unpacked; a packet's 16 bytes for its 12 of payload
  std::vector<TellBlock> tell_blocks_;
};

}  // namespace gyre
