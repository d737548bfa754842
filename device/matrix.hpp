// Products of a matrix and a vector, by the threads that run a handler: dense layers of a neural network at
// batch 1.
//
// Neighbouring lanes share a row, 8 of them as a rule: each loads 16 bytes of it, so that a warp's load is
// whole lines of 128 bytes. A group of lanes has four rows in hand, so that a thread has several loads in
// flight. The lanes of a row add up their sums by shuffles: no barrier, no shared memory.
#pragma once

#include <gyre/device/parallel.hpp>

namespace gyre {

/// A matrix of floats, row by row, in memory that its owner keeps: a buffer's elements, or scratch memory.
struct Matrix {
  const float* elements;
  uint32_t rows;
  uint32_t columns;
};

namespace detail {

struct AsItIs {
  GYRE_DEVICE constexpr float operator()(float value) const { return value; }
};

#if defined(__CUDACC_RTC__)
/// log2 of the lanes that share a row. More than 8 lanes only where rows are few and long.
GYRE_DEVICE inline uint32_t log_lanes_a_row(uint32_t threads, uint32_t rows, uint32_t columns) {
  uint32_t log = 3;
  while (log < 5 && (rows << log) < threads && (4u << log) < columns) ++log;
  while ((1u << log) > threads) --log;
  return log;
}
/// Returns the sum of `value` over the calling thread's group of 2^log_lanes lanes.
__device__ inline float sum_of_row(float value, uint32_t log_lanes) {
  const uint32_t first = threadIdx.x % 32 >> log_lanes << log_lanes;
  const uint32_t group = (0xffffffffu >> (32 - (1u << log_lanes))) << first;
  for (uint32_t lane = (1u << log_lanes) / 2; lane != 0; lane /= 2) {
    value += __shfl_xor_sync(group, value, int(lane));
  }
  return value;
}
#else
constexpr uint32_t log_lanes_a_row(uint32_t, uint32_t, uint32_t) { return 0; }
constexpr float sum_of_row(float value, uint32_t) { return value; }
#endif

/// Four rows of a matrix, `step` rows apart, and what a lane has added up of them. Rows beyond the matrix's
/// end are not read.
class RowSums {
 public:
  static constexpr uint32_t rows = 4;

  GYRE_DEVICE RowSums(const Matrix& matrix, uint32_t first, uint32_t step) {
    for (uint32_t r = 0; r < rows; ++r) {
      const uint64_t row = first + uint64_t(r) * step;
      row_[r] = row < matrix.rows ? matrix.elements + row * matrix.columns : nullptr;
    }
  }
  /// Adds the products of 4 columns, from `column` on.
  GYRE_DEVICE void add_chunk(const float* x, uint32_t column) {
    Chunk<float, 16> loaded[rows];
    for (uint32_t r = 0; r < rows; ++r) {
      loaded[r] = row_[r] != nullptr ? Chunk<float, 16>::load(row_[r] + column) : Chunk<float, 16>{};
    }
    const auto factors = Chunk<float, 16>::load(x + column);
    for (uint32_t r = 0; r < rows; ++r) {
      for (uint32_t k = 0; k < 4; ++k) sums_[r][k] += loaded[r].elements[k] * factors.elements[k];
    }
  }
  GYRE_DEVICE void add_one(const float* x, uint32_t column) {
    for (uint32_t r = 0; r < rows; ++r) {
      if (row_[r] != nullptr) sums_[r][0] += row_[r][column] * x[column];
    }
  }
  GYRE_DEVICE bool has(uint32_t r) const { return row_[r] != nullptr; }
  GYRE_DEVICE float sum(uint32_t r) const {
    return (sums_[r][0] + sums_[r][1]) + (sums_[r][2] + sums_[r][3]);
  }

 private:
  const float* row_[rows];
  float sums_[rows][4] = {};
};

}  // namespace detail

/// Sets y[i] to finish(bias[i] + the sum of w[i][k] * x[k] over all columns k) for each row i. The threads of
/// the team share the work. Call ctx.sync() between writing `x` and this, and between this and reading `y`;
/// it has no barrier itself. Every thread must call it, with the same arguments. It loads 16 bytes at once if
/// the columns are a multiple of 4, and `w` and `x` are aligned to 16 bytes. The order of addition depends on
/// the team's size, so results may differ in their last bits between teams, and from the CPU engine's.
/// @param x       w.columns floats that every thread can read: scratch memory, best ScratchIn::shared
/// @param bias    w.rows floats; null: none
/// @param y       w.rows floats; not `x`
/// @param finish  called once per row: an activation function, for example
template <class Finish = detail::AsItIs>
GYRE_DEVICE void multiply_add(const Context& ctx, const Matrix& w, const float* x, const float* bias,
                              float* y, Finish finish = {}) {
  const uint32_t log_lanes = detail::log_lanes_a_row(ctx.size(), w.rows, w.columns), lanes = 1u << log_lanes;
  const uint32_t group = ctx.rank() >> log_lanes, groups = ctx.size() >> log_lanes;
  const uint32_t lane = ctx.rank() & (lanes - 1);
  const bool wide =
      ((reinterpret_cast<uintptr_t>(w.elements) | reinterpret_cast<uintptr_t>(x)) % 16 | w.columns % 4) == 0;
  for (uint32_t first = group; first < w.rows; first += detail::RowSums::rows * groups) {
    detail::RowSums sums(w, first, groups);
    if (wide) {
      for (uint32_t column = 4 * lane; column < w.columns; column += 4 * lanes) sums.add_chunk(x, column);
    } else {
      for (uint32_t column = lane; column < w.columns; column += lanes) sums.add_one(x, column);
    }
    for (uint32_t r = 0; r < detail::RowSums::rows; ++r) {
      const float sum = detail::sum_of_row(sums.sum(r), log_lanes);
      const uint32_t row = first + r * groups;
      if (sums.has(r) && lane == (r & (lanes - 1))) y[row] = finish(bias == nullptr ? sum : sum + bias[row]);
    }
  }
}

}  // namespace gyre
