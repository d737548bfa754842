// The network of gyre-bench inference without Gyre: a CUDA graph a request.
#pragma once

#include <gyre/runtime/cuda/program.hpp>

#include <functional>
#include <memory>
#include <span>

#include "measure.hpp"

namespace gyre::bench {

class NetworkMessage;

/// A CUDA graph that copies a request from pinned memory to the device, computes all layers in one kernel of
/// one block, and copies the scores back; with the parameters in device memory. Belongs to the thread that
/// made it. No other kernel may live on the device that does not end.
class NetworkGraph {
 public:
  /// @param rows     of each request
  /// @param threads  of the block
  /// @throws EngineUnavailable, Error
  NetworkGraph(int device, std::span<const float> parameters, uint32_t rows, uint32_t threads);
  ~NetworkGraph();
  NetworkGraph(const NetworkGraph&) = delete;
  NetworkGraph& operator=(const NetworkGraph&) = delete;

  /// Writes the request, launches the graph, waits, and checks the scores. Throws Error.
  void round_trip(const NetworkMessage& message);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Its kernel, compiled for a compute capability: 90 is 9.0.
cuda::CompiledKernel compile_network_kernel(int architecture, uint32_t threads);

}  // namespace gyre::bench
