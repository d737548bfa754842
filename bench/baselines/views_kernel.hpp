// gyre-bench views on the GPU: one warp, messages in shared memory, as a worker has them. Cycles by clock64.
#pragma once

#include <bench/views_work.hpp>

namespace gyre::bench {

/// Times `count` messages, one after another; `samples`: a number of cycles each. `request`: request_bytes
/// bytes, at most 1 KiB. `response`: 1 KiB, gets the last message's. All in mapped memory. 32 threads.
template <ViewsWork work>
__global__ void __launch_bounds__(32) views_kernel(uint64_t* samples, uint32_t count, const uint64_t* request,
                                                   uint32_t request_bytes, uint64_t* response) {
  constexpr uint32_t words = 128;
  __shared__ alignas(16) uint64_t in[words], out[words];
  const Context ctx(0, true, worker_shared());
  for (uint32_t i = threadIdx.x; i < words; i += 32) in[i] = i < request_bytes / 8 ? request[i] : 0;
  for (uint32_t n = 0; n < count; ++n) {
    for (uint32_t i = threadIdx.x; i < words; i += 32) out[i] = 0;
    __syncwarp();
    asm volatile("" : : : "memory");
    const uint64_t begin = uint64_t(clock64());
    asm volatile("" : : : "memory");
    do_views_work<work>(ctx, in, request_bytes, out, sizeof out);
    __syncwarp();
    asm volatile("" : : : "memory");
    const uint64_t end = uint64_t(clock64());
    if (threadIdx.x == 0) samples[n] = end - begin;
  }
  for (uint32_t i = threadIdx.x; i < words; i += 32) response[i] = out[i];
}

}  // namespace gyre::bench
