// fork(): a child has the parent's memory, but none of its threads, and no CUDA.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace gyre {

namespace detail {
/// How many fork()s lie between the first process and this one.
inline std::atomic<uint32_t> fork_generation{0};
inline const int fork_handler_installed =
    pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
}  // namespace detail

/// Knows the process that it was made in. Costs one load to ask; any thread. Children of vfork() and
/// posix_spawn() count as that process: they may do nothing but exec.
class ForkGuard {
 public:
  /// True in a child, forked since this was made.
  bool forked() const noexcept { return detail::fork_generation.load(std::memory_order_relaxed) != made_in_; }

 private:
  uint32_t made_in_ = detail::fork_generation.load(std::memory_order_relaxed);
};

}  // namespace gyre
