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
};

/// Echoes `messages` messages with bodies of `size` bytes, at most 32 packets each, through options.workers
/// bare warps that each take all messages that a poll shows; `threads` host threads keep `window` messages in
/// flight each (0: as ping_stream.hpp says) and check stamp and content of every packet. On the transport of
/// the options. No other kernel may live on the device. Throws EngineUnavailable, BadOptions, Error.
StreamFigures measure_raw_stream(const Options& options, uint32_t size, uint64_t messages, uint32_t threads,
                                 uint32_t window);

}  // namespace gyre::bench
