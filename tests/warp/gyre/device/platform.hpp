// In place of Gyre's own header of this name: what a worker of one warp needs, of the warp in
// gyre/bridge/group.hpp. Its clock goes on with the warp's barriers, and is the same in all lanes.
#pragma once

#include <gyre/bridge/group.hpp>
#include <gyre/device/compiler_steering.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gyre {

struct HandlerGroup : Warp {
  static constexpr bool all_threads_poll() { return true; }
  template <class Word>
  static bool first_to_set(Word& word, Word value) {
    if (uint32_t(word) != 0) return false;
    word = value;
    return true;
  }
};

class Team {
 public:
  static Team whole() { return {0, Warp::size()}; }
  static Team part(uint32_t log_size) {
    const uint32_t size = 1u << log_size;
    return {Warp::rank() / size * size, size};
  }
  uint32_t rank() const { return Warp::rank() - first_; }
  uint32_t size() const { return size_; }
  void sync() const {
    if (size_ == Warp::size()) return Warp::sync();
    gyre_test::warp::meet(gyre_test::warp::fibers.barriers[first_], size_);
  }
  const Team& group() const { return *this; }

 private:
  Team(uint32_t first, uint32_t size) : first_(first), size_(size) {}
  uint32_t first_, size_;
};

inline bool polls() { return true; }
inline float ratio(uint64_t a, uint64_t b) { return float(a) / float(b); }

// Ahead of the host's clock by this much.
inline uint64_t worker_clock_ahead_ns = 0;
inline uint64_t now_ns() {
  static uint64_t at_barrier[gyre_test::warp::lanes + 1] = {}, readings[gyre_test::warp::lanes + 1] = {};
  const uint32_t lane = gyre_test::warp::fibers.running;
  const uint64_t passed = gyre_test::warp::fibers.barriers[gyre_test::warp::lanes].passed;
  if (at_barrier[lane] != passed) readings[lane] = 0;
  at_barrier[lane] = passed;
  return worker_clock_ahead_ns + 1'000'000'000 + passed * 400 + ++readings[lane];
}
inline uint64_t deadline_clock_ns() { return now_ns(); }
inline uint64_t steady_ns() { return now_ns(); }
inline constexpr uint32_t command_poll_interval = 50'000;
inline uint64_t clock_ticks() { return now_ns() * 2; }
inline uint64_t clock_ticks_here() { return clock_ticks(); }
inline constexpr bool samples_command_each_poll = false, shares_host_clock = false, delays_first_poll = true;
inline void wait_ticks(uint32_t) {}

inline void add_soon(uint64_t& word, uint64_t n) { word += n; }
inline void add_soon_if(bool condition, uint64_t& word, uint64_t n) {
  if (condition) word += n;
}
inline uint64_t load_added(const uint64_t& word) { return word; }
inline uint64_t compare_and_swap(uint64_t& word, uint64_t expected, uint64_t desired) {
  const uint64_t found = word;
  if (found == expected) word = desired;
  return found;
}

}  // namespace gyre
