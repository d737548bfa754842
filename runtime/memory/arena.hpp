// The arena's allocator: blocks for bodies that do not fit a slot. The host allocates; workers get offsets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace gyre {

namespace detail {
class CopyThreads;
}

/// Names one use of a block: the block's first unit, and a generation. Never 0.
using BlockId = uint64_t;

/// Room for a request's body and its reply's, in one block.
struct ArenaBlock {
  BlockId id;
  uint64_t request_offset;  ///< bytes from the arena's start, a multiple of 1024
  uint64_t reply_offset;
  uint32_t reply_capacity;
};

/// Thread-safe and lock-free; nothing allocates after construction. Memory is counted in units of 1 KiB, a
/// bit each in two maps: used, and dirty (not known to be zero). Blocks up to 64 units are taken from the low
/// end, first fit within a word of the map; larger ones start at a word's first bit and are taken from the
/// high end.
class Arena {
 public:
  static constexpr uint64_t unit_bytes = 1024;

  /// `base`: `bytes` of memory, a multiple of 4096, of any content; may be null if `bytes` is 0. Refers to
  /// it, and to `threads`, which help to zero; may be null.
  Arena(void* base, uint64_t bytes, detail::CopyThreads* threads = nullptr);

  uint64_t bytes() const { return bytes_; }
  /// True if an empty arena would have room for such a block.
  bool could_hold(uint64_t request_bytes, uint64_t reply_capacity) const;
  /// Allocates a block with room for both bodies, the reply's zeroed; empty if there is no room now.
  std::optional<ArenaBlock> allocate(uint32_t request_bytes, uint32_t reply_capacity);
  /// Returns the block as it was allocated; empty if `id` names no block in use.
  std::optional<ArenaBlock> find(BlockId id) const;
  /// Frees a block. At most the first `reply_bytes` of its reply are not zero. False if `id` names no block
  /// in use.
  bool free(BlockId id, uint64_t reply_bytes);
  /// Frees a block whose content is unknown.
  bool free(BlockId id) { return free(id, ~uint64_t(0)); }

  void* at(uint64_t offset) const { return base_ + offset; }
  /// Returns the bytes in blocks that are not free. Exact while nobody allocates or frees.
  uint64_t bytes_in_use() const;

 private:
  // Describes the block that begins at a unit. The block's owner writes it. `use` holds the generation and,
  // while the block is in use, its units.
  struct Head {
    std::atomic<uint64_t> use{0};
    uint32_t request_units = 0;
    uint32_t reply_capacity = 0;
  };

  std::optional<uint64_t> take(uint64_t units);
  std::optional<uint64_t> take_within_a_word(uint64_t units);
  std::optional<uint64_t> take_words(uint64_t units);
  bool take_exactly(uint64_t first_word, uint64_t units);
  void give_back(uint64_t first_unit, uint64_t units);
  void mark_dirty(uint64_t first_unit, uint64_t units);
  void zero(uint64_t first_unit, uint64_t units);
  void zero_bytes(uint64_t first_unit, uint64_t units);

  std::byte* base_;
  uint64_t bytes_;
  detail::CopyThreads* threads_;
  std::vector<std::atomic<uint64_t>> used_, dirty_;  // a bit a unit
  std::vector<Head> heads_;                          // one a unit
};

}  // namespace gyre
