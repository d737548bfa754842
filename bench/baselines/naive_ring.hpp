// What one writes first: a ring whose messages are announced by a number behind them.
#pragma once

#include <gyre/bridge/group.hpp>
#include <gyre/bridge/packet.hpp>

#if !defined(__CUDACC_RTC__)
#include <gyre/runtime/cuda/program.hpp>

#include "measure.hpp"
#endif

namespace gyre::bench {

/// One direction: written by one side, read by the other.
struct NaiveRing {
  static constexpr uint32_t slots = 64;
  static constexpr uint32_t most_bytes = 512;
  alignas(128) uint64_t number;  ///< of the last message, from 1
  alignas(128) uint64_t payload[slots][most_bytes / 8];
};
struct NaiveRings {
  NaiveRing request, reply;
  alignas(128) uint64_t command;  ///< 0 while the kernel shall run
};

#if !defined(__CUDACC_RTC__)
/// The payload is stored, then the number (release); the other side polls the number (acquire), then reads
/// the payload: two bus crossings each way where a stamped packet needs one. Messages of `size` bytes, a
/// multiple of 8 up to NaiveRing::most_bytes, in pinned memory, one writer each way, one warp. No other
/// kernel may live on the device. Throws EngineUnavailable, Error.
Row measure_naive_ring(const Plan& plan, uint32_t size);

/// Its kernel, as compile_raw_kernel.
cuda::CompiledKernel compile_naive_ring_kernel(int architecture);
#endif

}  // namespace gyre::bench
