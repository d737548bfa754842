// What became of the messages for one handler, in one worker, and how long the handler took.
#pragma once

#include <gyre/messages/fixed_width.hpp>

namespace gyre {

/// A worker counts in the engine's own memory, and copies that to the region now and then. Each word only
/// grows. What the worker took is the sum of all but processed_ns and dead_letters; control messages are not
/// counted.
struct alignas(128) HandlerCounts {
  static constexpr uint32_t bins = 40;

  /// Messages that ended well, by the time that their worker had them (docs/reference/metrics.md, times): bin
  /// b counts times from 2^b ns to below 2^(b+1) ns; the first counts what took no time that the clock shows
  /// too, the last all that took longer.
  uint64_t processed[bins];
  uint64_t processed_ns;  ///< of all those handlers together
  uint64_t failed;        ///< messages that got an error reply or became dead letters, but for expired ones
  uint64_t expired;       ///< messages that were refused because their deadline had passed
  uint64_t dead_letters;  ///< tells among the failed and the expired

  /// What all handlers of the worker logged.
  struct Log {
    uint64_t lines;          ///< that got an entry
    uint64_t lines_dropped;  ///< that found no room
  };
  /// The worker's actors of one type.
  struct Actors {
    uint64_t created;
    uint64_t removed;
    uint64_t mail_sent;       ///< messages that they sent to actors
    uint64_t mail_processed;  ///< messages of actors to them that ended well
  };
  /// Not of the handler: entry n, below the number of handlers, is also that of actor type n, and the entry
  /// for messages that are for none has the log.
  union {
    Actors actors;
    Log log;
  };

  GYRE_DEVICE static constexpr uint32_t bin_of(uint64_t ns) {
#if defined(__CUDACC_RTC__)
    const uint32_t bin = 63 - uint32_t(__clzll((long long)(ns | 1)));
#else
    const uint32_t bin = 63 - uint32_t(__builtin_clzll(ns | 1));
#endif
    return bin < bins ? bin : bins - 1;
  }
};
static_assert(sizeof(HandlerCounts) == 384, "a handler's counts lie alike on both sides");

}  // namespace gyre
