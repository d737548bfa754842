// Which pages of a GPU's memory the multiprocessor that looks at them is near to.
#pragma once

#include <gyre/bridge/slot_pages.hpp>

namespace gyre {

#if defined(__CUDACC_RTC__)
/// Ticks that an atomic operation on a stamp in the GPU's memory takes, which changes nothing, in the polling
/// thread of rank 0. It is done in the part of the L2 cache that the memory belongs to; a load may find what
/// the other part has of it. For memory that is zero, as rings are before a worker starts. Collective over
/// PollGroup.
__device__ inline uint32_t ticks_to_reach(Packet& packet) {
  uint32_t began, stamp, ended;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(began) : : "memory");
  asm volatile(
      "{ .reg .pred p; setp.eq.u32 p, %2, 0; mov.u32 %0, 0; @p atom.relaxed.gpu.global.or.b32 %0, [%1], 0; }"
      : "=r"(stamp)
      : "l"(&packet.stamp), "r"(PollGroup::rank())
      : "memory");
  // Not before the stamp has come: whether the clock is read at all depends on it.
  if (PollGroup::any(stamp == 0xffffffff)) return 0xffffffff;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(ended) : : "memory");
  return ended - began;
}
#else
/// A CPU's memory is as far everywhere, for all that is known here: in tests either page is the nearer one.
inline uint32_t ticks_to_reach(const Packet& packet) {
  return uint32_t(__builtin_parityll(reinterpret_cast<uintptr_t>(&packet) / SlotPages::page_bytes));
}
#endif

/// Of a ring that has SlotPages::pages(), of zeros: which of the two pages of memory each page of slots gets,
/// by how far they are from the caller, there and back at the best; as SlotPages takes it. It is right in the
/// polling thread of rank 0. Collective over PollGroup.
GYRE_DEVICE inline uint64_t nearer_pages(Packet* ring, const RingShape& shape) {
  constexpr uint32_t samples = 4;
  const auto distance = [ring](uint32_t page, uint32_t second) {
    uint32_t least = 0xffffffff;
    for (uint32_t i = 0; i < samples; ++i) {
      const uint32_t ticks = ticks_to_reach(ring[SlotPages::candidate(page, second)]);
      if (ticks < least) least = ticks;
    }
    return least;
  };
  uint64_t second = 0;
  for (uint32_t page = 0; page < SlotPages::pages(shape); ++page)
    second |= uint64_t(distance(page, 1) < distance(page, 0)) << page;
  return second;
}

}  // namespace gyre
