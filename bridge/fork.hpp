// fork(): a child has the parent's memory, but none of its threads, and no CUDA.
#pragma once

#include <atomic>
#include <cstdint>

namespace gyre {

namespace detail {

/// Counts the fork() calls between the first process and this one. Only a child's single thread changes it,
/// so that relaxed loads suffice.
extern constinit std::atomic<uint32_t> fork_generation;

/// Makes fork() on other threads wait while it lives, at most 10 s. Without it a child would find this
/// thread's work half done and its mutexes locked for good. For what a process has once: libraries, caches,
/// signal handlers. The constructor blocks while another thread is in fork(). May be nested. Not for the
/// message path.
class ForkDeferred {
 public:
  ForkDeferred() noexcept;
  ~ForkDeferred();
  ForkDeferred(const ForkDeferred&) = delete;
  ForkDeferred& operator=(const ForkDeferred&) = delete;
};

}  // namespace detail

/// Remembers the process that it was made in. Thread-safe; forked() costs one load. Children of vfork() and
/// posix_spawn() count as that process: they may only exec.
class ForkGuard {
 public:
  /// Returns true in a child that was forked after the guard was made.
  bool forked() const noexcept { return detail::fork_generation.load(std::memory_order_relaxed) != made_in_; }

 private:
  uint32_t made_in_ = detail::fork_generation.load(std::memory_order_relaxed);
};

}  // namespace gyre
