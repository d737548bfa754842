// What a program and its engine process tell each other by plain stores, in a page that both map.
#pragma once

#include <atomic>
#include <cstdint>

namespace gyre::process {

/// One page of shared memory, zeroed at first. All values are numbers alone: relaxed, unless a member says
/// so.
struct EnginePage {
  std::atomic<uint64_t> heartbeat;  ///< counts; the engine process adds 1 each heartbeat_interval
  /// 1 once every worker has left its loop. Stored with release by the engine process.
  std::atomic<uint64_t> finished;
  std::atomic<uint64_t> device_total, device_free;  ///< bytes of the device, read each 100 ms; 0: unknown
  std::atomic<uint64_t> stop;  ///< 1: the program asks the process to stop its workers and to end
  /// The number of the program's supervisor thread; 0 before it runs. Threads end at exec and with their
  /// program, so that the engine process, which asks for it, ends after both.
  std::atomic<int64_t> program_thread;
  std::atomic<int64_t> guardian_thread;  ///< the number of the thread whose heartbeat it is; 0 before it runs
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "another process reads them");

/// Milliseconds between two heartbeats.
inline constexpr int heartbeat_interval_ms = 25;

/// Milliseconds that an engine process under MPS has to stop its workers before it ends, and before it is
/// killed: kernels that die with their process may take other processes' along.
inline constexpr int stop_grace_ms = 400, kill_grace_ms = 500;

/// The engine process's descriptors: standard error is the program's, all others are closed.
inline constexpr int socket_descriptor = 3, program_descriptor = 4, page_descriptor = 5;

}  // namespace gyre::process
