#include "baselines/launch_sync.hpp"

#include <fmt/format.h>

#include "affinity.hpp"
#include "baselines/cuda_kernel.hpp"

namespace gyre::bench {

Row measure_launch_sync(const Plan& plan) {
  Row row{.name = "launch-sync", .transport = "none", .wait = "driver", .checked = false};
  row.remark = "empty kernel and cuStreamSynchronize: no message, so no reply to check";
  CudaKernel kernel(plan.options.device, [](int architecture) {
    return cuda::compile_text("__global__ void empty_kernel() {}\n", "empty_kernel", architecture,
                              {fmt::format("--gpu-architecture=sm_{}", architecture)}, {});
  });
  const Pinned here(pthread_self(), plan.own_cpu);
  row.summary = summarise(measure(
      plan, [] {},
      [&] {
        kernel.launch(32, nullptr);
        kernel.synchronise();
      }));
  return row;
}

}  // namespace gyre::bench
