// gyre-bench soak on the GPU: one warp a worker. NVRTC only.
#pragma once

#include <bench/baselines/raw_kernel.hpp>
#include <bench/soak_echo.hpp>

namespace gyre::bench {

/// A worker a block of one warp.
__global__ void __launch_bounds__(32) soak_kernel(RawRings rings) {
  __shared__ uint32_t payload[most_soak_words];
  const uint32_t worker = blockIdx.x;
  soak_echo<Memory>(Warp{}, rings.request(worker, 0), rings.reply(worker, 0),
                    rings.line_of(worker).h2d_credit, rings.shape, payload,
                    [&](uint32_t empty_polls) { return shall_end(rings, worker, empty_polls); });
}

}  // namespace gyre::bench
