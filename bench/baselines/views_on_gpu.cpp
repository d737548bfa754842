#include "baselines/views_on_gpu.hpp"

#include <fmt/format.h>
#include <gyre/bridge/cuda/pinned.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre_bench_kernels_sources.hpp>

#include <algorithm>

#include "baselines/cuda_kernel.hpp"

namespace gyre::bench {

namespace {
constexpr size_t response_words = 128;  // as the kernel has them
}  // namespace

cuda::CompiledKernel compile_views_kernel(int architecture, bool by_views) {
  return cuda::compile_text(
      "#include <bench/baselines/views_kernel.hpp>\n",
      fmt::format("gyre::bench::views_kernel<gyre::bench::ViewsWork::{}>",
                  by_views ? "views" : "plain_struct"),
      architecture, {fmt::format("--gpu-architecture=sm_{}", architecture), "--std=c++20", "-DGYRE_BLOCK=32"},
      gyre_bench_kernels::sources.files);
}

std::vector<uint64_t> views_cycles(int device, bool by_views, uint32_t count,
                                   std::span<const uint64_t> request, std::vector<uint64_t>& response) {
  CudaKernel kernel(device,
                    [by_views](int architecture) { return compile_views_kernel(architecture, by_views); });
  const size_t bytes = (count + response_words + request.size()) * sizeof(uint64_t);
  cuda::PinnedRegion memory(kernel.context(), bytes, bytes);
  auto* const host = static_cast<uint64_t*>(memory.host_address());
  std::copy(request.begin(), request.end(), host + count + response_words);
  CUdeviceptr samples = memory.device_address();
  CUdeviceptr response_at = samples + count * sizeof(uint64_t);
  CUdeviceptr request_at = response_at + response_words * sizeof(uint64_t);
  auto request_bytes = uint32_t(request.size_bytes());
  void* arguments[] = {&samples, &count, &request_at, &request_bytes, &response_at};
  kernel.launch(32, arguments);
  if (!kernel.wait_until_ended(kernel_end_timeout)) {
    memory.leak();
    kernel.abandon();
    throw Error(
        fmt::format("timing the views on the GPU: the kernel did not end within {} s; please report it",
                    kernel_end_timeout.count()));
  }
  kernel.check_ended();
  response.assign(host + count, host + count + response_words);
  return {host, host + count};
}

}  // namespace gyre::bench
