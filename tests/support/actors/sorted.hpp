// An actor that uses CUB and libcu++.
#pragma once

#include <gyre/device/context.hpp>
#include <support/actors/toolkit.view.hpp>

#if defined(__CUDACC_RTC__)
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cuda/std/array>
#endif

namespace gyre_toolkit {

/// Sorts up to four numbers a thread, by the block.
struct Sorted {
  static constexpr bool cuda_only = true;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Numbers::Reader in, view::Results::Builder out)
#if defined(__CUDACC_RTC__)
  {
    constexpr uint32_t each = 4;
    using Sort = cub::BlockRadixSort<uint32_t, GYRE_BLOCK, each>;
    using Reduce = cub::BlockReduce<uint64_t, GYRE_BLOCK>;
    static __shared__ union {
      typename Sort::TempStorage sort;
      typename Reduce::TempStorage reduce;
    } storage;
    const auto numbers = in.getValues();
    GYRE_CHECK(numbers.size() <= each * GYRE_BLOCK);
    const auto results = out.initValues(numbers.size());
    cuda::std::array<uint32_t, each> mine;
    uint64_t sum = 0;
    for (uint32_t k = 0; k < each; ++k) {
      const uint32_t i = ctx.rank() * each + k;
      mine[k] = i < numbers.size() ? numbers[i] : ~0u;
      sum += i < numbers.size() ? mine[k] : 0;
    }
    uint32_t(&keys)[each] = *reinterpret_cast<uint32_t(*)[each]>(mine.data());
    Sort(storage.sort).Sort(keys);
    ctx.sync();
    sum = Reduce(storage.reduce).Sum(sum);
    for (uint32_t k = 0; k < each; ++k) {
      const uint32_t i = ctx.rank() * each + k;
      if (i < numbers.size()) results.set(i, mine[k]);
    }
    if (ctx.rank() == 0) out.setSum(sum);
    out.setThreads(ctx.size());
    ctx.sync();  // the storage is free for the next message
  }
#else
      ;
#endif
};

}  // namespace gyre_toolkit
