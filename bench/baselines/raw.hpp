// The floor on CUDA: the packets of a Gyre message there and back, without Gyre.
#pragma once

#include <gyre/runtime/cuda/program.hpp>

#include "measure.hpp"

namespace gyre::bench {

/// One persistent warp that echoes packets: as many as a Gyre message with a body of `size` bytes takes,
/// through pinned rings of the same shape, stamped alike. No envelope, no dispatch, no client API; the host
/// spins. No other kernel may live on the device. Throws EngineUnavailable, Error.
Row measure_raw(const Plan& plan, uint32_t size);

/// Its kernel, for messages with a body of `size` bytes on compute capability `architecture` (90: 9.0). Needs
/// no GPU. Throws as cuda::compile_text.
cuda::CompiledKernel compile_raw_kernel(int architecture, uint32_t size);

}  // namespace gyre::bench
