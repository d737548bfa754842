// The naive ring: a payload, then a flag that says it is there. NVRTC only.
#pragma once

#include <bench/baselines/naive_ring.hpp>
#include <bench/baselines/raw_kernel.hpp>

namespace gyre::bench {

/// Echoes messages of `bytes` bytes, a multiple of 8: waits for the request's number, reads the payload,
/// writes it back, then the reply's number. One warp.
__global__ void __launch_bounds__(32) naive_echo(NaiveRings* rings, uint32_t bytes) {
  for (uint64_t number = 1;; ++number) {
    for (uint32_t empty_polls = 0;;) {
      uint64_t seen = 0;
      if (Warp::rank() == 0) seen = Memory::load_acquire(rings->request.number);
      if (__shfl_sync(0xffffffffu, (unsigned long long)seen, 0) >= number) break;
      if (++empty_polls % polls_between_commands != 0) continue;
      if (Warp::broadcast(uint32_t(Memory::load_relaxed(rings->command))) != 0 ||
          empty_polls >= most_empty_polls) {
        return;
      }
    }
    Warp::sync();
    const uint32_t slot = uint32_t(number) % NaiveRing::slots;
    const volatile uint64_t* const from = rings->request.payload[slot];
    volatile uint64_t* const to = rings->reply.payload[slot];
    for (uint32_t i = Warp::rank(); i < bytes / 8; i += 32) to[i] = from[i];
    Warp::sync();
    if (Warp::rank() == 0) {
      Memory::fence();
      Memory::store_release(rings->reply.number, number);
    }
  }
}

}  // namespace gyre::bench
