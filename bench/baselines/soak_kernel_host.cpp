#include "baselines/soak_kernel_host.hpp"

#include <fmt/format.h>

#include <gyre_bench_kernels_sources.hpp>

namespace gyre::bench {

cuda::CompiledKernel compile_soak_kernel(int architecture) {
  return cuda::compile_text("#include <bench/baselines/soak_kernel.hpp>\n", "gyre::bench::soak_kernel",
                            architecture,
                            {fmt::format("--gpu-architecture=sm_{}", architecture), "--std=c++20"},
                            gyre_bench_kernels::sources.files);
}

}  // namespace gyre::bench
