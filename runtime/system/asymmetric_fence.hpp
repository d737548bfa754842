// A pair of fences of which one costs nothing: Dekker's pattern, store one's own word, then load the other's,
// where one side runs for each message and the other seldom. As folly's asymmetric_thread_fence.
#pragma once

#include <atomic>

namespace gyre::detail {

/// Whether the frequent side must order its own store and load: where the system has no membarrier.
extern constinit std::atomic<bool> must_fence;

/// The frequent side's, between its store and its load. Pairs with asymmetric_fence_heavy().
inline void asymmetric_fence_light() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (must_fence.load(std::memory_order_relaxed)) [[unlikely]]
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// The seldom side's, between its store and its load: as if every thread of the process had a fence where it
/// is. Takes some microseconds, and interrupts the processors that the process runs on. False where the
/// system refuses it by now; then nothing is known of the other side.
[[nodiscard]] bool asymmetric_fence_heavy() noexcept;

}  // namespace gyre::detail
