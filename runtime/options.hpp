// The options of a runtime. Every tool uses the same names.
#pragma once

#include <gyre/bridge/region.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

/// Selects where the actors run; `automatic` means CUDA if there is a device, else the CPU.
enum class EngineKind { automatic, cuda, cpu };
/// Selects the memory that messages travel through; see Options::transport.
enum class TransportKind { automatic, bar, pinned, heap, unified };
/// Selects where the CUDA engine runs; see Options::isolation.
enum class Isolation { process, in_process };
/// Selects the CUDA context of an engine in process; see Options::context.
enum class CudaContext { own, primary, given };

/// Selects how a thread waits for the other side. A waiting thread takes the replies of all waiting threads,
/// and wakes the thread whose reply it took.
enum class WaitPolicy {
  /// Spins for 20 to 50 µs, then sleeps. On the CPU engine the thread sleeps until woken. On CUDA, where a
  /// kernel cannot wake a thread, it sleeps for a tenth of the time waited so far, 5 µs to 2 ms each time.
  /// Threads that wait for room or for a change of the lifecycle sleep for 50 µs each time.
  polite,
  /// Spins without sleeping. Lowest latency; each waiting thread occupies a core. With more such threads than
  /// cores the threads preempt each other.
  spin,
};

namespace detail {
/// Lists the names of an option's values, from value 0 up: the one list that printing, parsing and checking
/// use.
template <class Kind>
inline constexpr std::array<std::string_view, 0> names_of{};
template <>
inline constexpr std::array<std::string_view, 3> names_of<EngineKind>{"auto", "cuda", "cpu"};
template <>
inline constexpr std::array<std::string_view, 5> names_of<TransportKind>{"auto", "bar", "pinned", "heap",
                                                                         "unified"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Isolation>{"process", "in_process"};
template <>
inline constexpr std::array<std::string_view, 3> names_of<CudaContext>{"own", "primary", "given"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<WaitPolicy>{"polite", "spin"};

/// Returns true if the value is one of the enumeration's. A program may have cast any number to it.
template <class Kind>
constexpr bool is_named(Kind value) {
  return int64_t(value) >= 0 && size_t(value) < names_of<Kind>.size();
}
}  // namespace detail

/// Returns the name that options and tools use, for example "cuda".
std::string_view name(EngineKind kind);
/// Returns the name that options and tools use, for example "pinned".
std::string_view name(TransportKind kind);
/// Returns the name that options and tools use, for example "in_process".
std::string_view name(Isolation isolation);
/// Returns the name that options and tools use, for example "primary".
std::string_view name(CudaContext context);
/// Returns the name that options and tools use, for example "polite".
std::string_view name(WaitPolicy policy);

/// The value of Options::multiprocessors for all that the device has.
inline constexpr uint32_t all_multiprocessors = ~uint32_t(0);

/// Limits a region in unified memory, in bytes; unified memory is meant for small regions.
inline constexpr uint64_t unified_region_bytes = uint64_t(256) << 20;

/// Says how often a failed engine is launched again by itself; see Options::restart.
struct RestartLimit {
  uint32_t times = 0;  ///< most relaunches in any `within`; 0: never
  std::chrono::milliseconds within{60'000};
};

/// Configures a runtime. Every default works. Runtime::launch checks all options at once and throws
/// BadOptions.
struct Options {
  EngineKind engine = EngineKind::automatic;  ///< `automatic`: CUDA if there is a device, else the CPU
  int device = 0;                             ///< CUDA device number
  /// `automatic`: bar if it works on this CUDA machine, else pinned; heap on the CPU engine. Unified memory
  /// is used only on request.
  TransportKind transport = TransportKind::automatic;
  /// CUDA: `process` runs the engine in a process of its own, gyre-engine. No CUDA call of the program waits
  /// for the workers then, and without MPS a device fault ends that process alone. `in_process` runs it in a
  /// context of this process. Unified memory is in process only.
  Isolation isolation = Isolation::process;
  /// Kills an engine process that is silent for so long, 100 ms to an hour; 0: never, for debuggers. One that
  /// waits for a processor of a busy machine is not killed. One that finishes no part of a copy of a buffer
  /// for 30 times as long, and a second for each GiB of the part, is killed too.
  std::chrono::milliseconds heartbeat_timeout{2000};
  /// Kills an engine process with a worker that is in one handler for so long, 10 ms to a day; 0: never. Only
  /// with `isolation` process: nothing else can end an endless handler.
  std::chrono::milliseconds stall_after{0};
  /// Launches a failed engine again: at once the first time, each time within `restart.within` after a longer
  /// pause. Messages of before have their outcome then; actors' state begins anew (Runtime::relaunch).
  RestartLimit restart = {};
  /// CUDA: multiprocessors that the workers of an engine process may occupy, which takes MPS. 0: under MPS as
  /// many as there are blocks, at most a quarter of the device's, so that the kernels of others find room;
  /// without MPS all. all_multiprocessors: all.
  uint32_t multiprocessors = 0;
  /// CUDA in process: `own` is a context that nobody else uses, so that CUDA calls in other contexts return
  /// beside the workers, and several runtimes share a GPU. `primary` is the CUDA runtime library's, `given`
  /// is cuda_context; each has room for one runtime at a time, and calls there wait for the workers.
  CudaContext context = CudaContext::own;
  /// A CUcontext of `device`, with `context` given. It must live until the runtime and all its clients,
  /// replies and buffers have ended.
  void* cuda_context = nullptr;
  uint32_t workers = 1;  ///< number of workers: blocks on CUDA, threads on the CPU
  uint32_t block = 32;   ///< CUDA threads per block, a multiple of 32; the CPU engine ignores it
  /// CUDA blocks of the single worker of a grid-scoped actor set; 0: one block per multiprocessor.
  uint32_t blocks = 0;
  uint32_t slots = 256;       ///< slots per ring, a power of two
  uint32_t slot_bytes = 512;  ///< bytes per slot, a multiple of 64
  /// Limits an ask from its call to its outcome, and the wait of a tell for room.
  std::chrono::milliseconds timeout{5000};
  WaitPolicy wait = WaitPolicy::polite;  ///< applies to callers' threads and the CPU engine's workers
  /// Pins the CPU engine's workers: worker n runs only on CPU number pin_workers[n mod pin_workers.size()].
  /// Empty: the system places them. CUDA ignores this option. It does not pin callers' threads.
  std::vector<int> pin_workers = {};
  /// Bytes for bodies of requests and replies that do not fit a slot, a multiple of 4096. 0: larger bodies
  /// are refused.
  uint64_t arena_bytes = uint64_t(64) << 20;
  /// Bytes that an ask reserves for its reply if neither AskOptions nor the actor's handler says. 0: as many
  /// as the request has, and at least what fits a slot.
  uint32_t max_reply_bytes = 0;
  /// Actors with state that one worker has room for, per actor type. Each takes its state and 28 bytes of the
  /// engine's memory, 36 where a handler takes gyre::ToMany. Worker `key mod workers` runs the actor of a
  /// key.
  uint32_t actors_per_worker = 16384;
  /// Bytes of the engine's memory, at most, for messages between actors that wait to be handled; sets whose
  /// handlers do not send take none. The CPU engine takes them as they are needed. Each worker has room for
  /// 64 such messages besides.
  uint64_t spill_bytes = uint64_t(1) << 30;
  /// Bytes of the largest message between actors, if it does not fit a slot; a multiple of 128, at most
  /// 16 MiB.
  uint32_t body_bytes = 32768;
  /// Bytes of the engine's memory for the bodies of such messages, `body_bytes` each; sets without a handler
  /// that lists gyre::LargeMessages take none. 0: messages between actors must fit a slot. The CPU engine
  /// takes them as they are needed.
  uint64_t body_pool_bytes = uint64_t(64) << 20;
  uint32_t max_buffers = 1024;  ///< buffers at one time, at most 65,535; each takes 24 bytes of engine memory
  uint64_t region_budget = uint64_t(1) << 30;  ///< limits the region, in bytes
  bool verbose = false;                        ///< logs launch parameters at every log level
  /// Writes stats() to a file in `$GYRE_STATS_DIR` at each stats_interval, for `gyre stat`
  /// (docs/reference/metrics.md).
  bool publish_stats = false;
  std::chrono::milliseconds stats_interval{200};  ///< time between two writes of stats(), 10 ms to an hour
  /// Records what the program sends, and its outcomes, in this file, for `gyre replay`
  /// (docs/how-to/recording.md). Empty: nothing is recorded.
  std::string record = {};
  bool cache = true;  ///< CUDA: keeps compiled actors on disk and reuses them (docs/explanation/worker.md)
  /// CUDA: names a folder for the compiled actors and the sources that they were compiled from. Empty: none
  /// is written.
  std::string keep_program = {};
  uint64_t first_lap = 1;  ///< lap of the rings' first ticket; tests use it to reach the wrap

  /// Returns the shape of each ring.
  RingShape ring_shape() const { return RingShape{slots, slot_bytes, first_lap}; }
  /// Returns the layout of the region.
  /// @param handlers  number of handlers of all actor types
  RegionLayout region_layout(size_t handlers) const {
    return RegionLayout{workers, ring_shape(), arena_bytes, uint32_t(handlers)};
  }
  /// Returns how many chunks spill_bytes and body_pool_bytes are. The options have no problems().
  MailChunks mail_chunks() const;
  /// Lists everything that is wrong with these values, one line each with the value, the limit and its
  /// reason. Returns an empty string if all are valid.
  std::string problems() const;
};

}  // namespace gyre
