// A dense layer, y = W x + b, computed by all threads of a block for several rows at once.
#pragma once

#include <gyre/device/platform.hpp>

namespace inference {

/// Holds a layer's parameters, spread over the threads of a block: each output has as many threads as the
/// block has for it, and each of them has a part of the output's weights in registers.
///
/// The constructor loads, apply() computes. Load all layers first: their loads then overlap. A load from L2
/// takes about 0.15 µs, and a layer that loads its own weights waits for it after the layer before.
/// gyre::multiply_add, in <gyre/device/matrix.hpp>, needs no such preparation and takes any shape.
template <uint32_t inputs, uint32_t outputs>
class Dense {
  static_assert(inputs % 4 == 0, "weights are loaded four at a time");

 public:
  static constexpr uint32_t parameters = inputs * outputs + outputs;

#if defined(__CUDACC_RTC__)
  /// Loads the parameters: the weights, output by output, and then the biases. Every thread must call it.
  /// @param there  aligned to 16 bytes
  __device__ explicit Dense(const float* there) {
    const float4* const weights = reinterpret_cast<const float4*>(there);
#pragma unroll
    for (uint32_t round = 0; round < rounds; ++round) {
      const uint32_t output = output_of(round);
      const bool is_one = output < outputs;
#pragma unroll
      for (uint32_t i = 0; i < quads; ++i)
        weights_[round][i] =
            is_one ? weights[output * (inputs / 4) + i * lanes + lane()] : float4{0, 0, 0, 0};
      bias_[round] = is_one ? there[inputs * outputs + output] : 0.0f;
    }
  }

  /// Calls store(row, output, y) for each output of each row, by one thread each. Every thread must call it.
  /// @param x     `rows` rows of inputs, aligned to 16 bytes, in memory of the block's
  template <class Store>
  __device__ void apply(const float* x, uint32_t rows, Store store) const {
    uint32_t row = 0;
    for (; row + 4 <= rows; row += 4) apply_to<4>(x, row, store);
    for (; row < rows; ++row) apply_to<1>(x, row, store);
  }

 private:
  // Sums of several rows, and four to a sum, do not wait for each other.
  template <uint32_t count, class Store>
  __device__ void apply_to(const float* x, uint32_t first_row, Store& store) const {
    const float4* const in = reinterpret_cast<const float4*>(x + first_row * inputs);
    float4 sums[count][rounds] = {};
#pragma unroll
    for (uint32_t i = 0; i < quads; ++i) {
#pragma unroll
      for (uint32_t row = 0; row < count; ++row) {
        const float4 four = in[row * (inputs / 4) + i * lanes + lane()];
#pragma unroll
        for (uint32_t round = 0; round < rounds; ++round) {
          float4& sum = sums[row][round];
          sum.x += weights_[round][i].x * four.x;
          sum.y += weights_[round][i].y * four.y;
          sum.z += weights_[round][i].z * four.z;
          sum.w += weights_[round][i].w * four.w;
        }
      }
    }
    float totals[count][rounds];
#pragma unroll
    for (uint32_t row = 0; row < count; ++row) {
#pragma unroll
      for (uint32_t round = 0; round < rounds; ++round) {
        const float4 sum = sums[row][round];
        totals[row][round] = (sum.x + sum.y) + (sum.z + sum.w);
      }
    }
#pragma unroll
    for (uint32_t other = lanes / 2; other != 0; other /= 2) {
#pragma unroll
      for (uint32_t row = 0; row < count; ++row) {
#pragma unroll
        for (uint32_t round = 0; round < rounds; ++round)
          totals[row][round] += __shfl_xor_sync(0xffffffffu, totals[row][round], int(other));
      }
    }
#pragma unroll
    for (uint32_t round = 0; round < rounds; ++round) {
      const uint32_t output = output_of(round);
      if (lane() != 0 || output >= outputs) continue;
#pragma unroll
      for (uint32_t row = 0; row < count; ++row)
        store(first_row + row, output, totals[row][round] + bias_[round]);
    }
  }

  static constexpr uint32_t threads = gyre::Block::size();
  __device__ static constexpr uint32_t lanes_of(uint32_t most) {
    uint32_t lanes = 1;
    while (2 * lanes <= most && 2 * lanes <= inputs / 4 && 2 * lanes <= 32) lanes *= 2;
    return lanes;
  }
  static constexpr uint32_t lanes = lanes_of(threads / outputs);  // threads of an output
  static constexpr uint32_t quads = (inputs / 4) / lanes;         // loads of a thread for an output
  static constexpr uint32_t outputs_at_once = threads / lanes;
  static constexpr uint32_t rounds = (outputs + outputs_at_once - 1) / outputs_at_once;
  static_assert(inputs / 4 % lanes == 0, "the threads of an output load equally much");

  __device__ static uint32_t lane() { return threadIdx.x % lanes; }
  __device__ static uint32_t output_of(uint32_t round) {
    return round * outputs_at_once + threadIdx.x / lanes;
  }

  float4 weights_[rounds][quads];
  float bias_[rounds];
#else
  explicit Dense(const float* there) : weights_(there) {}

  template <class Store>
  void apply(const float* x, uint32_t rows, Store store) const {
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t output = 0; output < outputs; ++output) {
        float sum = weights_[inputs * outputs + output];
        for (uint32_t i = 0; i < inputs; ++i) sum += weights_[output * inputs + i] * x[row * inputs + i];
        store(row, output, sum);
      }
    }
  }

 private:
  const float* weights_;
#endif
};

GYRE_DEVICE inline float relu(float x) { return x > 0 ? x : 0; }

}  // namespace inference
