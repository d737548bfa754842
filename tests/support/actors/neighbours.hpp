// A grid-scoped actor that uses cooperative groups, on both engines.
#pragma once

#include <gyre/device/context.hpp>
#include <gyre/device/parallel.hpp>
#include <support/actors/toolkit.view.hpp>

#if defined(__CUDACC_RTC__)
#include <cooperative_groups.h>
#endif

namespace gyre_toolkit {

/// Each round every thread reads what a thread far away has written in it: of another
/// block, where there are several.
struct Neighbours {
  static constexpr uint32_t scratch_bytes = 1 << 20;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Number::Reader in, view::Results::Builder out) {
    const auto grid = ctx.group();
    const uint64_t threads = grid.num_threads(), rank = grid.thread_rank();
    const auto words = ctx.scratch<uint32_t>(threads);
    if (!ctx.ok()) return;
    uint64_t mine = 0;
    for (uint32_t round = 0; round < in.getValue(); ++round) {
      words[rank] = round + uint32_t(rank);
      grid.sync();
      mine += words[(rank + threads / 2) % threads];
      grid.sync();
    }
    out.setSum(gyre::sum(ctx, mine));
    out.setThreads(threads);
  }
};

}  // namespace gyre_toolkit
