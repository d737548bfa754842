// What a runtime is launched with; the same names in every tool.
#pragma once

#include <gyre/bridge/region.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

enum class EngineKind { automatic, cuda, cpu };
enum class TransportKind { automatic, bar, pinned, heap, unified };

/// How a thread waits for the other side. It polls for all who wait; any of them may find another's reply, and
/// tells that one.
enum class WaitPolicy {
  /// Spin for some 20 to 50 µs, then sleep: on the CPU engine until woken; on CUDA, where a kernel wakes no
  /// thread, a tenth of the time waited, 5 µs to 2 ms at once. Threads that wait for room, or for a change of
  /// the lifecycle, sleep for 50 µs at a time.
  polite,
  spin,  ///< spin: lowest latency, a core each; with more such threads than cores they take each other's time
};

std::string_view name(EngineKind kind);
std::string_view name(TransportKind kind);
std::string_view name(WaitPolicy policy);

/// Largest region in unified memory, in bytes: it is meant for small ones.
inline constexpr uint64_t unified_region_bytes = uint64_t(256) << 20;

/// Plain values with working defaults. Runtime::launch checks them all at once and throws BadOptions.
struct Options {
  EngineKind engine = EngineKind::automatic;  ///< CUDA where a device exists, else the CPU
  int device = 0;                             ///< CUDA device number
  /// On CUDA bar where it works, else pinned; unified on request. On the CPU heap.
  TransportKind transport = TransportKind::automatic;
  uint32_t workers = 1;  ///< blocks on CUDA, threads on the CPU
  uint32_t block = 32;   ///< CUDA threads a block, a multiple of 32; the CPU ignores it
  uint32_t blocks = 0;   ///< CUDA blocks of a grid-scoped actor set's one worker; 0: one a multiprocessor
  uint32_t slots = 256;  ///< slots a ring, a power of two
  uint32_t slot_bytes = 512;                ///< bytes a slot, a multiple of 64
  std::chrono::milliseconds timeout{5000};  ///< of an ask, and for room in a full ring
  WaitPolicy wait =
      WaitPolicy::polite;  ///< of every thread that waits: callers, and the CPU engine's workers
  /// CPU engine: worker n runs on the CPU with number pin_workers[n mod its size] only. Empty: where the
  /// system puts it. CUDA ignores it. Callers' threads are their own to pin.
  std::vector<int> pin_workers = {};
  /// Bytes, a multiple of 4096, for bodies of requests and replies that do not fit a slot. 0: none may be
  /// larger.
  uint64_t arena_bytes = uint64_t(64) << 20;
  /// Largest reply, in bytes, that an ask makes room for unless it says itself, or the actor that it is for
  /// does. 0: what fits a slot, or as many bytes as its request has.
  uint32_t max_reply_bytes = 0;
  /// Actors with state, of each type, that one worker has room for: each takes its state and 28 bytes of the
  /// engine's memory. A key's worker is key mod workers.
  uint32_t actors_per_worker = 16384;
  uint32_t max_buffers = 1024;  ///< there may be at once, at most 65,535; each takes 24 bytes of the engine's
  uint64_t region_budget = uint64_t(1) << 30;  ///< bytes; a larger region is refused
  bool verbose = false;                        ///< log launch parameters, whatever the log's level
  /// Writes stats() to a file in `$GYRE_STATS_DIR` again and again, for `gyre stat` (docs/watching.md).
  bool publish_stats = false;
  std::chrono::milliseconds stats_interval{200};  ///< between two times, 10 ms to an hour
  bool cache = true;  ///< CUDA: keep the compiled actors on disk, and look there first (docs/design.md, 6)
  /// CUDA: a folder to write the compiled actors to, with all that they were compiled from. Empty: none.
  std::string keep_program = {};
  uint64_t first_lap = 1;  ///< lap of the rings' first ticket; for tests of the wrap

  RingShape ring_shape() const { return RingShape{slots, slot_bytes, first_lap}; }
  /// Of a region for actors with so many handlers.
  RegionLayout region_layout(size_t handlers) const {
    return RegionLayout{workers, ring_shape(), arena_bytes, uint32_t(handlers)};
  }
  /// Everything that is wrong with these values, a line each with the number, the limit and its reason; empty
  /// if valid.
  std::string problems() const;
};

}  // namespace gyre
