// How a program asks its engine process for copies: by words of shared memory, without a system call while
// both are at work. A lane for each direction; each lies at the start of the staging block, followed by both
// lanes' memory for bytes on their way.
//
// A lane is a ring with one producer, the program, and one consumer, the engine process. `asked` and `done`
// count commands and wrap. The program writes a command, then `asked`; the engine process does commands in
// their order on a stream, which itself counts `done` behind each copy. Each side sleeps on the other's
// count.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gyre::process {

/// One copy between the device and host memory that the engine process has locked.
struct CopyCommand {
  uint64_t device = 0;  ///< the device's address
  uint64_t bytes = 0;
  uint64_t pinned = 0;  ///< the device's address of bytes of a pinned buffer; 0: the lane's staging memory
  uint64_t staged = 0;  ///< offset in that
};

/// The program writes `asked`, `engine_sleeps` is the engine's, and so on: nothing has two writers but the
/// counts of sleepers. Neither side trusts what it reads.
struct CopyLane {
  static constexpr uint32_t slots = 8;
  static constexpr size_t most_text = 256;

  struct Slot {
    CopyCommand command;
    /// 1: refused, and `why` says why. The engine process writes both before the stream counts it in `done`.
    std::atomic<uint32_t> refused;
    std::array<char, most_text> why;
  };

  alignas(64) std::atomic<uint32_t> asked;
  std::atomic<uint32_t> program_sleeps;  ///< how many threads wait for `done`
  alignas(64) std::atomic<uint32_t> done;
  std::atomic<uint32_t> engine_sleeps;
  alignas(64) std::array<Slot, slots> ring;

  Slot& slot(uint32_t number) { return ring[number % slots]; }
};

/// The directions of copies, and with it their lanes' numbers.
enum class CopyDirection : uint32_t { in, out };

/// The staging block. Its memory is zeroed at first.
struct StagingBlock {
  static constexpr uint64_t lane_bytes = uint64_t(8) << 20;  ///< of staging memory

  std::array<CopyLane, 2> lanes;  ///< by CopyDirection
  alignas(4096) std::array<std::array<char, lane_bytes>, 2> memory;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free, "another process reads them");

/// So long the engine process spins before it sleeps, in nanoseconds: longer than a thread of the program
/// needs between two copies. The program spins as long before it lets others have its processor.
inline constexpr int64_t copy_spin_ns = 100'000;

}  // namespace gyre::process
