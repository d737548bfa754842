// What the models share: the checker's memory, and how a model is run. Relacy (Vyukov) runs a model through
// many interleavings of a relaxed memory model. Include it last: it redefines words that the standard headers
// use.
#pragma once

#include <gyre/bridge/packet.hpp>

#include <cstdio>
#include <cstring>
#include <ostream>

#include <relacy/relacy.hpp>

namespace gyre {
inline bool operator==(const Packet& a, const Packet& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
inline bool operator!=(const Packet& a, const Packet& b) { return !(a == b); }
inline std::ostream& operator<<(std::ostream& out, const Packet& packet) {
  return out << packet.data[0] << "," << packet.data[1] << "," << packet.data[2] << "#" << packet.stamp;
}
}  // namespace gyre

namespace gyre_test {

using gyre::Packet;

/// The checker's memory: what bridge/packet.hpp's HostMemory is to x86. Packets are relaxed atomics that
/// order nothing, as on the bus.
struct ModelMemory {
  using Cell = rl::atomic<Packet>;
  using Word = rl::atomic<uint64_t>;
  using Word32 = rl::atomic<uint32_t>;

  static Packet load(const Cell& cell) { return cell.load(rl::mo_relaxed, RL_INFO); }
  static void store(Cell& cell, const Packet& packet) { cell.store(packet, rl::mo_relaxed, RL_INFO); }
  static void fence_after_loads() { rl::atomic_thread_fence(rl::mo_acq_rel, RL_INFO); }
  static uint64_t load_relaxed(const Word& word) { return word.load(rl::mo_relaxed, RL_INFO); }
  static uint64_t load_acquire(const Word& word) { return word.load(rl::mo_acquire, RL_INFO); }
  static uint32_t load_acquire(const Word32& word) { return word.load(rl::mo_acquire, RL_INFO); }
  static void store_relaxed(Word& word, uint64_t value) { word.store(value, rl::mo_relaxed, RL_INFO); }
  static void store_release(Word& word, uint64_t value) { word.store(value, rl::mo_release, RL_INFO); }
  static void store_release(Word32& word, uint32_t value) { word.store(value, rl::mo_release, RL_INFO); }
  static uint64_t fetch_add(Word& word, uint64_t n) { return word.fetch_add(n, rl::mo_acq_rel, RL_INFO); }
  static bool compare_exchange(Word& word, uint64_t& expected, uint64_t desired) {
    return word.compare_exchange_strong(expected, desired, rl::mo_acq_rel, RL_INFO, rl::mo_relaxed, RL_INFO);
  }
  static uint64_t fetch_or(Word& word, uint64_t bits) { return word.fetch_or(bits, rl::mo_acq_rel, RL_INFO); }
};

/// Runs `Model` through that many interleavings; false if one was wrong.
template <class Model>
bool holds(const char* name, rl::iteration_t iterations) {
  rl::test_params params;
  params.iteration_count = iterations;
  params.search_type = rl::sched_random;
  params.execution_depth_limit = 4000;
  const bool passed = rl::simulate<Model>(params);
  std::printf("%s: %llu interleavings, %s\n", name, static_cast<unsigned long long>(iterations),
              passed ? "none wrong" : "WRONG");
  return passed;
}

}  // namespace gyre_test
