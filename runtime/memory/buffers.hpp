// The buffers of a runtime: which there are, which wait to be used again, and where workers are with what was
// sent. Buffer (buffer.hpp) is what users hold.
#pragma once

#include <gyre/messages/buffer.view.hpp>
#include <gyre/runtime/core/host_bridge.hpp>
#include <gyre/runtime/memory/buffer_memory.hpp>
#include <gyre/runtime/memory/copy_queue.hpp>
#include <gyre/runtime/stats.hpp>
#include <gyre/runtime/system/timed_mutex.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

namespace gyre {

/// The memory of a runtime's buffers. All zero once they are gone and the workers have ended.
struct Ledger {
  struct Count {
    uint64_t buffers = 0;
    uint64_t bytes = 0;  ///< of memory taken: multiples of 256
  };
  Count in_use[memory_kinds];   ///< by MemoryKind
  Count retired[memory_kinds];  ///< freed while workers lived: for buffers to come, until termination

  const Count& used(MemoryKind kind) const { return in_use[uint32_t(kind)]; }
  const Count& freed(MemoryKind kind) const { return retired[uint32_t(kind)]; }
  bool empty() const {
    for (uint32_t k = 0; k < memory_kinds; ++k) {
      if (in_use[k].buffers != 0 || retired[k].buffers != 0) return false;
    }
    return true;
  }
};

namespace detail {

/// What was claimed of each worker's ring at one moment.
using Tickets = std::vector<uint64_t>;

/// Thread-safe; its lock is never taken on the message path. Only allocate() and free() wait for a thread
/// that holds the lock; workers_ended() does until its deadline.
class Buffers {
 public:
  /// One buffer: its memory, and what its handles say.
  struct Record {
    MemoryBlock block;
    uint32_t index = 0;
    uint32_t generation = 0;
    messages::view::ElementType element = messages::view::ElementType::NONE;
    uint64_t bytes = 0;  // asked for; the block may have more
    BufferAccess access = BufferAccess::read_write;
  };

  /// Managed memory is for small buffers: the driver moves it by pages.
  static constexpr uint64_t largest_unified = uint64_t(256) << 20;

  /// Both must outlive it.
  Buffers(BufferMemory& memory, const std::deque<HostBridge>& bridges);
  ~Buffers();

  /// Zeroed memory of `bytes` bytes, and an entry in the workers' table. Throws Error.
  Record allocate(MemoryKind kind, messages::view::ElementType element, uint64_t bytes);
  /// An entry in the workers' table for memory of the program. Throws Error.
  Record import(ForeignMemory memory, messages::view::ElementType element, BufferAccess access);
  /// The handles are stale from now on. While workers live the memory waits until each is past what was sent
  /// before; it is used again then, or its owner released.
  void free(const Record& record) noexcept;
  /// The first half of free(): the handles are stale, and the block stays in use until give_back().
  /// @returns false if workers may still take a handle: the block must stay in use for good
  bool withdraw(const Record& record) noexcept;
  void give_back(const MemoryBlock& block) noexcept;

  /// Releases the owners of freed imports that no worker can use any more. Costs one load if there is none;
  /// does not wait for other threads. An owner may do anything but end the runtime in it.
  void release_past_imports() noexcept;

  BufferMemory& memory() { return memory_; }
  /// Returns what makes the copies that go on by themselves.
  CopyQueue& copies() { return copies_; }
  /// Takes no lock: while another thread allocates or frees, numbers may be of times that far apart.
  Ledger ledger() const;

  /// A copy into a buffer, or out of one, took so long.
  void note(Transfer kind, uint64_t bytes, uint64_t ns) noexcept {
    Transfers& transfers = transfers_[size_t(kind)];
    transfers.copies.fetch_add(1, std::memory_order_relaxed);
    transfers.bytes.fetch_add(bytes, std::memory_order_relaxed);
    transfers.ns.fetch_add(ns, std::memory_order_relaxed);
  }
  TransferStats transfers(Transfer kind) const noexcept {
    const Transfers& transfers = transfers_[size_t(kind)];
    return {transfers.copies.load(std::memory_order_relaxed), transfers.bytes.load(std::memory_order_relaxed),
            transfers.ns.load(std::memory_order_relaxed)};
  }

  /// What has been sent so far.
  Tickets sent() const;
  /// True once every worker is past that, or has ended. Takes no lock.
  bool past(const Tickets& tickets) const;

  /// The workers have ended: releases all retired memory. False where another thread held the lock until
  /// `deadline_ns`: the memory is released with this object then. Once.
  bool workers_ended(int64_t deadline_ns);
  /// The workers will never end: nothing is released.
  void workers_stuck() { workers_.store(Workers::stuck, std::memory_order_release); }

 private:
  struct Retired {
    MemoryBlock block;
    std::shared_ptr<const Tickets> sent_before;
  };
  struct FreedIndex {
    uint32_t index;
    std::shared_ptr<const Tickets> sent_before;
  };
  enum class Workers { live, ended, stuck };
  struct Transfers {
    std::atomic<uint64_t> copies{0}, bytes{0}, ns{0};
  };
  // What Ledger::Count is read from, by any thread, without the lock.
  struct Count {
    std::atomic<uint64_t> buffers{0}, bytes{0};
    void add(const MemoryBlock& block);
    void take(const MemoryBlock& block);
    Ledger::Count read() const;
  };

  void begin(const std::string& doing, Record& record);
  uint32_t take_index();
  MemoryBlock reuse_retired(MemoryKind kind, uint64_t bytes, uint64_t times);
  MemoryBlock allocate_or_reuse(MemoryKind kind, uint64_t bytes);
  void retire(const MemoryBlock& block, std::shared_ptr<const Tickets> sent_before);
  std::vector<Retired> take_past_imports();

  BufferMemory& memory_;
  const std::deque<HostBridge>& bridges_;
  // Pairs: stores release what the workers did before they ended, loads acquire it.
  std::atomic<Workers> workers_{Workers::live};
  TimedMutex mutex_;                    // held to use what follows, up to the counts
  std::vector<uint32_t> generations_;   // by index, of its last use
  std::vector<uint32_t> free_indices_;  // no worker can be at
  std::deque<FreedIndex> freed_indices_;
  std::vector<Retired> retired_;
  std::vector<Retired> retired_imports_;
  Count in_use_[memory_kinds];          // by MemoryKind
  Count retired_counts_[memory_kinds];  // likewise
  Transfers transfers_[2];              // by Transfer
  CopyQueue copies_;                    // ends first: its copies use memory_
};

}  // namespace detail
}  // namespace gyre
