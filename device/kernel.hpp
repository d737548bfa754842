// The ring kernel: one worker a block, launched once, cooperative, until commanded to stop. NVRTC only.
#pragma once

#include <gyre/device/worker_loop.hpp>

#if !defined(__CUDACC_RTC__)
#error "kernel.hpp is compiled by NVRTC; the CPU engine runs the same Worker from runtime/cpu/worker.hpp"
#endif

namespace gyre {

struct DevicePause {
  __device__ void operator()(uint32_t empty_polls) const {
    if (empty_polls > 200) __nanosleep(500);
  }
};

/// `region`: device address of an initialised region of `layout`; `memory`: the engine's own, by device
/// addresses. Dynamic shared memory: twice the slot's payload.
template <class... Actors>
__global__ void __launch_bounds__(GYRE_BLOCK)
    worker_kernel(void* region, RegionLayout layout, EngineMemory memory) {
  extern __shared__ uint4 scratch[];

  const uint32_t payload_words = layout.shape.payload_bytes() / sizeof(uint32_t);
  uint32_t* const request = reinterpret_cast<uint32_t*>(scratch);
  uint32_t* const response = request + payload_words;
  for (uint32_t i = threadIdx.x; i < 2 * payload_words; i += blockDim.x) request[i] = 0;
  __syncthreads();

  Worker<Actors...>(Bridge::of(region, layout, blockIdx.x), memory.of_worker(blockIdx.x), request, response,
                    worker_shared())
      .run(DevicePause{});
}

}  // namespace gyre
