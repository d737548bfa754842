// The bare kernels: the packets of a Gyre message through rings of the same shape, and nothing else. NVRTC
// only.
#pragma once

#include <bench/baselines/raw_rings.hpp>
#include <gyre/device/read/local_slices.hpp>

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

/// Where the slots of the block's worker lie from now on, as Gyre's worker chooses it, once the host was
/// told. Collective over the block.
__device__ inline SlotPages choose_slot_pages(const RawRings& rings, uint32_t worker) {
  __shared__ uint64_t second;
  if (threadIdx.x < Warp::size()) {
    const uint64_t chosen = nearer_pages(rings.request(worker, 0), rings.shape);
    if (threadIdx.x == 0) {
      second = chosen;
      WorkerLine& line = rings.line_of(worker);
      Memory::store_relaxed(line.slot_pages, second);
      Memory::store_release(line.started, 1);
    }
  }
  __syncthreads();
  return {rings.shape, second};
}

/// How the polling warps of one block share its messages: whoever sees what is next claims it. One of each
/// thread's; `answered` is the block's.
template <uint32_t pollers>
class Pollers {
 public:
  /// Collective over the block. Each warp begins a part of a poll after the one before.
  __device__ explicit Pollers(unsigned long long& answered) : answered_(&answered) {
    if constexpr (pollers > 1) {
      constexpr long long poll = 2000;  // cycles: one of pinned memory takes 1.1 µs on an H200
      if (threadIdx.x == 0) answered = 0;
      __syncthreads();
      const long long begin = clock64();
      while (clock64() - begin < poll / pollers * (threadIdx.x / 32)) {
      }
    }
  }
  /// Claims the `found` messages from `ticket` on, none too, for the calling warp: true if they are its to
  /// answer. Else other warps answered some meanwhile, and `ticket` is what comes after those. Collective
  /// over the warp.
  __device__ bool claim(uint64_t& ticket, uint32_t found) const {
    if constexpr (pollers > 1) {
      using Word = unsigned long long;
      Word next = 0;
      if (Warp::rank() == 0) {
        next = found != 0 ? atomicCAS(answered_, Word(ticket), Word(ticket) + found)
                          : *static_cast<volatile Word*>(answered_);
      }
      next = __shfl_sync(0xffffffffu, next, 0);
      if (next != ticket) {
        ticket = next;
        return false;
      }
    }
    return true;
  }

 private:
  unsigned long long* answered_;  // tickets
};

/// Echoes messages of `packets` packets, at most 32 * packets_a_lane. A worker a block; its `pollers` warps
/// look for the same message, each a part of a poll after the other, and the first to see it answers.
/// `near_pages`: its slots lie as choose_slot_pages() says; else its ring is in one piece.
template <uint32_t packets_a_lane, uint32_t pollers, bool near_pages>
__global__ void __launch_bounds__(32 * pollers) raw_echo(RawRings rings, uint32_t packets) {
  __shared__ unsigned long long answered;
  const uint32_t lane = Warp::rank(), worker = blockIdx.x;
  SlotPages pages;
  if constexpr (near_pages) pages = choose_slot_pages(rings, worker);
  const Pollers<pollers> others(answered);
  uint32_t empty_polls = 0;
  for (uint64_t ticket = 0;;) {
    const Packet* const request = rings.request(worker, ticket, pages);
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
    if (!others.claim(ticket, whole ? 1 : 0)) {
      empty_polls = 0;
      continue;
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

/// Echoes as many messages a poll as it finds, for throughput: each load of a warp covers as many slots as
/// 32 packets are, and it issues as many loads at once, up to `most_loads`, as the last poll's messages
/// needed, and one. `packets` a message, at most 32. Workers and pollers as for raw_echo.
template <uint32_t most_loads, uint32_t pollers>
__global__ void __launch_bounds__(32 * pollers) raw_stream(RawRings rings, uint32_t packets) {
  __shared__ unsigned long long answered;
  const Pollers<pollers> others(answered);
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
#pragma unroll
    for (uint32_t i = 0; i < most_loads; ++i) {
      if (i >= loads || found != i * slots_a_load) continue;
      const bool whole = used && held[i].stamp == rings.shape.stamp(ticket + i * slots_a_load + part);
      // Messages up to the first lane without its packet are whole.
      const uint32_t missing = __ballot_sync(0xffffffffu, used && !whole);
      found += missing == 0 ? slots_a_load : uint32_t(__ffs(int(missing)) - 1) / packets;
    }
    if (!others.claim(ticket, found)) {
      empty_polls = 0;
      continue;
    }
    if (found == 0) {
      loads = 1;
      if (shall_end(rings, worker, ++empty_polls)) return;
      continue;
    }
#pragma unroll
    for (uint32_t i = 0; i < most_loads; ++i) {
      const uint32_t message = i * slots_a_load + part;
      if (used && message < found) Memory::store(rings.reply(worker, ticket + message)[k], held[i]);
    }
    ticket += found;
    empty_polls = 0;
    loads = (found + slots_a_load - 1) / slots_a_load + 1;
    if (loads > most_loads) loads = most_loads;
  }
}

}  // namespace gyre::bench
