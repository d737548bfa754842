// Kernels that several test cases look into, compiled once: each takes NVRTC seconds.
#pragma once

#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/program.hpp>

namespace gyre_test {

/// The built-in actors for compute capability 9.0, by a warp. Needs NVRTC.
inline const gyre::cuda::CompiledKernel& built_in_kernel() {
  static const gyre::cuda::CompiledKernel kernel = gyre::cuda::compile(gyre::builtin_actors(), 90, 32);
  return kernel;
}

}  // namespace gyre_test
