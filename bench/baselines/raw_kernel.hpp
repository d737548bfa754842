// The bare echo kernel: the packets of a Gyre message through the rings of a Gyre worker, and nothing else.
// NVRTC only.
#pragma once

#include <gyre/bridge/region.hpp>

#if !defined(__CUDACC_RTC__)
#error "raw_kernel.hpp is compiled by NVRTC"
#endif

namespace gyre::bench {

/// Echoes messages of `packets` packets, at most 32 * packets_a_lane, from worker 0's H2D ring to its D2H
/// ring. One warp. Ends when the command line's word is not `run`, and by itself after some seconds
/// without a message: most_empty_polls polls of about a microsecond.
template <uint32_t packets_a_lane>
__global__ void __launch_bounds__(32) raw_echo(void* region, RegionLayout layout, uint32_t packets) {
  constexpr uint32_t polls_between_commands = 256;
  constexpr uint32_t most_empty_polls = 1u << 22;

  const Bridge bridge = Bridge::of(region, layout, 0);
  const uint32_t lane = Warp::rank();
  for (uint64_t ticket = 0;; ++ticket) {
    const Packet* const request = bridge.h2d + layout.shape.first_packet(ticket);
    Packet* const reply = bridge.d2h + layout.shape.first_packet(ticket);
    const uint32_t stamp = layout.shape.stamp(ticket);
    Packet held[packets_a_lane];
    for (uint32_t empty_polls = 0;;) {
      bool whole = true;
#pragma unroll
      for (uint32_t i = 0; i < packets_a_lane; ++i) {
        const uint32_t k = lane + 32 * i;
        if (k >= packets) continue;
        held[i] = Memory::load(request[k]);
        whole = whole && held[i].stamp == stamp;
      }
      if (Warp::all(whole)) break;
      ++empty_polls;
      if (empty_polls % polls_between_commands != 0) continue;
      const uint32_t command = Warp::broadcast(uint32_t(Memory::load_relaxed(bridge.command_line->command)));
      if (command != uint32_t(Command::run) || empty_polls >= most_empty_polls) return;
    }
#pragma unroll
    for (uint32_t i = 0; i < packets_a_lane; ++i) {
      const uint32_t k = lane + 32 * i;
      if (k < packets) Memory::store(reply[k], held[i]);
    }
  }
}

}  // namespace gyre::bench
