// The floor of throughput on CUDA: packets of Gyre messages through bare warps, many in flight.
#pragma once

#include <gyre/runtime/options.hpp>

#include <cstdint>

namespace gyre::bench {

/// What one measurement of a stream found.
struct StreamFigures {
  double seconds = 0;
  uint64_t messages = 0;  ///< counted
  uint64_t checksum = 0;  ///< sum of what came back, modulo 2^64
  uint32_t threads = 0;   ///< of the host, that had something to do
};

/// Echoes `messages` messages with bodies of `size` bytes, at most 32 packets each, through options.workers
/// bare workers of `pollers` warps, 1 or 2, that each take all messages that a poll shows; `threads` host
/// threads keep `window` messages in flight each (0: usual_window a worker) and check stamp and content of
/// every packet. A ring has one sender and one taker: two threads a worker at most. On the transport of the
/// options. No other kernel may live on the device. Throws EngineUnavailable, BadOptions, Error.
StreamFigures measure_raw_stream(const Options& options, uint32_t size, uint64_t messages, uint32_t threads,
                                 uint32_t window, uint32_t pollers = 1);

}  // namespace gyre::bench
