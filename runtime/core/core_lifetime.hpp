// How long a Core lives: as long as its shares, and then as long as calls that somebody still holds.
#pragma once

#include <gyre/runtime/calls/thread_number.hpp>
#include <gyre/runtime/core/core.hpp>
#include <gyre/runtime/system/asymmetric_fence.hpp>

#include <array>
#include <atomic>
#include <memory>

namespace gyre::detail {

/// A Core with shares: of a Runtime, its clients, its buffers and whoever else does more than hold calls.
/// Calls that somebody holds keep it without a share: futures and replies come and go by the million a
/// second, and a count of them would be written by every thread or, for each thread apart, by two locked
/// instructions a call. Throws what Core's constructor throws, and std::bad_alloc.
std::shared_ptr<Core> make_core(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine);

// What a numbered thread is giving a call back to, if anything; a thread's own.
struct alignas(128) GivingBack {
  std::atomic<const Core*> core{nullptr};
};
extern constinit std::array<GivingBack, thread_numbers> giving_back;
void give_back_late(Core& core, CallId call) noexcept;

/// Gives back a call that the caller holds (CallTable::abandon). The core may be gone afterwards: where it
/// has no shares any more, the last call takes it along. Never blocks while it has some. In a child of fork()
/// the parent's core stays for good.
inline void give_back(Core& core, CallId call) noexcept {
  const uint32_t thread = thread_number();
  if (thread < thread_numbers) [[likely]] {
    // As a reader of RCU: whoever lets the core go sees the mark, or this thread sees that it is let go.
    std::atomic<const Core*>& mine = giving_back[thread].core;
    mine.store(&core, std::memory_order_release);
    asymmetric_fence_light();
    const bool kept = !core.let_go().begun.load(std::memory_order_acquire);
    if (kept) [[likely]]
      core.calls().abandon(call);
    mine.store(nullptr, std::memory_order_release);
    if (kept) [[likely]]
      return;
  }
  give_back_late(core, call);
}

}  // namespace gyre::detail
