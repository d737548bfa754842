// Where the mailboxes of a set that sends lie: in memory of the engine's own, behind the counts of all
// workers.
#pragma once

#include <gyre/bridge/mailbox.hpp>
#include <gyre/bridge/region.hpp>
#include <gyre/device/actor/rights.hpp>
#include <gyre/device/worker/engine_memory.hpp>

namespace gyre {

/// That memory's parts, in bytes from its begin, which is a multiple of 128; zeroed at first but for the
/// chunks. A value, the same on both sides. It grows with the square of the workers: each mailbox has slots
/// for all of them.
struct MailLayout {
  enum : uint32_t {
    allowance = 2,     ///< messages under way from one worker to another, at first
    least_slots = 64,  ///< of a mailbox
    outbox_messages = 256,
    messages_a_chunk = 64,  ///< also in the ring of each worker's queue
    open_calls = 256,       ///< of a worker: also the slots of its reply ring
    open_call_bytes = 80,
    timers = 256,  ///< of a worker
    timer_bytes = 32,
    subscriptions = 1024,  ///< of a worker
    subscription_bytes = 40,
    body_lists = 32,  ///< of free chunks of the pool of bodies, at most
    alignment = 128
  };

  using Producer = MailboxProducer<WorkersMemory>;
  using Consumer = MailboxConsumer<WorkersMemory>;
  using Rings = WorkerRings<WorkersMemory>;

  uint32_t workers;
  uint32_t slot_bytes;
  uint32_t chunks;       ///< that all workers share: see ChunkPool
  Rights rights;         ///< of all handlers of the set
  uint32_t body_chunks;  ///< that all workers share: see BodyPool; 0 if no handler sends large messages
  uint32_t body_bytes;   ///< of each of those; a multiple of 128

  /// Returns the layout for the workers of a set with these rights.
  /// @param workers  of the engine
  /// @param chunks   that the engine's options have room for
  GYRE_DEVICE static constexpr MailLayout of(uint32_t workers, uint32_t slot_bytes, const MailChunks& chunks,
                                             Rights rights) {
    const uint32_t body_chunks = rights.sends_large ? chunks.bodies : 0;
    return {workers, slot_bytes, chunks.spill, rights, body_chunks, chunks.body_bytes};
  }

  /// A mailbox: slots for all that workers are granted, and half as many to spare, or more.
  GYRE_DEVICE constexpr RingShape shape() const {
    uint32_t slots = least_slots;
    while (slots < workers * allowance * 3 / 2) slots *= 2;
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
  /// A reply ring: a slot for each call that its worker may have open.
  GYRE_DEVICE constexpr RingShape reply_shape() const { return {open_calls, slot_bytes, 1}; }
  GYRE_DEVICE constexpr uint64_t reply_rings() const { return own(workers); }
  GYRE_DEVICE constexpr uint64_t reply_tails() const {
    return reply_rings() + (rights.asks ? workers * reply_shape().ring_bytes() : 0);
  }
  /// Of the pool of bodies: a line of state for each list, links of the free chunks, and the chunks.
  GYRE_DEVICE constexpr uint64_t body_states() const {
    const uint64_t tails_bytes = uint64_t(workers) * Rings::words_a_tail * sizeof(WorkersMemory::Word);
    return rounded(reply_tails() + (rights.asks ? tails_bytes : 0));
  }
  GYRE_DEVICE constexpr uint32_t lists_of_bodies() const {
    const uint32_t most = workers < body_lists ? workers : uint32_t(body_lists);
    return body_chunks < most ? body_chunks : most;
  }
  GYRE_DEVICE constexpr uint64_t body_links() const {
    return body_states() + uint64_t(lists_of_bodies()) * alignment;
  }
  GYRE_DEVICE constexpr uint64_t bodies() const {
    return rounded(body_links() + uint64_t(body_chunks) * sizeof(WorkersMemory::Word));
  }
  /// Of the pool of chunks: its state, a list of the free ones, the links of queues, and the chunks.
  GYRE_DEVICE constexpr uint64_t pool_state() const {
    if (body_chunks == 0) return body_states();  // a constant in sets without a pool: the rest is dropped
    return rounded(bodies() + uint64_t(body_chunks) * body_bytes);
  }
  GYRE_DEVICE constexpr uint64_t pool_links() const { return pool_state() + alignment; }
  GYRE_DEVICE constexpr uint64_t pool_next() const {
    return rounded(pool_links() + uint64_t(chunks) * sizeof(WorkersMemory::Word));
  }
  GYRE_DEVICE constexpr uint64_t pool_chunks() const {
    return rounded(pool_next() + uint64_t(chunks) * sizeof(uint32_t));
  }
  GYRE_DEVICE constexpr uint64_t bytes() const { return pool_chunks() + chunks * chunk_bytes(); }
  /// Chunks of queues need not be zeroed.
  GYRE_DEVICE constexpr uint64_t zeroed_bytes() const { return pool_chunks() + alignment; }
  GYRE_DEVICE constexpr uint64_t chunk_bytes() const {
    return uint64_t(messages_a_chunk) * queue_stride() * sizeof(uint32_t);
  }

  // From own() on.
  GYRE_DEVICE constexpr uint64_t queue() const { return 0; }
  GYRE_DEVICE constexpr uint64_t outbox() const { return rounded(queue() + chunk_bytes()); }
  GYRE_DEVICE constexpr uint64_t open_call_table() const { return rounded(outbox() + outbox_bytes()); }
  GYRE_DEVICE static constexpr uint64_t open_call_table_bytes() {
    return open_calls * (open_call_bytes + sizeof(uint16_t));
  }
  GYRE_DEVICE constexpr uint64_t timer_table() const {
    return open_call_table() + (rights.asks ? rounded(open_call_table_bytes()) : 0);
  }
  GYRE_DEVICE constexpr uint64_t timer_table_bytes() const {
    return timers * (timer_bytes + uint64_t(queue_stride()) * sizeof(uint32_t));
  }
  /// What is for messages to many: subscriptions, the message in hand, and for each message of the outbox a
  /// bitmap of the workers that it has not been sent to.
  GYRE_DEVICE constexpr uint64_t subscription_table() const {
    return timer_table() + (rights.sets_timers ? rounded(timer_table_bytes()) : 0);
  }
  GYRE_DEVICE constexpr uint64_t fan_out_in_hand() const {
    return subscription_table() + rounded(uint64_t(subscriptions) * subscription_bytes);
  }
  GYRE_DEVICE constexpr uint64_t outbox_receivers() const {
    return fan_out_in_hand() + rounded(queue_stride() * sizeof(uint32_t));
  }
  GYRE_DEVICE constexpr uint64_t outbox_receivers_bytes() const {
    return outbox_messages * Consumer::owed_words(workers) * sizeof(uint32_t);
  }
  GYRE_DEVICE constexpr uint64_t own_bytes() const {
    return rights.sends_to_many ? outbox_receivers() + rounded(outbox_receivers_bytes())
                                : subscription_table();
  }

  // From outbox() on.
  GYRE_DEVICE static constexpr uint64_t outbox_begin() { return 2 * outbox_messages * sizeof(uint16_t); }
  GYRE_DEVICE constexpr uint64_t outbox_bytes() const {
    return outbox_begin() + uint64_t(outbox_messages) * queue_stride() * sizeof(uint32_t);
  }

  /// Words from one message of a queue to the next.
  GYRE_DEVICE constexpr uint32_t queue_stride() const {
    return (RingShape{2, slot_bytes, 1}.payload_bytes() + 15) / 16 * 4;
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
