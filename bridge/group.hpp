// The threads that work on one packet burst together: a warp on the GPU, one thread on the CPU.
#pragma once

#include <gyre/messages/fixed_width.hpp>

namespace gyre {

/// One thread: the CPU side of every ring.
struct SingleThread {
  GYRE_DEVICE static constexpr uint32_t rank() { return 0; }
  GYRE_DEVICE static constexpr uint32_t size() { return 1; }
  /// True where `condition` holds in every thread. Collective.
  GYRE_DEVICE static constexpr bool all(bool condition) { return condition; }
  /// True where `condition` holds in any thread. Collective.
  GYRE_DEVICE static constexpr bool any(bool condition) { return condition; }
  /// Returns a mask: bit r is set if `condition` holds in the thread of rank r. Collective.
  GYRE_DEVICE static constexpr uint32_t ballot(bool condition) { return condition ? 1 : 0; }
  /// Returns the lowest rank in which `condition` does not hold. Collective.
  GYRE_DEVICE static constexpr uint32_t leading(bool condition) { return condition ? 1 : 0; }
  /// Returns the value of rank 0 in every thread. Collective.
  GYRE_DEVICE static constexpr uint32_t broadcast(uint32_t value) { return value; }
  /// Returns the value of the given rank in every thread. Collective.
  GYRE_DEVICE static constexpr uint32_t broadcast_from(uint32_t value, uint32_t) { return value; }
  /// Returns a mask: bit r is set if the thread of rank r gave the same value. Collective.
  GYRE_DEVICE static constexpr uint32_t match(uint32_t) { return 1; }
  /// Waits for all threads, and makes what each wrote to the group's own memory visible to all. Collective.
  GYRE_DEVICE static constexpr void sync() {}
};

#if defined(__CUDACC_RTC__)
/// The calling warp; all 32 lanes must take part in collective calls.
struct Warp {
  __device__ static uint32_t rank() { return threadIdx.x & 31u; }
  __device__ static constexpr uint32_t size() { return 32; }
  __device__ static bool all(bool condition) { return __all_sync(0xffffffffu, condition); }
  __device__ static bool any(bool condition) { return __any_sync(0xffffffffu, condition); }
  __device__ static uint32_t ballot(bool condition) { return __ballot_sync(0xffffffffu, condition); }
  __device__ static uint32_t leading(bool condition) {
    const uint32_t others = ballot(!condition);
    return others == 0 ? 32 : uint32_t(__ffs(int(others)) - 1);
  }
  __device__ static uint32_t broadcast(uint32_t value) { return __shfl_sync(0xffffffffu, value, 0); }
  __device__ static uint32_t broadcast_from(uint32_t value, uint32_t rank) {
    return __shfl_sync(0xffffffffu, value, int(rank));
  }
  __device__ static uint32_t match(uint32_t value) { return __match_any_sync(0xffffffffu, value); }
  __device__ static void sync() { __syncwarp(); }
};
using PollGroup = Warp;
#else
using PollGroup = SingleThread;
#endif

}  // namespace gyre
