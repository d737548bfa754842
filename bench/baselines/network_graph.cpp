#include "baselines/network_graph.hpp"

#include <fmt/format.h>
#include <gyre/bridge/cuda/pinned.hpp>
#include <inference_sources.hpp>

#include <algorithm>

#include "baselines/graph.hpp"
#include "network.hpp"

namespace gyre::bench {

namespace {

using inference::Mlp;

// The actor's layers, in the actor's order.
constexpr const char* kernel_text = R"(#include <inference/mlp.hpp>
using inference::Mlp;
__global__ void __launch_bounds__(GYRE_BLOCK) network_kernel(const float* features, const float* parameters,
                                                             float* scores, unsigned rows) {
  __shared__ alignas(16) float x[Mlp::most_rows * Mlp::features];
  __shared__ alignas(16) float y[Mlp::most_rows * Mlp::first_units];
  __shared__ alignas(16) float z[Mlp::most_rows * Mlp::second_units];
  const Mlp::First first(parameters);
  const Mlp::Second second(parameters + Mlp::First::parameters);
  const Mlp::Third third(parameters + Mlp::First::parameters + Mlp::Second::parameters);
  for (unsigned i = threadIdx.x; i < rows * Mlp::features; i += GYRE_BLOCK) x[i] = features[i];
  __syncthreads();
  first.apply(x, rows, [&](unsigned row, unsigned unit, float value) {
    y[row * Mlp::first_units + unit] = inference::relu(value);
  });
  __syncthreads();
  second.apply(y, rows, [&](unsigned row, unsigned unit, float value) {
    z[row * Mlp::second_units + unit] = inference::relu(value);
  });
  __syncthreads();
  third.apply(z, rows, [&](unsigned row, unsigned score, float value) {
    scores[row * Mlp::scores + score] = value;
  });
}
)";

}  // namespace

cuda::CompiledKernel compile_network_kernel(int architecture, uint32_t threads) {
  return cuda::compile_text(kernel_text, "network_kernel", architecture,
                            {fmt::format("--gpu-architecture=sm_{}", architecture), "--std=c++20",
                             fmt::format("-DGYRE_BLOCK={}", threads)},
                            inference::sources.files);
}

struct NetworkGraph::Parts {
  Parts(int device, std::span<const float> weights, uint32_t rows_in, uint32_t threads)
      : rows(rows_in),
        kernel(device, [threads](int architecture) { return compile_network_kernel(architecture, threads); }),
        parameters(kernel, weights.size_bytes()),
        features(kernel, features_bytes()),
        scores(kernel, scores_bytes()),
        pinned(kernel.context(), features_bytes() + scores_bytes(), features_bytes() + scores_bytes()) {
    const cuda::Driver& driver = kernel.driver();
    kernel.check(
        driver.cuMemcpyHtoDAsync(parameters.address, weights.data(), weights.size_bytes(), kernel.stream()),
        "copying parameters in");
    kernel.synchronise();
    void* arguments[] = {&features.address, &parameters.address, &scores.address, &rows};
    graph = std::make_unique<Graph>(kernel, [&] {
      kernel.check(
          driver.cuMemcpyHtoDAsync(features.address, host_features(), features_bytes(), kernel.stream()),
          "copying features in");
      kernel.launch(threads, arguments);
      kernel.check(driver.cuMemcpyDtoHAsync(host_scores(), scores.address, scores_bytes(), kernel.stream()),
                   "copying scores out");
    });
  }

  uint32_t features_bytes() const { return rows * Mlp::features * uint32_t(sizeof(float)); }
  uint32_t scores_bytes() const { return rows * Mlp::scores * uint32_t(sizeof(float)); }
  float* host_features() { return static_cast<float*>(pinned.host_address()); }
  float* host_scores() { return host_features() + size_t(rows) * Mlp::features; }

  uint32_t rows;
  CudaKernel kernel;
  DeviceBytes parameters, features, scores;
  cuda::PinnedRegion pinned;
  std::unique_ptr<Graph> graph;
};

NetworkGraph::NetworkGraph(int device, std::span<const float> parameters, uint32_t rows, uint32_t threads)
    : parts_(std::make_unique<Parts>(device, parameters, rows, threads)) {}

NetworkGraph::~NetworkGraph() = default;

void NetworkGraph::round_trip(const NetworkMessage& message) {
  std::copy(message.features().begin(), message.features().end(), parts_->host_features());
  parts_->graph->launch();
  parts_->kernel.synchronise();
  message.expect(std::span(parts_->host_scores(), size_t(parts_->rows) * Mlp::scores));
}

}  // namespace gyre::bench
