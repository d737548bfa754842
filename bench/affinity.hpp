// Pinning threads to CPUs.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <optional>
#include <vector>

namespace gyre::bench {

/// The CPUs that the calling thread may run on, ascending. Throws Error.
std::vector<int> allowed_cpus();

/// Keeps a thread on one CPU while this lives.
class Pinned {
 public:
  /// `cpu`: none leaves the thread as it is. Throws Error. The thread must not be joined while this lives.
  Pinned(pthread_t thread, std::optional<int> cpu);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  pthread_t thread_;
  std::optional<cpu_set_t> before_;
};

}  // namespace gyre::bench
