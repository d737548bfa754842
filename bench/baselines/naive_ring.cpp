#include "baselines/naive_ring.hpp"

#include <fmt/format.h>
#include <gyre/bridge/cuda/pinned.hpp>

#include <cstring>
#include <gyre_bench_kernels_sources.hpp>

#include "affinity.hpp"
#include "baselines/bare_run.hpp"
#include "echo_message.hpp"

namespace gyre::bench {

cuda::CompiledKernel compile_naive_ring_kernel(int architecture) {
  return cuda::compile_text("#include <bench/baselines/naive_ring_kernel.hpp>\n", "gyre::bench::naive_echo",
                            architecture,
                            {fmt::format("--gpu-architecture=sm_{}", architecture), "--std=c++20"},
                            gyre_bench_kernels::sources.files);
}

Row measure_naive_ring(const Plan& plan, uint32_t size) {
  Row row{.name = "naive-ring", .transport = "pinned", .size = size, .wait = "spin"};
  row.remark = "a number behind each payload, acquire and release";
  EchoMessage message(fmt::format("naive-ring at {} bytes", size), size / 8);
  std::vector<uint64_t> got(size / 8);
  CudaKernel kernel(plan.options.device,
                    [](int architecture) { return compile_naive_ring_kernel(architecture); });
  cuda::PinnedRegion memory(kernel.context(), sizeof(NaiveRings), sizeof(NaiveRings));
  auto& rings = *static_cast<NaiveRings*>(memory.host_address());
  CUdeviceptr on_device = memory.device_address();
  void* arguments[] = {&on_device, &size};
  kernel.launch(32, arguments);
  BareEnd end(
      kernel, "naive-ring", [&] { Memory::store_release(rings.command, 1); }, [&] { memory.leak(); });
  BareWait wait(kernel, plan.options.timeout);
  uint64_t number = 0;
  const Pinned here(pthread_self(), plan.own_cpu);
  row.record(measure(
      plan, [&] { message.next(); },
      [&] {
        const uint32_t slot = uint32_t(++number) % NaiveRing::slots;
        std::memcpy(rings.request.payload[slot], message.words().data(), size);
        Memory::store_release(rings.request.number, number);
        while (Memory::load_acquire(rings.reply.number) < number) {
          wait.poll([&] { return message.name(); });
        }
        wait.reset();
        std::memcpy(got.data(), rings.reply.payload[slot], size);
        message.expect(got);
      }));
  end.end();
  return row;
}

}  // namespace gyre::bench
