// What a worker has in front of its actors' tables for the message in hand: a copy of the actor's state, for
// types that are rolled back on errors, and behind it the handler's scratch memory. Types share it: there is
// one message at a time, or several of one type without a copy (HandlesSideBySide). Scratch memory in shared
// memory lies at the front of each block's dynamic shared memory.
#pragma once

#include <gyre/device/actor/table.hpp>

namespace gyre {

/// Largest state, in bytes, of an actor that says `static constexpr bool rollback_on_error = true`.
inline constexpr uint32_t most_rollback_bytes = 4096;

namespace detail {

/// Bytes of an actor's state that are copied before each message, and back where the message ends in an
/// error; 0 unless the type says `static constexpr bool rollback_on_error = true`.
template <class Actor>
GYRE_DEVICE constexpr uint32_t rollback_bytes() {
  if constexpr (requires { requires Actor::rollback_on_error; }) {
    static_assert(
        !HandlesSideBySide<Actor>,
        "rollback_on_error and side_by_side exclude each other: messages that are handled at the same "
        "time share the state, and one of them cannot be undone alone");
    static_assert(sizeof(Actor) <= most_rollback_bytes,
                  "rollback_on_error copies the state before each message: it may have 4,096 bytes at most");
    return state_bytes<Actor>();
  } else {
    return 0;
  }
}

/// Bytes of scratch memory for one message, a multiple of 16: what the type says as
/// `static constexpr uint32_t scratch_bytes`, or 0.
template <class Actor>
GYRE_DEVICE constexpr uint32_t scratch_bytes() {
  if constexpr (requires { Actor::scratch_bytes; }) {
    static_assert(Actor::scratch_bytes <= uint32_t(1) << 31, "scratch_bytes may be 2^31 at most");
    return (uint32_t(Actor::scratch_bytes) + 15) / 16 * 16;
  } else {
    return 0;
  }
}

/// Bytes of a block's shared memory for one message's scratch memory, a multiple of 16: what the type says as
/// `static constexpr uint32_t shared_scratch_bytes`, or 0.
template <class Actor>
GYRE_DEVICE constexpr uint32_t shared_scratch_bytes() {
  if constexpr (requires { Actor::shared_scratch_bytes; }) {
    static_assert(Actor::shared_scratch_bytes <= uint32_t(1) << 20,
                  "shared_scratch_bytes may be 2^20 at most, and no GPU has so much shared memory");
    return (uint32_t(Actor::shared_scratch_bytes) + 15) / 16 * 16;
  } else {
    return 0;
  }
}

/// What one type takes of the working memory.
GYRE_DEVICE constexpr uint64_t working_bytes(uint32_t rollback_bytes, uint32_t scratch_bytes,
                                             bool side_by_side) {
  return rollback_bytes + uint64_t(scratch_bytes) * (side_by_side ? most_side_by_side : 1);
}

}  // namespace detail

/// Whether any of the types is rolled back on errors.
template <class... Actors>
inline constexpr bool any_rolls_back = ((detail::rollback_bytes<Actors>() != 0) || ...);

/// Bytes of a worker's working memory: what the type that takes most of it takes; a multiple of 256.
class WorkingMemory {
 public:
  template <class... Actors>
  GYRE_DEVICE static constexpr WorkingMemory of() {
    WorkingMemory memory;
    (memory.make_room(detail::rollback_bytes<Actors>(), detail::scratch_bytes<Actors>(),
                      HandlesSideBySide<Actors>),
     ...);
    return memory;
  }
  /// For one more type.
  GYRE_DEVICE constexpr void make_room(uint32_t rollback_bytes, uint32_t scratch_bytes, bool side_by_side) {
    const uint64_t bytes = detail::working_bytes(rollback_bytes, scratch_bytes, side_by_side);
    if (bytes > bytes_) bytes_ = bytes;
  }
  GYRE_DEVICE constexpr uint64_t bytes() const { return (bytes_ + 255) / 256 * 256; }

 private:
  uint64_t bytes_ = 0;
};

/// Bytes of scratch memory in each block's shared memory: what the type that takes most of it takes; a
/// multiple of 128. A value, the same on both sides.
class SharedScratch {
 public:
  template <class... Actors>
  GYRE_DEVICE static constexpr SharedScratch of(bool is_warp) {
    SharedScratch scratch;
    (scratch.make_room(detail::shared_scratch_bytes<Actors>(), is_warp && HandlesSideBySide<Actors>), ...);
    return scratch;
  }
  /// For one more type.
  /// @param in_batches  its messages are handled side by side: the worker is one warp of a GPU
  GYRE_DEVICE constexpr void make_room(uint32_t shared_scratch_bytes, bool in_batches) {
    const uint32_t bytes = shared_scratch_bytes * (in_batches ? most_side_by_side : 1);
    if (bytes > bytes_) bytes_ = bytes;
  }
  GYRE_DEVICE constexpr uint32_t bytes() const { return (bytes_ + 127) / 128 * 128; }

 private:
  uint32_t bytes_ = 0;
};

/// Copies `bytes` bytes, a multiple of 16, between 16-aligned memory of the engine's own. By the whole
/// handler group; no barrier is in it.
GYRE_DEVICE inline void copy_by_group(void* to, const void* from, uint32_t bytes) {
  struct alignas(16) Chunk {
    uint64_t words[2];
  };
  // All chunks are loaded before any is stored: the loads overlap.
  constexpr uint32_t at_once = 4;
  const uint32_t count = bytes / sizeof(Chunk), step = HandlerGroup::size();
  auto* const chunks_to = static_cast<Chunk*>(to);
  const auto* const chunks_from = static_cast<const Chunk*>(from);
  for (uint32_t i = HandlerGroup::rank(); i < count; i += at_once * step) {
    Chunk chunks[at_once] = {};
    for (uint32_t k = 0; k < at_once; ++k) {
      if (i + k * step < count) chunks[k] = chunks_from[i + k * step];
    }
    for (uint32_t k = 0; k < at_once; ++k) {
      if (i + k * step < count) chunks_to[i + k * step] = chunks[k];
    }
  }
}

}  // namespace gyre
