#include "baselines/raw.hpp"

#include <fmt/format.h>

#include <gyre_bench_kernels_sources.hpp>

#include "affinity.hpp"
#include "baselines/bare_run.hpp"
#include "baselines/raw_memory.hpp"
#include "echo_message.hpp"

namespace gyre::bench {

namespace {

cuda::CompiledKernel compile(int architecture, const std::string& kernel) {
  return cuda::compile_text("#include <bench/baselines/raw_kernel.hpp>\n", kernel, architecture,
                            {fmt::format("--gpu-architecture=sm_{}", architecture), "--std=c++20"},
                            gyre_bench_kernels::sources.files);
}

}  // namespace

cuda::CompiledKernel compile_raw_kernel(int architecture, uint32_t size, uint32_t pollers) {
  const uint32_t packets_a_lane = (packets_for(size) + 31) / 32;
  return compile(architecture, fmt::format("gyre::bench::raw_echo<{}u, {}u>", packets_a_lane, pollers));
}

cuda::CompiledKernel compile_raw_stream_kernel(int architecture, uint32_t pollers) {
  return compile(architecture, fmt::format("gyre::bench::raw_stream<4u, {}u>", pollers));
}

Row measure_raw(const Plan& plan, uint32_t size) {
  const Options& options = plan.options;
  uint32_t packets = packets_for(size);
  Row row{.name = "raw", .size = size, .wait = "spin", .workers = options.workers};
  row.remark = fmt::format("{} packets of 16 bytes, {} polling warp{}", packets, plan.pollers,
                           plan.pollers == 1 ? "" : "s");
  // The envelope's bytes travel too: what lies in them does not matter to the bus.
  const size_t words = (sizeof(Envelope) + size) / sizeof(uint64_t);
  EchoMessage message(fmt::format("raw at {} bytes", size), words);
  std::vector<uint64_t> got(words + 2);

  CudaKernel kernel(options.device,
                    [&](int architecture) { return compile_raw_kernel(architecture, size, plan.pollers); });
  RawMemory memory(kernel.context(), options.transport, options.workers, options.ring_shape(), packets);
  row.transport = name(memory.transport());
  RawRings rings = memory.on_device();
  void* arguments[] = {&rings, &packets};
  kernel.launch(32 * plan.pollers, arguments, options.workers);
  BareEnd end(
      kernel, "raw", [&] { memory.command_stop(); }, [&] { memory.leak(); });
  BareWait wait(kernel, options.timeout);
  uint64_t ticket = 0;
  const Pinned here(pthread_self(), plan.own_cpu);
  row.record(measure(
      plan, [&] { message.next(); },
      [&] {
        memory.send(0, ticket, message.words().data());
        while (!memory.try_receive(0, ticket, got.data())) wait.poll([&] { return message.name(); });
        wait.reset();
        message.expect(got);
        ++ticket;
      }));
  end.end();
  return row;
}

}  // namespace gyre::bench
