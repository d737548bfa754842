// What the bare mailbox kernels are given, and what they say: the same on both sides.
#pragma once

#include <gyre/bridge/packet.hpp>

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

/// Words between two tails: each has a line of its own.
inline constexpr uint32_t mailbox_words_a_line = 16;

/// One run. All memory is the device's, zeroed.
struct MailboxRun {
  Packet* mailboxes;                ///< of each worker: `slots` messages of four packets
  Packet* replies;                  ///< of each worker: `reply_slots` such messages
  const Packet* host;               ///< of each worker: a slot that the host never writes
  unsigned long long* tails;        ///< of mailboxes: tickets taken
  unsigned long long* reply_tails;  ///< of reply rings
  uint32_t*
      limits;  ///< [producer][consumer]: how many messages the producer may send in all; 0: the allowance
  MailboxResult* results;        ///< of each worker
  unsigned long long* received;  ///< by all
  uint32_t* samples;             ///< latency: cycles of each round trip
  uint64_t* cycles;              ///< latency: of all
  uint64_t total;                ///< messages of all workers
  uint32_t workers;
  uint32_t slots;        ///< a power of two, at least workers * allowance
  uint32_t reply_slots;  ///< a power of two, at least 32
  uint32_t allowance;    ///< messages that each producer may have on the way to each consumer at first
  uint32_t messages;     ///< of each worker: a multiple of 32; latency: round trips
  MailboxLoad load;
};

}  // namespace gyre::bench
