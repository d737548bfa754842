// fork(): a child has the parent's memory, but none of its threads, and no CUDA.
#pragma once

#include <atomic>
#include <cstdint>

namespace gyre {

namespace detail {

/// How many fork()s lie between the first process and this one.
extern constinit std::atomic<uint32_t> fork_generation;

/// While one lives, fork() on another thread waits, at most 10 s: a child would find what this thread was at
/// half done for good, and its mutexes locked. For what a process has once: libraries, caches, the handlers
/// of signals. Blocks while another thread is in fork(). May be nested. Not for the message path.
class ForkDeferred {
 public:
  ForkDeferred() noexcept;
  ~ForkDeferred();
  ForkDeferred(const ForkDeferred&) = delete;
  ForkDeferred& operator=(const ForkDeferred&) = delete;
};

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
