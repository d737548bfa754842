#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <gyre/runtime/system/asymmetric_fence.hpp>

namespace gyre::detail {

namespace {

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

constinit std::atomic<bool> must_fence{true};

namespace {
// When the program is loaded: while it has one thread this takes microseconds; with several the system waits
// for all processors, some 10 ms.
const bool membarrier_registered = [] {
  const bool done = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  if (done) must_fence.store(false, std::memory_order_relaxed);
  return done;
}();
}  // namespace

bool asymmetric_fence_heavy() noexcept {
  // Pairs with asymmetric_fence_light(): by its fence where must_fence, else by membarrier in its place.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (must_fence.load(std::memory_order_relaxed)) return true;
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return true;
  // In a child of fork(), where the registration is not passed on.
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
         membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

}  // namespace gyre::detail
