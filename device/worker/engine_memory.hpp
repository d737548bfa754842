// Memory of the engine's own that its workers use and the host does not map: the table of buffers, the
// actors' state and the handlers' counts.
#pragma once

#include <gyre/bridge/handler_counts.hpp>
#include <gyre/messages/fixed_width.hpp>

namespace gyre {

/// One buffer, as workers find it by the index in its handle. 24 bytes on both sides.
struct BufferEntry {
  uint64_t address;     ///< the engine's own address of the first element; 0: no buffer
  uint64_t bytes;       ///< of all elements
  uint32_t generation;  ///< of the handles that are good for it
  uint32_t element;     ///< an ElementType, and read_only

  /// A bit of `element`: handlers may only read the buffer.
  static constexpr uint32_t read_only = uint32_t(1) << 31;
};
static_assert(sizeof(BufferEntry) == 24, "a buffer's entry lies alike on both sides");

/// Where that memory is, by the engine's own addresses. A plain value, handed to the workers at launch;
/// refers to memory that outlives them.
struct EngineMemory {
  const BufferEntry* buffers;
  uint32_t buffer_entries;
  uint32_t runtime_tag;  ///< in the handles of this runtime's buffers and of no other's
  uint8_t* actors;       ///< actors' tables, actor_bytes for each worker one after the other; zeroed. In
                         ///< a worker: its own
  uint64_t actor_bytes;  ///< a worker; a multiple of 256
  uint32_t actors_per_worker;  ///< of each type that has state
  uint32_t counts_per_worker;  ///< one a handler, and one more
  uint8_t* scratch;            ///< of a grid-scoped worker: twice a slot's payload, zeroed, 16-aligned. On
                               ///< the CPU: SharedScratch of a worker, 16-aligned
  HandlerCounts* counts;  ///< counts_per_worker for each worker one after the other, zeroed. In a worker: its
                          ///< own

  /// The same, with `actors` and `counts` of one worker.
  GYRE_DEVICE constexpr EngineMemory of_worker(uint32_t worker) const {
    EngineMemory own = *this;
    own.actors += worker * actor_bytes;
    own.counts += uint64_t(worker) * counts_per_worker;
    return own;
  }
};
static_assert(sizeof(EngineMemory) == 56, "what the engine hands to its workers lies alike on both sides");

}  // namespace gyre
