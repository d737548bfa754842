// What the bare mailbox kernels are given, and what they say: the same on both sides.
#pragma once

#include <gyre/bridge/mailbox.hpp>

namespace gyre::bench {

/// Whom workers send to.
enum class MailboxLoad : uint32_t {
  uniform,  ///< any worker, itself too
  skewed,   ///< half of all messages to a sixteenth of the workers, the others to any
  pairs,    ///< one other worker, which sends back
};

/// What one worker did.
struct MailboxResult {
  uint64_t begin_ns, end_ns;  ///< by the GPU's global timer
  uint32_t received;
  uint32_t wrong;  ///< messages that were not the expected ones: lost, duplicated, out of order or mixed up
};

/// One run. All memory is the device's, zeroed.
struct MailboxRun {
  Mailboxes<WorkersMemory> mailboxes;  ///< slots of four packets
  WorkerRings<WorkersMemory> replies;  ///< the same; at least 32 slots
  const Packet* host;                  ///< of each worker: a slot that the host never writes
  MailboxResult* results;              ///< of each worker
  unsigned long long* received;        ///< by all
  uint32_t* samples;                   ///< latency: cycles of each round trip
  uint64_t* cycles;                    ///< latency: of all
  uint64_t total;                      ///< messages of all workers
  uint32_t messages;                   ///< of each worker: a multiple of 32; latency: round trips
  MailboxLoad load;
};

}  // namespace gyre::bench
