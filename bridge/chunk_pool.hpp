// A pool of memory chunks that all workers share, for messages that wait. One text for g++, clang, NVRTC
// and the model checker (tests/model), which supplies its own `Memory`.
#pragma once

#include <gyre/messages/fixed_width.hpp>

namespace gyre {

/// Chunks of messages that all workers share: a worker takes one when its queue is full, and gives it back
/// when it has handled what is in it. A value, the same for every worker; refers to the engine's memory.
///
/// The free list is Treiber's stack ("Systems Programming: Coping with Parallelism", IBM RJ 5118, 1986). The
/// upper half of its head counts the changes, so that a head that was away and is back is not taken for the
/// same. Chunks that were never taken are not in the list: a count says which is the next.
template <class Memory>
class ChunkPool {
 public:
  using Word = typename Memory::Word;
  enum : uint32_t { no_chunk = 0xffffffff };

  /// @param state   two words, zeroed: the list's head, and how many chunks were taken for the first time
  /// @param links   a word for each chunk
  /// @param chunks  how many there are
  GYRE_DEVICE ChunkPool(Word* state, Word* links, uint32_t chunks)
      : state_(state), links_(links), chunks_(chunks) {}

  /// Takes a chunk, whose content is whatever was in it. Never waits for another thread. One thread.
  /// @returns no_chunk if there is none
  GYRE_DEVICE uint32_t take() const {
    // Pairs with give(): the chunk's link is as of this head, and what the chunk's last owner read of it
    // comes before what the next one writes. Also after an exchange that failed, which reads the head
    // relaxed.
    for (uint64_t head; uint32_t(head = Memory::load_acquire(state_[0])) != 0;) {
      const uint32_t chunk = uint32_t(head) - 1;
      // Another thread may have taken the chunk, and may be changing its link: the exchange fails then.
      const uint64_t below = Memory::load_relaxed(links_[chunk]);
      if (Memory::compare_exchange(state_[0], head, changed(head) | below)) return chunk;
    }
    if (Memory::load_relaxed(state_[1]) >= chunks_) return no_chunk;
    const uint64_t fresh = Memory::fetch_add(state_[1], 1);
    return fresh < chunks_ ? uint32_t(fresh) : uint32_t(no_chunk);
  }
  /// Gives back a chunk that take() returned. All threads of the group have read it, and met at a barrier
  /// since. One thread.
  GYRE_DEVICE void give(uint32_t chunk) const {
    uint64_t head = Memory::load_relaxed(state_[0]);
    do {
      Memory::store_relaxed(links_[chunk], uint32_t(head));
    } while (!Memory::compare_exchange(state_[0], head, changed(head) | (chunk + 1)));
  }

 private:
  // The upper half of a head that replaces `head`.
  GYRE_DEVICE static uint64_t changed(uint64_t head) { return ((head >> 32) + 1) << 32; }

  Word* state_;
  Word* links_;
  uint32_t chunks_;
};

}  // namespace gyre
