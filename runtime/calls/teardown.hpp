// How a Core ends: with its last share or, where calls are still held then, with the last of them.
#pragma once

#include <gyre/runtime/calls/call_id.hpp>
#include <gyre/runtime/calls/thread_number.hpp>
#include <gyre/runtime/system/asymmetric_fence.hpp>

#include <array>
#include <atomic>
#include <cstdint>

namespace gyre::detail {

class Core;

/// Decides which thread destroys a Core.
///
/// A Core has shares (std::shared_ptr): its Runtime, clients, buffers, and whatever else does more than hold
/// calls. Futures and replies hold calls, and keep the Core without a share: they come and go by the million
/// a second, and a count of them would be written by every thread or, for each thread apart, by two locked
/// instructions a call. So nobody counts them while shares exist. A thread that releases a call marks that,
/// as a reader of RCU does; the thread that drops the last share waits for the marks, and counts once.
///
/// | state   | entered by                 | what a release does                                      |
/// | ------- | -------------------------- | -------------------------------------------------------- |
/// | live    | construction               | abandons its call                                        |
/// | begun   | the drop of the last share | waits for `counted`, unless its mark came first          |
/// | counted | the same thread            | abandons its call; destroys the Core at the last of them |
struct Teardown {
  std::atomic<bool> begun{false};
  std::atomic<bool> counted{false};
  std::atomic<uint32_t> held{0};        // calls that keep the Core, once counted
  std::atomic<uint32_t> unnumbered{0};  // threads without a number that are releasing calls

  /// Runs `abandon()` if the state is live; false, and not run, where it is not, or the calling thread has no
  /// number. Inline: each future and reply ends here.
  template <class Abandon>
  bool try_release(Abandon&& abandon) noexcept;
};

/// The teardown of the Core that a thread with a number is releasing a call of; null where it is at none.
struct alignas(128) ReleaseMark {
  std::atomic<const Teardown*> teardown{nullptr};
};
extern constinit std::array<ReleaseMark, thread_numbers> release_marks;  // by thread number

/// Releases a call where Teardown::try_release did not. Blocks only while the last share is being dropped.
/// Destroys the Core where this was its last call.
void release_slow_path(Core& core, CallId call) noexcept;

/// Called where the last share of `core` is gone: destroys it, unless calls are held. In a child of fork()
/// the parent's core stays: what the threads that the child does not have were doing with it is unknown.
void drop_last_share(Core* core) noexcept;

template <class Abandon>
bool Teardown::try_release(Abandon&& abandon) noexcept {
  const uint32_t thread = thread_number();
  if (thread >= thread_numbers) [[unlikely]]
    return false;
  // Dekker's pattern with drop_last_share(): that thread sees the mark, or this one sees `begun`.
  std::atomic<const Teardown*>& mark = release_marks[thread].teardown;
  mark.store(this, std::memory_order_release);
  asymmetric_fence_light();  // pairs with asymmetric_fence_heavy() in drop_last_share()
  const bool live = !begun.load(std::memory_order_acquire);  // pairs with the store in drop_last_share()
  if (live) [[likely]]
    abandon();
  mark.store(nullptr, std::memory_order_release);  // pairs with the load in wait_for_releases()
  return live;
}

}  // namespace gyre::detail
