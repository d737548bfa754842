// The messages of one worker's actors to the host that are not handled yet.
#pragma once

#include <gyre/runtime/core/slot_message.hpp>

#include <atomic>
#include <vector>

namespace gyre {

/// A queue with room for what a worker may have under way: told_slots(). Messages are copied out of the ring,
/// so that replies behind them can be taken while a handler runs. One thread at a time adds: the one that
/// drains the ring. One thread takes: the poller.
class ToldQueue {
 public:
  /// @param line   where the worker reads how many messages the host is done with
  /// @param slots  room; 0 where no handler tells the host
  ToldQueue(HostLine* line, const RingShape& shape, uint32_t slots)
      : line_(line),
        slots_(slots),
        stride_(groups_for(shape.body_capacity()) * packets_a_group),
        packets_(size_t(slots) * stride_) {}

  /// Copies a message into the queue. False where there is no room: the worker sent more than it may.
  bool add(const ArrivedReply& message) {
    const uint64_t arrived = arrived_.load(std::memory_order_relaxed);            // the adder's own
    if (arrived - done_.load(std::memory_order_acquire) >= slots_) return false;  // pairs with pop()
    message.unpack(reinterpret_cast<std::byte*>(place(arrived)));
    // Pairs with the load in front(). Sequentially consistent: the poller sees the message, or
    // CompletionList::wake() sees the poller asleep.
    arrived_.store(arrived + 1, std::memory_order_seq_cst);
    return true;
  }
  /// Returns the oldest message, envelope and body, 16-aligned; null if there is none.
  const std::byte* front() const {
    const uint64_t done = done_.load(std::memory_order_relaxed);           // the taker's own
    if (done == arrived_.load(std::memory_order_seq_cst)) return nullptr;  // pairs with add()
    return reinterpret_cast<const std::byte*>(place(done));
  }
  /// Removes the oldest message, and tells the worker.
  void pop() {
    const uint64_t done = done_.load(std::memory_order_relaxed) + 1;
    done_.store(done, std::memory_order_release);  // pairs with the loads in add() and done()
    // Pairs with Worker::update_host_room().
    Memory::store_release(line_->told_taken, done);
  }
  /// Returns how many messages were removed since the start.
  uint64_t done() const { return done_.load(std::memory_order_acquire); }

 private:
  Packet* place(uint64_t n) { return packets_.data() + n % slots_ * stride_; }
  const Packet* place(uint64_t n) const { return packets_.data() + n % slots_ * stride_; }

  HostLine* line_;
  uint32_t slots_;
  uint32_t stride_;  // in packets
  std::vector<Packet> packets_;
  alignas(64) std::atomic<uint64_t> arrived_{0};
  alignas(64) std::atomic<uint64_t> done_{0};
};

}  // namespace gyre
