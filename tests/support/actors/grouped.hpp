// Actors that use cooperative groups, on both engines.
#pragma once

#include <gyre/device/context.hpp>
#include <gyre/device/parallel.hpp>
#include <support/actors/toolkit.view.hpp>

#if defined(__CUDACC_RTC__)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#endif

namespace gyre_toolkit {

namespace cg = cooperative_groups;

/// Sums: each tile adds up its threads' part, and the tiles' sums meet in scratch memory. Prefix sums: by the
/// first tile, which carries from one part of the list to the next.
struct Grouped {
  static constexpr uint32_t scratch_bytes = 32 * sizeof(uint32_t);

  GYRE_DEVICE void on(gyre::Context& ctx, view::Numbers::Reader in, view::Results::Builder out) {
    const auto numbers = in.getValues();
    const auto group = ctx.group();
    const auto tile = cg::tiled_partition<32>(group);
    const auto sums = ctx.scratch<uint32_t>(tile.meta_group_size());
    const auto results = out.initValues(numbers.size());
    if (!ctx.ok()) return;

    uint32_t mine = 0;
    for (uint32_t i = group.thread_rank(); i < numbers.size(); i += group.num_threads()) mine += numbers[i];
    const uint32_t of_tile = cg::reduce(tile, mine, cg::plus<uint32_t>());
    if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = of_tile;
    group.sync();
    uint64_t sum = 0;
    for (uint32_t i = 0; i < tile.meta_group_size(); ++i) sum += sums[i];
    out.setSum(sum);
    out.setThreads(group.num_threads());

    if (tile.meta_group_rank() != 0) return;
    uint32_t before = 0;
    for (uint32_t first = 0; first < numbers.size(); first += tile.num_threads()) {
      const uint32_t i = first + tile.thread_rank();
      const uint32_t number = i < numbers.size() ? numbers[i] : 0;
      const uint32_t prefix = cg::inclusive_scan(tile, number, cg::plus<uint32_t>());
      if (i < numbers.size()) results.set(i, before + prefix);
      before += tile.shfl(prefix, tile.num_threads() - 1);
    }
  }
};

/// A batch of its messages has a team each.
struct Teamed {
  static constexpr bool side_by_side = true;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Number::Reader in, view::Results::Builder out) {
    const auto group = ctx.group();
    group.sync();
    const auto alone = cg::tiled_partition<1>(group);
    const uint64_t rank = cg::reduce(alone, group.thread_rank(), cg::plus<uint32_t>());
    out.setSum(in.getValue() + gyre::sum(ctx, rank));
    out.setThreads(group.num_threads());
  }
};

}  // namespace gyre_toolkit
