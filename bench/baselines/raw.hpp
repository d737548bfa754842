// The floor on CUDA: the packets of a Gyre message there and back, without Gyre.
#pragma once

#include <gyre/runtime/cuda/program.hpp>

#include "measure.hpp"

namespace gyre::bench {

/// Persistent warps that echo packets: as many as a Gyre message with a body of `size` bytes takes, through
/// rings of the same shape on the plan's transport, stamped alike. As many workers as Gyre has, of which the
/// first is asked; the plan's pollers each. No envelope, no dispatch, no client API; the host spins. No other
/// kernel may live on the device. Throws EngineUnavailable, BadOptions, Error.
Row measure_raw(const Plan& plan, uint32_t size);
/// Measures the same with slots in the worker's local L2 slice, as Gyre's are over BAR: the row
/// "raw near pages". For rings that have SlotPages::pages(), over BAR.
Row measure_raw_near_pages(const Plan& plan, uint32_t size);

/// Their kernel, for messages with a body of `size` bytes and 1 or 2 `pollers` on compute capability
/// `architecture` (90: 9.0). Needs no GPU. Throws as cuda::compile_text.
cuda::CompiledKernel compile_raw_kernel(int architecture, uint32_t size, uint32_t pollers,
                                        bool near_pages = false);
/// The kernel that takes all messages a poll finds; for any number of packets up to 32.
cuda::CompiledKernel compile_raw_stream_kernel(int architecture, uint32_t pollers);

}  // namespace gyre::bench
