#include <gyre/runtime/calls/teardown.hpp>
#include <gyre/runtime/core/core.hpp>
#include <gyre/runtime/system/cancellation.hpp>

#include <thread>

namespace gyre::detail {

namespace {

// Waits for the releases that may not have seen `begun`. Others may come and go meanwhile: they take a
// moment, and none of them comes twice with one call.
void wait_for_releases(const Teardown& teardown) {
  for (const ReleaseMark& mark : release_marks) {
    // Pairs with the store of null in Teardown::try_release.
    while (mark.teardown.load(std::memory_order_acquire) == &teardown) std::this_thread::yield();
  }
  // Pairs with the decrement in release_slow_path.
  while (teardown.unnumbered.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

// The destructor joins threads, which is a cancellation point.
void destroy(Core* core) noexcept {
  const CancellationDeferred deferred;
  delete core;
}

}  // namespace

constinit std::array<ReleaseMark, thread_numbers> release_marks{};

void drop_last_share(Core* core) noexcept {
  if (core->forked()) return;
  Teardown& teardown = core->teardown();
  // Pairs with the loads of `begun` in try_release, by the fences, and in release_slow_path, by seq_cst.
  teardown.begun.store(true, std::memory_order_seq_cst);
  const bool ordered = asymmetric_fence_heavy();
  wait_for_releases(teardown);
  const uint32_t held = core->calls().held();
  if (ordered && held == 0) {
    destroy(core);
    return;
  }
  // Where the system refused the fence a release may have missed `begun`: the Core is never destroyed then.
  teardown.held.store(ordered ? held : held + CallTable::max_calls, std::memory_order_relaxed);
  teardown.counted.store(true, std::memory_order_release);  // pairs with the load in release_slow_path
}

void release_slow_path(Core& core, CallId call) noexcept {
  if (core.forked()) return core.calls().abandon(call);
  Teardown& teardown = core.teardown();
  // Dekker's pattern with drop_last_share(): it sees the count, or this thread sees `begun`.
  teardown.unnumbered.fetch_add(1, std::memory_order_seq_cst);
  const bool live = !teardown.begun.load(std::memory_order_seq_cst);
  if (live) core.calls().abandon(call);
  teardown.unnumbered.fetch_sub(1, std::memory_order_release);  // pairs with the load in wait_for_releases
  if (live) return;
  // Pairs with the store in drop_last_share.
  while (!teardown.counted.load(std::memory_order_acquire)) std::this_thread::yield();
  core.calls().abandon(call);
  // Pairs with itself: the last release sees what those before it did to the Core.
  if (teardown.held.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(&core);
}

}  // namespace gyre::detail
