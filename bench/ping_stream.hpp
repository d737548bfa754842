// Asks and tells by one thread, many in flight.
#pragma once

#include <gyre/gyre.hpp>

#include <vector>

#include "histogram.hpp"

namespace gyre::bench {

/// The actors of bench/actors/ping.hpp.
ActorSet ping_actors();

/// The body of their messages, and of the answers: a root pointer and a word.
constexpr uint32_t ping_bytes = 16;

/// One thread's part of the work: `messages` messages, to the actors with these keys, one after the other.
struct PingShare {
  std::vector<uint64_t> keys;
  uint64_t messages = 0;
  uint32_t window = 64;      ///< asks in flight
  uint32_t batch = 16;       ///< most of them that are sent together, by ask_many
  uint64_t first_value = 0;  ///< of the messages' values, which go up by one
};

/// Messages in flight with each of `workers` workers, where nobody says how many: 128 with one that is alone,
/// else 64, and what its ring takes at most.
uint32_t usual_window(uint32_t workers, uint32_t slots);
/// Shares of `messages` messages among `threads` threads and `workers` workers: thread t sends to the workers
/// t, t + threads, …, or shares one where there are fewer workers than threads. `window`: asks in flight a
/// thread; 0: usual_window for each of its workers, or its part of that, 8192 in all at most.
std::vector<PingShare> share_pings(uint64_t messages, uint32_t threads, uint32_t workers, uint32_t slots,
                                   uint32_t window);

/// Asks, a batch at a time, keeping the window as full as that, and checks every answer. Returns
/// the sum of the answers modulo 2^64. Throws Error for a wrong or a missing answer. Ends early where the
/// user interrupts.
uint64_t ask_pings(Client& client, const PingShare& share);
/// What an open loop found.
struct OfferedLoad {
  Histogram latency_ns;    ///< from the moment a message was meant to be sent, whenever it was
  double seconds = 0;      ///< from the first message to the last answer
  uint64_t sent_late = 0;  ///< messages sent more than 1 µs after their moment
};
/// Offers the share's messages at random moments, `per_s` a second on average (a Poisson process), whether
/// answers come or not, and checks every answer. A message that cannot be sent at its moment, because the
/// thread or the ring is busy, is sent later, and the time it waited counts: nothing that was slow is left
/// out. Throws Error for a wrong or a missing answer. Ends early where the user interrupts.
OfferedLoad offer_pings(Client& client, const PingShare& share, double per_s);
/// Tells, by tell_many. Returns the sum of the values modulo 2^64. Throws Error where one is refused.
uint64_t tell_counts(Client& client, const PingShare& share);
/// What the counters with these keys were told in all.
struct CountedInAll {
  uint64_t messages = 0, sum = 0;
};
CountedInAll counted(Client& client, const std::vector<uint64_t>& keys);

}  // namespace gyre::bench
