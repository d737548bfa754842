#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <gyre/runtime/core_lifetime.hpp>

#include <mutex>
#include <thread>

namespace gyre::detail {

namespace {

std::atomic<uint32_t> unnumbered_giving_back{0};
std::mutex let_go_mutex;  // of what is left of cores that were let go

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

// Once a process: then it is the rare side alone that pays for the order of both.
void have_membarrier() {
  static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  if (registered) must_fence.store(false, std::memory_order_relaxed);
}

// Every thread is past what it did before, as if it had a fence here.
void fence_in_all_threads() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (must_fence.load(std::memory_order_relaxed) || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
  membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);  // a child of fork(), where that is not passed on
  membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

// Whoever gave a call back without seeing that the core is let go has done so afterwards.
void wait_for_those_giving_back(const Core& core) {
  fence_in_all_threads();
  for (const GivingBack& thread : giving_back) {
    while (thread.core.load(std::memory_order_acquire) == &core) std::this_thread::yield();
  }
  while (unnumbered_giving_back.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

// The last share is gone.
void let_go(Core* core) noexcept {
  // In a forked child the threads that the marks and the mutex are about do not exist.
  if (core->forked()) {
    if (core->calls().held() == 0) delete core;
    return;
  }
  core->let_go().begun.store(true, std::memory_order_seq_cst);
  wait_for_those_giving_back(*core);
  {
    const std::lock_guard lock(let_go_mutex);
    core->let_go().held = core->calls().held();
    core->let_go().counted = true;
    if (core->let_go().held != 0) return;
  }
  delete core;
}

}  // namespace

constinit std::array<GivingBack, thread_numbers> giving_back{};
constinit std::atomic<bool> must_fence{true};

std::shared_ptr<Core> make_core(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine) {
  have_membarrier();
  return {new Core(std::move(actors), options, std::move(engine)), let_go};
}

void give_back_late(Core& core, CallId call) noexcept {
  if (core.forked()) return core.calls().abandon(call);
  unnumbered_giving_back.fetch_add(1, std::memory_order_seq_cst);
  const bool kept = !core.let_go().begun.load(std::memory_order_seq_cst);
  if (kept) core.calls().abandon(call);
  unnumbered_giving_back.fetch_sub(1, std::memory_order_release);
  if (kept) return;
  {
    const std::lock_guard lock(let_go_mutex);
    core.calls().abandon(call);
    if (!core.let_go().counted || --core.let_go().held != 0) return;
  }
  delete &core;
}

}  // namespace gyre::detail
