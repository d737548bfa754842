// Bare mailboxes in device memory: what messages between workers can cost at best.
#pragma once

#include <gyre/runtime/cuda/program.hpp>

#include <cstdint>
#include <vector>

#include "baselines/mailbox_run.hpp"

namespace gyre::bench {

/// What one run of bare mailboxes did.
struct MailboxRates {
  uint64_t messages = 0;    ///< received by all workers
  uint64_t wrong = 0;       ///< lost, duplicated, out of order or mixed up
  double seconds = 0;       ///< from the first worker's begin to the last one's end
  uint32_t slots = 0;       ///< of each mailbox
  uint64_t ring_bytes = 0;  ///< of all mailboxes
};
/// Runs `warps` workers on each multiprocessor, each of which sends `messages` messages. Blocks until all
/// were received. Throws EngineUnavailable, Error.
/// @param warps      1, 2 or 4
/// @param allowance  messages that a producer may have on the way to a consumer at first
MailboxRates measure_mailbox_rates(int device, uint32_t warps, uint32_t allowance, uint32_t messages,
                                   MailboxLoad load);

/// Nanoseconds of each of `round_trips` round trips between two workers: by their mailboxes, or there by a
/// mailbox and back by a reply ring. Half of one is one way. Throws as measure_mailbox_rates(), and if a
/// message was wrong.
std::vector<uint64_t> measure_mailbox_latency(int device, uint32_t round_trips, bool by_reply_ring);

/// The kernels. Need no GPU. Throw as cuda::compile_text.
/// @param workers  the most that there can be: of a rate
cuda::CompiledKernel compile_mailbox_rate_kernel(int architecture, uint32_t workers, uint32_t warps);
cuda::CompiledKernel compile_mailbox_latency_kernel(int architecture, bool by_reply_ring);

}  // namespace gyre::bench
