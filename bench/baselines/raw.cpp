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

Row measure_kernel(const Plan& plan, uint32_t size, bool near_pages) {
  const Options& options = plan.options;
  uint32_t packets = packets_for(size);
  Row row{.name = near_pages ? "raw near pages" : "raw",
          .size = size,
          .wait = "spin",
          .workers = options.workers};
  row.remark = fmt::format("{} packets of 16 bytes, {} polling warp{}{}", packets, plan.pollers,
                           plan.pollers == 1 ? "" : "s",
                           near_pages ? ", its slots in the pages near to it, as Gyre's" : "");
  // The envelope's bytes travel too: what lies in them does not matter to the bus.
  const size_t words = (sizeof(Envelope) + size) / sizeof(uint64_t);
  EchoMessage message(fmt::format("{} at {} bytes", row.name, size), words);
  std::vector<uint64_t> got(words + 2);

  CudaKernel kernel(options.device, [&](int architecture) {
    return compile_raw_kernel(architecture, size, plan.pollers, near_pages);
  });
  RawMemory memory(kernel.context(), options.transport, options.workers, options.ring_shape(), packets);
  row.transport = name(memory.transport());
  RawRings rings = memory.on_device();
  void* arguments[] = {&rings, &packets};
  kernel.launch(32 * plan.pollers, arguments, options.workers);
  BareEnd end(
      kernel, row.name, [&] { memory.command_stop(); }, [&] { memory.leak(); });
  BareWait wait(kernel, options.timeout);
  while (near_pages && !memory.take_slot_pages()) wait.poll([&] { return row.name + ": its start"; });
  wait.reset();
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

}  // namespace

cuda::CompiledKernel compile_raw_kernel(int architecture, uint32_t size, uint32_t pollers, bool near_pages) {
  const uint32_t packets_a_lane = (packets_for(size) + 31) / 32;
  return compile(architecture,
                 fmt::format("gyre::bench::raw_echo<{}u, {}u, {}>", packets_a_lane, pollers, near_pages));
}

cuda::CompiledKernel compile_raw_stream_kernel(int architecture, uint32_t pollers) {
  return compile(architecture, fmt::format("gyre::bench::raw_stream<4u, {}u>", pollers));
}

Row measure_raw(const Plan& plan, uint32_t size) { return measure_kernel(plan, size, false); }
Row measure_raw_near_pages(const Plan& plan, uint32_t size) { return measure_kernel(plan, size, true); }

}  // namespace gyre::bench
