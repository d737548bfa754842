#include <gyre/runtime/core/core_lifetime.hpp>
#include <gyre/runtime/system/cancellation.hpp>

#include <thread>

namespace gyre::detail {

namespace {

// Until whoever gives a call back without having seen that the core is let go has done so. Others may come
// and go meanwhile: they take a moment, and none of them twice with one call.
void wait_for_those_giving_back(Core& core) {
  for (const GivingBack& thread : giving_back) {
    while (thread.core.load(std::memory_order_acquire) == &core) std::this_thread::yield();
  }
  while (core.let_go().unnumbered.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

// Its end joins threads: no place to be cancelled.
void destroy(Core* core) noexcept {
  const CancellationDeferred deferred;
  delete core;
}

// The last share is gone. In a child of fork() the parent's core stays: nobody knows what its threads, which
// the child does not have, were at.
void let_go(Core* core) noexcept {
  if (core->forked()) return;
  Core::LetGo& left = core->let_go();
  left.begun.store(true, std::memory_order_seq_cst);
  const bool ordered = asymmetric_fence_heavy();
  wait_for_those_giving_back(*core);
  const uint32_t held = core->calls().held();
  if (ordered && held == 0) {
    destroy(core);
    return;
  }
  // Where nothing is certain it stays.
  left.held.store(ordered ? held : held + CallTable::max_calls, std::memory_order_relaxed);
  left.counted.store(true, std::memory_order_release);
}

}  // namespace

constinit std::array<GivingBack, thread_numbers> giving_back{};

std::shared_ptr<Core> make_core(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine) {
  return {new Core(std::move(actors), options, std::move(engine)), let_go};
}

// By a thread without a number, or of a core that is let go.
void give_back_late(Core& core, CallId call) noexcept {
  if (core.forked()) return core.calls().abandon(call);
  Core::LetGo& left = core.let_go();
  left.unnumbered.fetch_add(1, std::memory_order_seq_cst);
  const bool kept = !left.begun.load(std::memory_order_seq_cst);
  if (kept) core.calls().abandon(call);
  left.unnumbered.fetch_sub(1, std::memory_order_release);
  if (kept) return;
  while (!left.counted.load(std::memory_order_acquire)) std::this_thread::yield();
  core.calls().abandon(call);
  if (left.held.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(&core);
}

}  // namespace gyre::detail
