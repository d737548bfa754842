// The kernel of gyre-bench soak, for the host.
#pragma once

#include <gyre/runtime/cuda/program.hpp>

namespace gyre::bench {

/// As compile_raw_kernel.
cuda::CompiledKernel compile_soak_kernel(int architecture);

}  // namespace gyre::bench
