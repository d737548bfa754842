// What a worker's threads share.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/device/worker/engine_memory.hpp>
#include <gyre/device/worker/handler_meter.hpp>
#include <gyre/device/worker/message_memory.hpp>

namespace gyre {

/// Notes of a worker's threads about a message that does not simply end with its answer. All 0 between
/// messages.
struct MessageVerdict {
  /// 1 if any member but `state` is set. The worker reads only this word after a handler.
  uint32_t exceptional;
  Status refused;  ///< why no handler is called; ok: one is called
  Status status;   ///< how the message ends
  uint32_t detail;
  uint64_t where;         ///< see ErrorBody::where
  void* state;            ///< of the actor; null where its type has none, or before the actor was looked up
  uint32_t command_seen;  ///< the Command that Context::should_stop last read
  uint32_t new_actor;     ///< 1: the message created the actor
  uint32_t remove_actor;  ///< 1: the actor is removed once the message has ended
  uint32_t buffers_used;  ///< 1 once a thread has asked for a buffer that it may write
};

/// The times of a worker's last publications, by its own clocks. Only polling threads use it.
struct WorkerReports {
  uint32_t heartbeat_us;
  uint32_t counts_us;
  uint64_t counts_ticket;  ///< messages that were counted by then: Worker::counted()
  HandlerMeter::ClockPair clocks;
};

/// Where a worker's handlers log.
struct LogPlace {
  const HostLine* host_line;
  const LastWords* last_words;
  LogEntry* entries;
};

/// Memory that a worker's threads share: shared memory on the GPU, ordinary memory on the CPU.
struct WorkerShared {
  MessageVerdict verdict;
  MessageVerdict batch_verdicts[most_side_by_side];  ///< of messages that are handled at once
  uint32_t gathered;       ///< messages for an on_batch(), as the polling threads found
  uint32_t team_log_size;  ///< of the teams of a batch; log_warp_size between batches
  WorkerReports reports;
  TickLength tick;  ///< of the clock that handlers are timed by, at the last report of counts
  // The polling threads' findings, for the group's other threads.
  PollOutcome outcome;
  uint32_t command;  ///< CommandWord::word
  uint32_t now_us;   ///< CommandWatch::now_us()
  uint32_t response_bytes;
  const uint32_t* request;
  const CommandLine* command_line;
  EngineMemory memory;
  LogPlace log;
};

#if defined(__CUDACC_RTC__)
/// A block's dynamic shared memory: SharedScratch, and behind it the messages in hand unless the worker is
/// the whole grid.
extern __shared__ uint4 dynamic_shared_memory[];
#if defined(GYRE_GRID)
static __device__ WorkerShared the_worker_shared;  // one worker is the whole grid
#else
static __shared__ WorkerShared the_worker_shared;  // one worker a block
#endif
/// Of the worker that runs the calling thread.
__device__ inline WorkerShared& worker_shared() { return the_worker_shared; }
#else
namespace detail {
inline thread_local WorkerShared* worker_shared_of_this_thread = nullptr;
}
/// Of the worker that runs the calling thread. Only in a handler.
inline WorkerShared& worker_shared() { return *detail::worker_shared_of_this_thread; }
#endif

}  // namespace gyre
