// Which of two pages of a GPU's memory lies in the L2 slice that is local to the calling multiprocessor.
#pragma once

#include <gyre/bridge/slot_pages.hpp>

namespace gyre {

#if defined(__CUDACC_RTC__)
/// Measures how many ticks an atomic operation on `packet`'s stamp takes; it changes nothing. The operation
/// is done in the L2 slice that owns the memory, where a load may find the other slice's copy. The memory
/// must be zero, as rings are before a worker starts. Right in the polling thread of rank 0. Collective over
/// PollGroup.
__device__ inline uint32_t ticks_to_owning_slice(Packet& packet) {
  uint32_t began, stamp, ended;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(began) : : "memory");
  asm volatile(
      "{ .reg .pred p; setp.eq.u32 p, %2, 0; mov.u32 %0, 0; @p atom.relaxed.gpu.global.or.b32 %0, [%1], 0; }"
      : "=r"(stamp)
      : "l"(&packet.stamp), "r"(PollGroup::rank())
      : "memory");
  // The stamp decides whether the clock is read at all, so the clock is not read before the stamp has come.
  if (PollGroup::any(stamp == 0xffffffff)) return 0xffffffff;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(ended) : : "memory");
  return ended - began;
}
#else
/// A CPU has no such slices. Tests run this: either page may be the nearer one.
inline uint32_t ticks_to_owning_slice(const Packet& packet) {
  return uint32_t(__builtin_parityll(reinterpret_cast<uintptr_t>(&packet) / SlotPages::page_bytes));
}
#endif

/// Measures, for each page of slots, which of its two pages of memory is nearer to the caller, by the
/// shortest of some accesses.
/// @param ring  zeroed; SlotPages::pages(shape) is not 0
/// @returns     bit p: page p of the slots is nearer in the second of its two; right in the polling thread of
/// rank 0. Collective over
///              PollGroup.
GYRE_DEVICE inline uint64_t nearer_pages(Packet* ring, const RingShape& shape) {
  constexpr uint32_t samples = 4;
  const auto distance = [ring](uint32_t page, uint32_t second) {
    uint32_t least = 0xffffffff;
    for (uint32_t i = 0; i < samples; ++i) {
      const uint32_t ticks = ticks_to_owning_slice(ring[SlotPages::candidate(page, second)]);
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
