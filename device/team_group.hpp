// The group that ctx.group() returns: cooperative groups' own on the GPU, where the actors include them, and
// a group of one thread on the CPU.
#pragma once

#include <gyre/messages/fixed_width.hpp>

#if !defined(__CUDACC_RTC__)
#include <gyre/device/group_of_one.hpp>
#elif defined(GYRE_COOPERATIVE_GROUPS)
#include <cooperative_groups.h>
#endif

namespace gyre {

#if !defined(__CUDACC_RTC__)
constexpr of_one_thread::thread_block team_group(uint32_t, uint32_t, uint32_t) { return {}; }

#elif !defined(GYRE_COOPERATIVE_GROUPS)
template <bool included = false>
__device__ void team_group(uint32_t, uint32_t, uint32_t) {
  static_assert(included,
                "ctx.group() is cooperative groups': #include <cooperative_groups.h> in the actor's header");
}

#elif defined(GYRE_GRID)
__device__ inline cooperative_groups::grid_group team_group(uint32_t, uint32_t, uint32_t) {
  return cooperative_groups::this_grid();
}

#elif GYRE_BLOCK != 32
__device__ inline cooperative_groups::thread_block team_group(uint32_t, uint32_t, uint32_t) {
  return cooperative_groups::this_thread_block();
}

#else
/// Cooperative groups' block, of one warp, narrowed to the part of the warp that runs a handler.
class TeamGroup : public cooperative_groups::thread_block {
 public:
  __device__ TeamGroup(uint32_t rank, uint32_t size, uint32_t lanes)
      : thread_block(cooperative_groups::this_thread_block()), rank_(rank), size_(size), lanes_(lanes) {}
  __device__ uint32_t thread_rank() const { return rank_; }
  __device__ uint32_t num_threads() const { return size_; }
  __device__ uint32_t size() const { return size_; }
  __device__ void sync() const { __syncwarp(lanes_); }

 private:
  uint32_t rank_, size_, lanes_;
};
__device__ inline TeamGroup team_group(uint32_t rank, uint32_t size, uint32_t lanes) {
  return {rank, size, lanes};
}
#endif

}  // namespace gyre

#if defined(GYRE_COOPERATIVE_GROUPS) && !defined(GYRE_GRID) && GYRE_BLOCK == 32
namespace cooperative_groups {
/// Divides a team into tiles. None may be larger than the team.
template <unsigned int Size>
__device__ thread_block_tile<Size, thread_block> tiled_partition(const gyre::TeamGroup&) {
  return tiled_partition<Size>(this_thread_block());
}
}  // namespace cooperative_groups
#endif
