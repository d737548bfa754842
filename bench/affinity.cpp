#include "affinity.hpp"

#include <fmt/format.h>
#include <gyre/bridge/error.hpp>

#include <cstring>

namespace gyre::bench {

namespace {

cpu_set_t affinity_of(pthread_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (const int error = pthread_getaffinity_np(thread, sizeof set, &set); error != 0) {
    throw Error(
        fmt::format("reading which CPUs a thread may run on: {}; run without --pin", std::strerror(error)));
  }
  return set;
}

}  // namespace

std::vector<int> allowed_cpus() {
  const cpu_set_t set = affinity_of(pthread_self());
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

Pinned::Pinned(pthread_t thread, std::optional<int> cpu) : thread_(thread) {
  if (!cpu) return;
  const cpu_set_t before = affinity_of(thread);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(*cpu, &set);
  if (const int error = pthread_setaffinity_np(thread, sizeof set, &set); error != 0) {
    throw Error(fmt::format("pinning a thread to CPU {}: {}; run without --pin", *cpu, std::strerror(error)));
  }
  before_ = before;
}

Pinned::~Pinned() {
  if (before_) pthread_setaffinity_np(thread_, sizeof *before_, &*before_);
}

}  // namespace gyre::bench
