// An actor that uses tensor cores.
#pragma once

#include <gyre/device/context.hpp>
#include <support/actors/toolkit.view.hpp>

#if defined(__CUDACC_RTC__)
#include <cuda_fp16.h>
#include <mma.h>
#endif

namespace gyre_toolkit {

/// The product of two matrices of 16 × 16 elements, each row by row.
struct Matrices {
  static constexpr bool cuda_only = true;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Pair::Reader in, view::Product::Builder out)
#if defined(__CUDACC_RTC__)
  {
    namespace wmma = nvcuda::wmma;
    constexpr uint32_t side = 16, elements = side * side;
    alignas(32) static __shared__ __half a[elements], b[elements];
    alignas(32) static __shared__ float product[elements];
    const auto rows = in.getA(), others = in.getB();
    const auto result = out.initValues(elements);
    for (uint32_t i = ctx.rank(); i < elements; i += ctx.size()) {
      a[i] = __float2half(rows[i]);
      b[i] = __float2half(others[i]);
    }
    ctx.sync();
    if (ctx.rank() < 32) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
      wmma::fill_fragment(sums, 0.0f);
      wmma::load_matrix_sync(left, a, side);
      wmma::load_matrix_sync(right, b, side);
      wmma::mma_sync(sums, left, right, sums);
      wmma::store_matrix_sync(product, sums, side, wmma::mem_row_major);
    }
    ctx.sync();
    for (uint32_t i = ctx.rank(); i < elements; i += ctx.size()) result.set(i, product[i]);
  }
#else
      ;
#endif
};

}  // namespace gyre_toolkit
