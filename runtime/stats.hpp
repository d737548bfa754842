// What a runtime has done so far: by worker and by handler, and how long things took.
#pragma once

#include <gyre/bridge/handler_counts.hpp>
#include <gyre/runtime/books.hpp>
#include <gyre/runtime/options.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

/// created → launched → active ⇄ inactive → draining → terminated, and failed from anywhere.
enum class Lifecycle { launched, active, inactive, draining, terminated, failed };
std::string_view name(Lifecycle state);

/// How long set-up took, in milliseconds.
struct Timings {
  /// That a launch waited for: actors' source to machine code; 0 where they are compiled in.
  double compile_ms = 0;
  double launch_ms = 0;              ///< all of Runtime::launch but compiling
  bool compiled_from_cache = false;  ///< they were found compiled, on disk
};

/// One handler's messages in one worker.
struct HandlerStats {
  std::string actor;       ///< the type's qualified name; empty: messages for no handler, start and stop too
  std::string message;     ///< its name in its schema, or "#1", its number, where that is not known
  uint64_t processed = 0;  ///< ended well
  uint64_t failed = 0;     ///< got an error reply or became dead letters at the worker, but for
  uint64_t expired = 0;    ///< those whose deadline had passed when the worker took them
  uint64_t dead_letters =
      0;  ///< became dead letters, here or unprocessed at the end, as the books count them
  /// The processed by the time in the handler: as in HandlerCounts::processed. Their sum is `processed`.
  std::array<uint64_t, HandlerCounts::bins> times{};
  uint64_t handler_ns = 0;  ///< of all the processed together

  /// What the worker took.
  uint64_t received() const { return processed + failed + expired; }
  /// No handler that was counted in `times` took longer, in nanoseconds; 0 where none was.
  uint64_t longest_ns_below() const;
  /// Adds the other's counts and times.
  HandlerStats& operator+=(const HandlerStats& other);
};

/// One worker.
struct WorkerStats {
  uint64_t depth = 0;  ///< slots of its ring that are taken, for all it has said
  /// The largest depth that any read of the stats found; the ring's size once a sender found the ring full.
  uint64_t depth_high_water = 0;
  /// Seconds since it last said that it is there, which it does each millisecond between messages: much more
  /// is a handler that long, or a worker that is stuck. Empty before the first time, and once it has stopped.
  std::optional<double> heartbeat_age_s;
  std::vector<HandlerStats> handlers;  ///< in the actor set's order; last, messages for no handler
};

/// Copies of Buffer::write or Buffer::read.
struct TransferStats {
  uint64_t copies = 0;
  uint64_t bytes = 0;
  uint64_t ns = 0;
};

/// The memory that a runtime has taken, in bytes, by what it is for; and what the device has.
struct MemoryStats {
  uint64_t region = 0;   ///< rings, counters and arena: host memory, pinned or managed on CUDA
  uint64_t bar = 0;      ///< device memory that the host writes requests into, where the transport is BAR
  uint64_t actors = 0;   ///< actors' tables and handlers' counts: device memory on CUDA
  uint64_t modules = 0;  ///< compiled actors that were loaded on the device, as large as their code
  uint64_t buffer_table = 0;  ///< of the buffers' handles; on CUDA with the block that copies go through
  std::array<uint64_t, 3> buffers{};        ///< in use, by MemoryKind: Ledger::in_use
  std::array<uint64_t, 3> buffers_freed{};  ///< kept for buffers to come: Ledger::retired
  /// What the device has in all, and free for whoever asks, at most 100 ms ago. 0: not known, as on the CPU
  /// engine and after a device fault.
  uint64_t device_total = 0, device_free = 0;
};

/// A value. Workers say what they counted each 32 ms, when they are drained and when they stop: then, and
/// once the runtime has terminated, it is exact; before, numbers may be of times that far apart.
struct Stats {
  EngineKind engine = EngineKind::automatic;
  TransportKind transport = TransportKind::automatic;
  std::string device;
  Lifecycle state = Lifecycle::launched;
  double uptime_s = 0;
  Timings timings;
  uint32_t slots = 0;  ///< of each ring
  Books books;
  TransferStats writes;
  TransferStats reads;
  MemoryStats memory;
  std::vector<WorkerStats> workers;

  /// Each handler's stats of all workers together, in their order.
  std::vector<HandlerStats> handlers() const;
};

}  // namespace gyre
