#include "affinity.hpp"

#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>

namespace gyre::bench {

namespace {

cpu_set_t affinity_of(pthread_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (const int error = pthread_getaffinity_np(thread, sizeof set, &set); error != 0) {
    throw Error(fmt::format("reading which CPUs a thread may run on: {}; look into this process's limits",
                            std::strerror(error)));
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

uint64_t arithmetic_ns() {
  using Clock = std::chrono::steady_clock;
  constexpr int times = 200, rounds = 60;
  constexpr int chains = 8;  // enough to keep a core busy by itself
  uint64_t values[chains] = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<uint64_t> took(times);
  for (uint64_t& ns : took) {
    const auto begin = Clock::now();
    for (uint64_t round = 0; round < rounds; ++round) {
      for (uint64_t& value : values) value = value * 3 + (value >> 7) + round;
      asm volatile("" : : "m"(values));
    }
    ns = uint64_t((Clock::now() - begin) / std::chrono::nanoseconds(1));
  }
  std::nth_element(took.begin(), took.begin() + times / 2, took.end());
  return took[times / 2];
}

std::vector<CpuSpeed> cpus_by_speed() {
  std::vector<CpuSpeed> found;
  for (const int cpu : allowed_cpus()) {
    const Pinned here(pthread_self(), cpu);
    found.push_back({cpu, arithmetic_ns()});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const CpuSpeed& a, const CpuSpeed& b) { return a.arithmetic_ns < b.arithmetic_ns; });
  return found;
}

bool share_a_core(int a, int b) {
  const auto core_of = [](int cpu) {
    std::string core;
    for (const char* const part : {"physical_package_id", "die_id", "core_id"}) {
      std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", cpu, part));
      std::string number;
      file >> number;
      core += number + '.';
    }
    return core;
  };
  const std::string core = core_of(a);
  return core != "..." && core == core_of(b);
}

Pinned::Pinned(pthread_t thread, std::optional<int> cpu) : thread_(thread) {
  if (!cpu) return;
  const cpu_set_t before = affinity_of(thread);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(*cpu, &set);
  if (const int error = pthread_setaffinity_np(thread, sizeof set, &set); error != 0) {
    throw Error(fmt::format("pinning a thread to CPU {}: {}; let this process use that CPU (taskset -pc)",
                            *cpu, std::strerror(error)));
  }
  before_ = before;
}

Pinned::~Pinned() {
  if (before_) pthread_setaffinity_np(thread_, sizeof *before_, &*before_);
}

}  // namespace gyre::bench
