// Pinning threads to CPUs, and how quick these are.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace gyre::bench {

/// The CPUs that the calling thread may run on, ascending. Throws Error.
std::vector<int> allowed_cpus();

/// Nanoseconds that a fixed piece of arithmetic takes on the CPU that the calling thread runs on: the median
/// of two hundred. Longer where the clock is slower, or where another thread works on the same core, which in
/// a virtual machine may be somebody else's.
uint64_t arithmetic_ns();

struct CpuSpeed {
  int cpu;
  uint64_t arithmetic_ns;
};
/// The CPUs that the calling thread may run on, the quickest first. Leaves the thread where it may run as
/// before. Throws Error.
std::vector<CpuSpeed> cpus_by_speed();

/// Whether two CPUs are threads of one core, by what Linux says of them; false where it says nothing.
bool share_a_core(int a, int b);

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
