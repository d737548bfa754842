// Arena blocks of tells in flight to one worker: no reply frees them.
#pragma once

#include <gyre/runtime/memory/arena.hpp>

#include <atomic>
#include <vector>

namespace gyre {

/// One block a slot of the ring, with the ticket of its tell. Thread-safe, lock-free.
class TellBlocks {
 public:
  explicit TellBlocks(uint32_t slots) : entries_(slots) {}

  /// Notes that the tell of `ticket`, claimed and not yet published, has its body in `block`. Hands the block
  /// that this slot's last such tell had to `free(BlockId)`, unless free_until() did.
  template <class Free>
  void keep(uint64_t ticket, BlockId block, Free&& free) {
    Entry& entry = entries_[ticket & (entries_.size() - 1)];
    // Pairs with the exchange in free_until(): one thread gets the old block.
    if (const BlockId old = entry.block.exchange(0, std::memory_order_acq_rel); old != 0) free(old);
    entry.ticket.store(ticket, std::memory_order_relaxed);
    entry.block.store(block, std::memory_order_release);  // pairs with the load in free_until()
  }
  /// Hands the blocks of all tells with tickets below `done` to `free(BlockId)`. Any thread.
  template <class Free>
  void free_until(uint64_t done, Free&& free) {
    for (Entry& entry : entries_) {
      BlockId block = entry.block.load(std::memory_order_acquire);  // pairs with the store in keep()
      if (block == 0 || entry.ticket.load(std::memory_order_relaxed) >= done) continue;
      if (entry.block.compare_exchange_strong(block, 0, std::memory_order_acq_rel)) free(block);
    }
  }

 private:
  struct Entry {
    std::atomic<BlockId> block{0};
    std::atomic<uint64_t> ticket{0};
  };
  std::vector<Entry> entries_;  // by slot
};

}  // namespace gyre
