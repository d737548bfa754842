// Cooperative groups of one thread: what handlers see of them on the CPU engine.
#include <gyre/device/group_of_one.hpp>

#include "support/catch.hpp"

namespace cg = cooperative_groups;

TEST_CASE("a group of one thread is a block, a grid and any tile, and its values are its own") {
  const cg::thread_block block = cg::this_thread_block();
  const cg::grid_group grid = cg::this_grid();
  const auto tile = cg::tiled_partition<16>(block);
  const auto part = cg::tiled_partition<4>(tile);
  CHECK(block.num_threads() + grid.num_threads() + tile.num_threads() + part.num_threads() == 4);
  CHECK(block.thread_rank() + grid.thread_rank() + tile.meta_group_rank() + part.thread_rank() == 0);
  CHECK(tile.meta_group_size() == 1);
  CHECK(cg::reduce(tile, 7, cg::plus<int>()) == 7);
  CHECK(cg::reduce(cg::coalesced_threads(), 7.5f, cg::greater<float>()) == 7.5f);
  CHECK(cg::inclusive_scan(part, 7) == 7);
  CHECK(cg::exclusive_scan(part, 7) == 0);
  CHECK(cg::exclusive_scan(part, 7u, cg::plus<unsigned>()) == 0);
  CHECK(tile.shfl(7, 0) + tile.shfl_up(7, 1) + tile.shfl_down(7, 1) + tile.shfl_xor(7, 1) == 28);
  CHECK((tile.any(2) == 1 && tile.all(0) == 0 && tile.ballot(2) == 1 && tile.match_any(9) == 1));
  CHECK(cg::less<int>()(3, 4) + cg::bit_and<int>()(6, 3) + cg::bit_or<int>()(6, 3) +
            cg::bit_xor<int>()(6, 3) ==
        3 + 2 + 7 + 5);
}

TEST_CASE("a group of one thread copies, waits and elects itself") {
  const cg::thread_block block = cg::this_thread_block();
  const int from[] = {1, 2, 3};
  int to[3] = {};
  cg::memcpy_async(block, to, from, sizeof from);
  cg::wait(block);
  CHECK((to[0] == 1 && to[1] == 2 && to[2] == 3));
  int called = 0;
  cg::invoke_one(
      cg::binary_partition(cg::labeled_partition(block, 3), true), [&](int n) { called += n; }, 5);
  CHECK(called == 5);
  block.sync();
  cg::sync(block);
}
