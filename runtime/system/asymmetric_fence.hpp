// A pair of fences of which the frequent side's is nearly free. Each side stores its own word, then loads the
// other's (Dekker's pattern); one side runs for each message, the other seldom. Like folly's
// asymmetric_thread_fence.
#pragma once

#include <atomic>

namespace gyre::detail {

/// True if the frequent side must order its own store and load, because the system has no membarrier. Set
/// before main(): relaxed, with no partner.
extern constinit std::atomic<bool> must_fence;

/// Orders the frequent side's store before its load. Pairs with asymmetric_fence_heavy().
inline void asymmetric_fence_light() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (must_fence.load(std::memory_order_relaxed)) [[unlikely]]
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// Orders the seldom side's store before its load, as if every thread of the process executed a fence. Takes
/// some microseconds, and interrupts the processors that the process runs on. Returns false if the system
/// refuses: the other side is not ordered then. Pairs with asymmetric_fence_light().
[[nodiscard]] bool asymmetric_fence_heavy() noexcept;

}  // namespace gyre::detail
