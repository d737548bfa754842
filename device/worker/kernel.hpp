// The ring kernel: one worker a block, or one that is the whole grid; launched once, cooperative, until
// commanded to stop. NVRTC only.
#pragma once

#include <gyre/device/worker/worker.hpp>

#if !defined(__CUDACC_RTC__)
#error "kernel.hpp is compiled by NVRTC; the CPU engine runs the same Worker from runtime/cpu/worker.hpp"
#endif

namespace gyre {

/// Waits between empty polls: an idle worker leaves the bus to others.
struct DevicePause {
  __device__ void operator()(uint32_t empty_polls) const {
    if (empty_polls > 200) __nanosleep(500);
  }
};

/// `region`: device address of an initialised region of `layout`; `inbound`: of its inbound part; `memory`:
/// the engine's own, by device addresses. Dynamic shared memory: SharedScratch, and the words of
/// Worker::message_memory() and staging_layout(); where the worker is the whole grid (GYRE_GRID) these lie in
/// `memory.scratch`.
template <class... Actors>
__global__ void __launch_bounds__(GYRE_BLOCK, 1)  // as many registers as it wants: a block's latency counts
    worker_kernel(void* region, void* inbound, RegionLayout layout, EngineMemory memory) {
#if defined(GYRE_GRID)
  static_assert(!rights_of_any<Actors...>().sends,
                "a grid-scoped actor set cannot send: its handlers take gyre::Context");
  Grid::initialise();
  const uint32_t worker = 0;
  uint32_t* const request = reinterpret_cast<uint32_t*>(memory.scratch);
#else
  const uint32_t worker = blockIdx.x;
  constexpr uint32_t scratch_bytes = SharedScratch::of<Actors...>(compares_packets).bytes();
  uint32_t* const request =
      reinterpret_cast<uint32_t*>(dynamic_shared_memory) + scratch_bytes / sizeof(uint32_t);
#endif
  const MessageMemory messages = Worker<Actors...>::message_memory(layout.shape);
  uint32_t* const response = request + messages.request_words();
  const uint32_t words =
      messages.words() + Worker<Actors...>::staging_layout(layout.shape, layout.workers).words();
  GYRE_ROLLED
  for (uint32_t i = HandlerGroup::rank(); i < words; i += HandlerGroup::size()) request[i] = 0;
  HandlerGroup::sync();

  Worker<Actors...> here(Bridge::of(region, inbound, layout, worker), memory.of_worker(worker), request,
                         response, worker_shared());
  if constexpr (rights_of_any<Actors...>().sends) {
    here.run_with_mail(DevicePause{});
  } else {
    here.run(DevicePause{});
  }
}

}  // namespace gyre
