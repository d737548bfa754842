// The bare kernels: the packets of a Gyre message through rings of the same shape, and nothing else. NVRTC
// only.
#pragma once

#include <bench/baselines/raw_rings.hpp>

#if !defined(__CUDACC_RTC__)
#error "raw_kernel.hpp is compiled by NVRTC"
#endif

namespace gyre::bench {

/// When a bare kernel without messages looks whether it shall end, and when it ends by itself: after so many
/// polls of about a microsecond.
constexpr uint32_t polls_between_commands = 256;
constexpr uint32_t most_empty_polls = 1u << 25;

/// True when it shall end. Collective over the warp; `empty_polls`: since the last message.
__device__ inline bool shall_end(const RawRings& rings, uint32_t worker, uint32_t empty_polls) {
  if (empty_polls % polls_between_commands != 0) return false;
  return Warp::broadcast(uint32_t(Memory::load_relaxed(rings.command_word(worker)))) != 0 ||
         empty_polls >= most_empty_polls;
}

/// Echoes messages of `packets` packets, at most 32 * packets_a_lane. A worker a block; its `pollers` warps
/// look for the same message, each half a poll after the other, and the first to see it answers.
template <uint32_t packets_a_lane, uint32_t pollers>
__global__ void __launch_bounds__(32 * pollers) raw_echo(RawRings rings, uint32_t packets) {
  constexpr long long half_a_poll = 1000;  // cycles; a poll of pinned memory takes 1.1 µs on an H200
  __shared__ unsigned long long answered;  // tickets

  const uint32_t lane = Warp::rank(), worker = blockIdx.x;
  if constexpr (pollers > 1) {
    if (threadIdx.x == 0) answered = 0;
    __syncthreads();
    const long long begin = clock64();
    while (clock64() - begin < half_a_poll * (threadIdx.x / 32)) {
    }
  }
  uint32_t empty_polls = 0;
  for (uint64_t ticket = 0;;) {
    const Packet* const request = rings.request(worker, ticket);
    const uint32_t stamp = rings.shape.stamp(ticket);
    Packet held[packets_a_lane];
    bool whole = true;
#pragma unroll
    for (uint32_t i = 0; i < packets_a_lane; ++i) {
      const uint32_t k = lane + 32 * i;
      if (k >= packets) continue;
      held[i] = Memory::load(request[k]);
      whole = whole && held[i].stamp == stamp;
    }
    whole = Warp::all(whole);
    if constexpr (pollers > 1) {
      // Lane 0 claims for its warp; a warp that comes second goes on behind what was answered.
      unsigned long long next = 0;
      if (lane == 0) {
        next = whole ? atomicCAS(&answered, (unsigned long long)ticket, (unsigned long long)ticket + 1)
                     : *(volatile unsigned long long*)&answered;
      }
      next = __shfl_sync(0xffffffffu, next, 0);
      if (next != ticket) {
        ticket = next;
        empty_polls = 0;
        continue;
      }
    }
    if (!whole) {
      if (shall_end(rings, worker, ++empty_polls)) return;
      continue;
    }
    Packet* const reply = rings.reply(worker, ticket);
#pragma unroll
    for (uint32_t i = 0; i < packets_a_lane; ++i) {
      const uint32_t k = lane + 32 * i;
      if (k < packets) Memory::store(reply[k], held[i]);
    }
    empty_polls = 0;
    ++ticket;
  }
}

/// Echoes as many messages a poll as it finds, for throughput: each load of the warp covers as many slots as
/// 32 packets are, and it issues as many loads at once, up to `most_loads`, as the last poll's messages
/// needed, and one. `packets` a message, at most 32. A worker a block of one warp.
template <uint32_t most_loads>
__global__ void __launch_bounds__(32) raw_stream(RawRings rings, uint32_t packets) {
  const uint32_t lane = Warp::rank(), worker = blockIdx.x;
  const uint32_t slots_a_load = 32 / packets;
  const uint32_t part = lane / packets,
                 k = lane % packets;  // this lane's slot of each load, and packet in it
  const bool used = part < slots_a_load;
  uint32_t empty_polls = 0, loads = 1;
  for (uint64_t ticket = 0;;) {
    Packet held[most_loads];
#pragma unroll
    for (uint32_t i = 0; i < most_loads; ++i) {
      if (i < loads && used) {
        held[i] = Memory::load(rings.request(worker, ticket + i * slots_a_load + part)[k]);
      }
    }
    uint32_t found = 0;
    bool going_on = true;
#pragma unroll
    for (uint32_t i = 0; i < most_loads; ++i) {
      if (i >= loads || !going_on) continue;
      const uint64_t mine = ticket + i * slots_a_load + part;
      const bool whole = used && held[i].stamp == rings.shape.stamp(mine);
      // Messages up to the first lane without its packet are whole.
      const uint32_t missing = __ballot_sync(0xffffffffu, used && !whole);
      const uint32_t here = missing == 0 ? slots_a_load : (__ffs(int(missing)) - 1) / packets;
      if (used && part < here) Memory::store(rings.reply(worker, mine)[k], held[i]);
      found += here;
      going_on = here == slots_a_load;
    }
    ticket += found;
    if (found == 0) {
      loads = 1;
      if (shall_end(rings, worker, ++empty_polls)) return;
      continue;
    }
    empty_polls = 0;
    loads = (found + slots_a_load - 1) / slots_a_load + 1;
    if (loads > most_loads) loads = most_loads;
  }
}

}  // namespace gyre::bench
