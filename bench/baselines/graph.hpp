// CUDA graphs, and the device memory that they work on.
#pragma once

#include <fmt/format.h>

#include "baselines/cuda_kernel.hpp"

namespace gyre::bench {

/// A CUDA graph of what a kernel's stream captured, ready to be launched there.
class Graph {
 public:
  /// `enqueue()` puts the work into the kernel's stream.
  template <class Enqueue>
  Graph(CudaKernel& kernel, Enqueue&& enqueue) : kernel_(kernel) {
    const cuda::Driver& driver = kernel.driver();
    if (driver.cuStreamBeginCapture == nullptr || driver.cuStreamEndCapture == nullptr ||
        driver.cuGraphInstantiateWithFlags == nullptr || driver.cuGraphLaunch == nullptr ||
        driver.cuGraphExecDestroy == nullptr || driver.cuGraphDestroy == nullptr) {
      throw EngineUnavailable(
          "measuring CUDA graphs: the driver has no CUDA graphs; install driver 525 or later");
    }
    kernel.check(driver.cuStreamBeginCapture(kernel.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                 "capturing a launch");
    enqueue();
    kernel.check(driver.cuStreamEndCapture(kernel.stream(), &graph_), "ending the capture of a launch");
    const CUresult result = driver.cuGraphInstantiateWithFlags(&executable_, graph_, 0);
    if (result != CUDA_SUCCESS) driver.cuGraphDestroy(graph_);
    kernel.check(result, "instantiating a graph");
  }
  ~Graph() {
    kernel_.driver().cuGraphExecDestroy(executable_);
    kernel_.driver().cuGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch() {
    kernel_.check(kernel_.driver().cuGraphLaunch(executable_, kernel_.stream()), "launching a graph");
  }

 private:
  CudaKernel& kernel_;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

/// Device memory, freed with this object. No kernel may live then.
class DeviceBytes {
 public:
  DeviceBytes(CudaKernel& kernel, size_t bytes) : kernel_(kernel) {
    kernel.check(kernel.driver().cuMemAlloc(&address, bytes), fmt::format("allocating {} bytes", bytes));
  }
  ~DeviceBytes() { kernel_.driver().cuMemFree(address); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  CUdeviceptr address = 0;

 private:
  CudaKernel& kernel_;
};

}  // namespace gyre::bench
