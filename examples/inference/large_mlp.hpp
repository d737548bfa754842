// LargeMlp: a network whose layers are computed by several blocks at once, on tensor cores.
#pragma once

#include <gyre/device/context.hpp>
#include <inference/mlp.view.hpp>

#if defined(__CUDACC_RTC__)
#include <cuda_bf16.h>
#include <mma.h>
#endif

namespace inference {

#if defined(__CUDACC_RTC__)
namespace detail {

constexpr uint32_t tile = 16;  // rows, inputs and outputs that a tensor core's instruction takes

/// Returns the first multiple of 32 bytes at or behind `address`: what tensor cores load from.
template <class T>
__device__ T* aligned(T* address) {
  return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(address) + 31) / 32 * 32);
}

/// Computes a layer for 16 rows by all blocks: each takes 16 outputs at a time, and its warps share the
/// inputs. Calls store(row, output, y), by one thread each. Every thread of the grid must call it.
/// @param layer     the weights, output by output, and then the biases; aligned to 32 bytes
/// @param x         16 rows; aligned likewise
/// @param partials  shared memory: a tile of floats for each warp; aligned likewise
template <uint32_t inputs, uint32_t outputs, class Store>
__device__ void tensor_layer(const __nv_bfloat16* layer, const __nv_bfloat16* x, float* partials,
                             Store store) {
  namespace wmma = nvcuda::wmma;
  static_assert(inputs % tile == 0 && outputs % tile == 0);
  constexpr uint32_t warps = gyre::Block::size() / 32, tile_floats = tile * tile;
  const uint32_t warp = threadIdx.x / 32;
  for (uint32_t first = blockIdx.x * tile; first < outputs; first += gridDim.x * tile) {
    wmma::fragment<wmma::matrix_a, tile, tile, tile, __nv_bfloat16, wmma::row_major> rows;
    wmma::fragment<wmma::matrix_b, tile, tile, tile, __nv_bfloat16, wmma::col_major> weights;
    wmma::fragment<wmma::accumulator, tile, tile, tile, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (uint32_t input = warp * tile; input < inputs; input += warps * tile) {
      wmma::load_matrix_sync(rows, x + input, inputs);
      wmma::load_matrix_sync(weights, layer + first * inputs + input, inputs);
      wmma::mma_sync(sums, rows, weights, sums);
    }
    wmma::store_matrix_sync(partials + warp * tile_floats, sums, tile, wmma::mem_row_major);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < tile_floats; i += gyre::Block::size()) {
      const uint32_t row = i / tile, output = first + i % tile;
      float sum = __bfloat162float(layer[inputs * outputs + output]);
      for (uint32_t other = 0; other < warps; ++other) sum += partials[other * tile_floats + i];
      store(row, output, sum);
    }
    __syncthreads();
  }
}

}  // namespace detail
#endif

/// Two hidden layers with ReLU: 256 features, 512 and 512 units, 16 scores. Parameters, features and units
/// are bfloat16, sums are floats. Launch its set grid-scoped. The CPU engine does not run it.
struct LargeMlp {
  using Handles = gyre::Handles<view::UseWeights, view::InferRequest>;
  static constexpr bool cuda_only = true;

  static constexpr uint32_t features = 256, units = 512, scores = 16, most_rows = 16;
  static constexpr uint32_t first_layer = 0, second_layer = (features + 1) * units,
                            third_layer = second_layer + (units + 1) * units,
                            parameters = third_layer + (units + 1) * scores;
  static constexpr uint32_t scratch_bytes = 2 * most_rows * (features + 2 * units) + 32;
  static constexpr uint32_t shared_scratch_bytes =
      1024 / 32 * 16 * 16 * 4 + 32;  // for blocks of 1,024 threads
  static constexpr uint32_t max_reply_bytes = 8 * (1 + 1) + most_rows * scores * uint32_t(sizeof(float));

  /// Codes of Failure::code.
  enum Wrong : uint32_t {
    not_aligned = 1,  ///< the parameters do not begin at a multiple of 32 bytes
    not_whole_rows    ///< the request has not 1 to 16 rows of 256 features
  };

  gyre::StoredHandle weights;

  GYRE_DEVICE void on(gyre::Context& ctx, view::UseWeights::Reader in, view::WeightsInUse::Builder out)
#if defined(__CUDACC_RTC__)
  {
    const gyre::StoredHandle handle(in.getWeights());
    const auto there = ctx.buffer<const int16_t>(handle, parameters);
    if (there.data() != nullptr && reinterpret_cast<uintptr_t>(there.data()) % 32 != 0) ctx.fail(not_aligned);
    if (!ctx.ok()) return;
    if (ctx.rank() == 0) weights = handle;
    out.setParameters(parameters);
  }
#else
      ;
#endif

  GYRE_DEVICE void on(gyre::Context& ctx, view::InferRequest::Reader in, view::Scores::Builder out)
#if defined(__CUDACC_RTC__)
  {
    const auto rows_in = in.getFeatures();
    const uint32_t rows = rows_in.size() / features;
    if (rows == 0 || rows > most_rows || rows_in.size() % features != 0) return ctx.fail(not_whole_rows);
    const auto there = ctx.buffer<const int16_t>(weights, parameters);
    const auto* const layers = reinterpret_cast<const __nv_bfloat16*>(there.data());
    auto* const x = detail::aligned(ctx.scratch<__nv_bfloat16>(scratch_bytes / 2).data());
    auto* const y = x + most_rows * features;
    auto* const z = y + most_rows * units;
    constexpr auto in_shared = gyre::ScratchIn::shared;
    auto* const partials = detail::aligned(ctx.scratch<float, in_shared>(shared_scratch_bytes / 4).data());
    const auto result = out.initScores(rows * scores);

    for (uint32_t i = ctx.rank(); i < most_rows * features; i += ctx.size())
      x[i] = __float2bfloat16(i < rows * features ? rows_in[i] : 0.0f);
    // The barrier of the grid. All threads go on, or none: the host may free the buffer while they look it
    // up.
    if (!ctx.ok()) return;
    detail::tensor_layer<features, units>(layers + first_layer, x, partials,
                                          [&](uint32_t row, uint32_t unit, float value) {
                                            y[row * units + unit] = __float2bfloat16(value > 0 ? value : 0);
                                          });
    ctx.sync();
    detail::tensor_layer<units, units>(layers + second_layer, y, partials,
                                       [&](uint32_t row, uint32_t unit, float value) {
                                         z[row * units + unit] = __float2bfloat16(value > 0 ? value : 0);
                                       });
    ctx.sync();
    detail::tensor_layer<units, scores>(layers + third_layer, z, partials,
                                        [&](uint32_t row, uint32_t score, float value) {
                                          if (row < rows) result.set(row * scores + score, value);
                                        });
  }
#else
      ;
#endif
};

}  // namespace inference
