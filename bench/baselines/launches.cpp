#include "baselines/launches.hpp"

#include <fmt/format.h>
#include <gyre/bridge/cuda/pinned.hpp>

#include <memory>

#include "affinity.hpp"
#include "baselines/cuda_kernel.hpp"
#include "baselines/graph.hpp"
#include "vector_message.hpp"

namespace gyre::bench {

namespace {

cuda::CompiledKernel compile(int architecture, const char* text, const char* name) {
  return cuda::compile_text(text, name, architecture, {fmt::format("--gpu-architecture=sm_{}", architecture)},
                            {});
}

// Pinned memory for a VectorMessage's two vectors and their sum, in this order.
class PinnedVectors {
 public:
  static constexpr uint32_t bytes = VectorMessage::usual_size * sizeof(float);
  static constexpr uint32_t stride = 128;  // bytes from one to the next

  explicit PinnedVectors(const cuda::Context& context) : memory_(context, 3 * stride, 3 * stride) {}

  float* host(uint32_t which) {
    return reinterpret_cast<float*>(static_cast<char*>(memory_.host_address()) + which * stride);
  }
  CUdeviceptr device(uint32_t which) const { return memory_.device_address() + which * stride; }
  void write(const VectorMessage& message) {
    for (uint32_t i = 0; i < message.size(); ++i) {
      host(0)[i] = message.a(i);
      host(1)[i] = message.b(i);
    }
  }
  void check(const VectorMessage& message) {
    const volatile float* const sum = host(2);
    for (uint32_t i = 0; i < message.size(); ++i) message.expect(i, sum[i]);
  }

 private:
  cuda::PinnedRegion memory_;
};

Row vector_row(const char* name, const char* remark) {
  Row row{.name = name, .transport = "none", .size = 2 * PinnedVectors::bytes, .wait = "driver"};
  row.remark = fmt::format("n = {}; {}", VectorMessage::usual_size, remark);
  row.work = Work::vector_add;
  return row;
}

}  // namespace

cuda::CompiledKernel compile_empty_kernel(int architecture) {
  return compile(architecture, "__global__ void empty_kernel() {}\n", "empty_kernel");
}

cuda::CompiledKernel compile_add_kernel(int architecture) {
  return compile(architecture,
                 "__global__ void add_kernel(const float* a, const float* b, float* sum, unsigned size) {\n"
                 "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "  if (i < size) sum[i] = a[i] + b[i];\n"
                 "}\n",
                 "add_kernel");
}

Row measure_launch_sync(const Plan& plan) {
  Row row{.name = "launch-sync", .transport = "none", .wait = "driver", .checked = false};
  row.remark = "empty kernel and cuStreamSynchronize: no message, so no reply to check";
  CudaKernel kernel(plan.options.device, compile_empty_kernel);
  const Pinned here(pthread_self(), plan.own_cpu);
  row.record(measure(
      plan, [] {},
      [&] {
        kernel.launch(32, nullptr);
        kernel.synchronise();
      }));
  return row;
}

Row measure_graph_sync(const Plan& plan) {
  Row row{.name = "graph-sync", .transport = "none", .wait = "driver", .checked = false};
  row.remark = "a graph of an empty kernel, and cuStreamSynchronize: no message";
  CudaKernel kernel(plan.options.device, compile_empty_kernel);
  Graph graph(kernel, [&] { kernel.launch(32, nullptr); });
  const Pinned here(pthread_self(), plan.own_cpu);
  row.record(measure(
      plan, [] {},
      [&] {
        graph.launch();
        kernel.synchronise();
      }));
  return row;
}

Row measure_launch_pinned(const Plan& plan) {
  Row row = vector_row("launch-pinned", "a launch on mapped pinned memory");
  CudaKernel kernel(plan.options.device, compile_add_kernel);
  PinnedVectors vectors(kernel.context());
  VectorMessage message("launch-pinned", VectorMessage::usual_size);
  CUdeviceptr a = vectors.device(0), b = vectors.device(1), sum = vectors.device(2);
  uint32_t size = message.size();
  void* arguments[] = {&a, &b, &sum, &size};
  const Pinned here(pthread_self(), plan.own_cpu);
  row.record(measure(
      plan, [&] { message.next(); },
      [&] {
        vectors.write(message);
        kernel.launch(32, arguments);
        kernel.synchronise();
        vectors.check(message);
      }));
  return row;
}

namespace {

// Two vectors by device memory. `make(enqueue)` is called once, before the first message; what it returns is
// called for each: it runs what enqueue() puts into the stream.
template <class Make>
Row measure_copies(const Plan& plan, Row row, Make&& make) {
  CudaKernel kernel(plan.options.device, compile_add_kernel);
  PinnedVectors vectors(kernel.context());
  DeviceBytes a(kernel, PinnedVectors::bytes), b(kernel, PinnedVectors::bytes),
      sum(kernel, PinnedVectors::bytes);
  VectorMessage message(row.name, VectorMessage::usual_size);
  uint32_t size = message.size();
  void* arguments[] = {&a.address, &b.address, &sum.address, &size};
  const cuda::Driver& driver = kernel.driver();
  const auto enqueue = [&] {
    kernel.check(driver.cuMemcpyHtoDAsync(a.address, vectors.host(0), PinnedVectors::bytes, kernel.stream()),
                 "copying a vector in");
    kernel.check(driver.cuMemcpyHtoDAsync(b.address, vectors.host(1), PinnedVectors::bytes, kernel.stream()),
                 "copying a vector in");
    kernel.launch(32, arguments);
    kernel.check(
        driver.cuMemcpyDtoHAsync(vectors.host(2), sum.address, PinnedVectors::bytes, kernel.stream()),
        "copying the sum out");
  };
  auto run = make(kernel, enqueue);
  const Pinned here(pthread_self(), plan.own_cpu);
  row.record(measure(
      plan, [&] { message.next(); },
      [&] {
        vectors.write(message);
        run();
        kernel.synchronise();
        vectors.check(message);
      }));
  return row;
}

}  // namespace

Row measure_copies_launch_sync(const Plan& plan) {
  return measure_copies(plan, vector_row("copies-launch-sync", "two copies in, a launch, a copy out"),
                        [](CudaKernel&, auto enqueue) { return enqueue; });
}

Row measure_graph_copies_sync(const Plan& plan) {
  return measure_copies(plan,
                        vector_row("graph-copies-sync", "a graph of two copies in, a kernel, a copy out"),
                        [](CudaKernel& kernel, auto enqueue) {
                          return [graph = std::make_unique<Graph>(kernel, enqueue)] { graph->launch(); };
                        });
}

}  // namespace gyre::bench
