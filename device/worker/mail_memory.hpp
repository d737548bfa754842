// Where the mailboxes of a set that sends lie: in memory of the engine's own, behind the counts of all
// workers.
#pragma once

#include <gyre/bridge/mailbox.hpp>
#include <gyre/device/worker/engine_memory.hpp>

namespace gyre {

/// That memory's parts, in bytes from its begin, which is a multiple of 128; zeroed at first. A value, the
/// same on both sides. It grows with the square of the workers: each mailbox has slots for all of them.
struct MailLayout {
  enum : uint32_t {
    allowance = 2,     ///< messages under way from one worker to another, at first
    least_slots = 64,  ///< of a mailbox
    most_held = 256,   ///< messages in each queue of a worker; a power of two
    alignment = 128
  };

  using Producer = MailboxProducer<WorkersMemory>;
  using Consumer = MailboxConsumer<WorkersMemory>;
  using Rings = WorkerRings<WorkersMemory>;

  uint32_t workers;
  uint32_t slot_bytes;

  /// A mailbox: slots for all that workers are granted, and as many again or fewer to spare.
  GYRE_DEVICE constexpr RingShape shape() const {
    uint32_t slots = least_slots;
    while (slots <= workers * allowance) slots *= 2;
    return {slots, slot_bytes, 1};
  }
  GYRE_DEVICE static constexpr uint64_t rounded(uint64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  }
  GYRE_DEVICE constexpr uint64_t tails() const { return workers * shape().ring_bytes(); }
  GYRE_DEVICE constexpr uint64_t limits() const {
    return tails() + uint64_t(workers) * Rings::words_a_tail * sizeof(WorkersMemory::Word);
  }
  /// What worker `worker` alone uses.
  GYRE_DEVICE constexpr uint64_t own(uint32_t worker) const {
    return rounded(limits() + uint64_t(workers) * workers * sizeof(WorkersMemory::Word32)) +
           worker * own_bytes();
  }
  GYRE_DEVICE constexpr uint64_t bytes() const { return own(workers); }

  // From own() on.
  GYRE_DEVICE constexpr uint64_t producer_peers() const { return 0; }
  GYRE_DEVICE constexpr uint64_t consumer_peers() const {
    return rounded(producer_peers() + uint64_t(workers) * sizeof(Producer::Peer));
  }
  GYRE_DEVICE constexpr uint64_t owed() const {
    return rounded(consumer_peers() + uint64_t(workers) * sizeof(Consumer::Peer));
  }
  GYRE_DEVICE constexpr uint64_t spare() const {
    return rounded(owed() + Consumer::owed_words(workers) * sizeof(uint32_t));
  }
  /// A bitmap of workers that were sent to, for an engine whose workers sleep.
  GYRE_DEVICE constexpr uint64_t reached() const { return spare() + alignment; }
  GYRE_DEVICE constexpr uint64_t to_itself() const {
    return rounded(reached() + Consumer::owed_words(workers) * sizeof(uint32_t));
  }
  GYRE_DEVICE constexpr uint64_t waiting() const { return to_itself() + queue_bytes(); }
  GYRE_DEVICE constexpr uint64_t own_bytes() const { return waiting() + queue_bytes(); }

  /// Words from one message of a queue to the next.
  GYRE_DEVICE constexpr uint32_t queue_stride() const { return (shape().payload_bytes() + 15) / 16 * 4; }
  GYRE_DEVICE constexpr uint64_t queue_bytes() const {
    return rounded(uint64_t(most_held) * queue_stride() * sizeof(uint32_t));
  }

  /// Where it begins, behind the counts of `workers` workers.
  /// @param memory  of worker `worker`
  GYRE_DEVICE static uint8_t* begin(const EngineMemory& memory, uint32_t worker, uint32_t workers) {
    const auto end =
        reinterpret_cast<uintptr_t>(memory.counts + uint64_t(workers - worker) * memory.counts_per_worker);
    return reinterpret_cast<uint8_t*>((end + alignment - 1) / alignment * alignment);
  }
  /// Bytes to reserve behind the counts, wherever those end.
  GYRE_DEVICE constexpr uint64_t reserved_bytes() const { return bytes() + alignment; }
};

}  // namespace gyre
