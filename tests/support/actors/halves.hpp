// An actor that computes with half and bfloat16 numbers.
#pragma once

#include <gyre/device/context.hpp>
#include <gyre/device/parallel.hpp>
#include <support/actors/toolkit.view.hpp>

#if defined(__CUDACC_RTC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace gyre_toolkit {

/// The dot product of two lists, in half and in bfloat16 arithmetic; a thread's part is added up in float.
struct Halves {
  static constexpr bool cuda_only = true;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Pair::Reader in, view::Product::Builder out)
#if defined(__CUDACC_RTC__)
  {
    const auto a = in.getA(), b = in.getB();
    __half half = __float2half(0);
    __nv_bfloat16 bfloat = __float2bfloat16(0);
    for (uint32_t i = ctx.rank(); i < a.size(); i += ctx.size()) {
      half = __hfma(__float2half(a[i]), __float2half(b[i]), half);
      bfloat += __float2bfloat16(a[i]) * __float2bfloat16(b[i]);
    }
    const auto products = out.initValues(2);
    products.set(0, gyre::sum(ctx, __half2float(half)));
    products.set(1, gyre::sum(ctx, __bfloat162float(bfloat)));
  }
#else
      ;
#endif
};

}  // namespace gyre_toolkit
