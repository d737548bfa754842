// In place of Gyre's own header of this name: a warp whose 32 lanes are fibers of one thread, so that the
// worker of a warp runs, lane by lane, on a CPU. Beside them runs one fiber more, the host.
#pragma once

#include <gyre/messages/fixed_width.hpp>

#include <array>
#include <cstdint>

#include "warp/fiber.hpp"

namespace gyre_test::warp {

inline constexpr uint32_t lanes = 32, host = lanes;

/// What the running fiber is, a lane or the host, and what all of them left where.
struct Fibers {
  std::array<Fiber, lanes + 1> fiber;
  std::array<bool, lanes + 1> done{};
  uint32_t running = host;
  std::array<uint32_t, lanes> values[2]{};  // of exchanges with an even number of barriers before, and an odd
  struct Barrier {
    uint32_t arrived = 0;
    uint64_t passed = 0;
  };
  std::array<Barrier, lanes + 1> barriers{};  // the warp's, and of each team, by its first lane
};
inline Fibers fibers;

/// Lets the next fiber run that has something to do.
inline void yield() {
  const uint32_t from = fibers.running;
  do {
    fibers.running = (fibers.running + 1) % (lanes + 1);
  } while (fibers.done[fibers.running]);
  if (fibers.running != from) fibers.fiber[from].switch_to(fibers.fiber[fibers.running]);
}
/// Of `size` lanes, which all call it with one `barrier`.
inline void meet(Fibers::Barrier& barrier, uint32_t size) {
  const uint64_t passed = barrier.passed;
  if (++barrier.arrived == size) {
    barrier.arrived = 0;
    ++barrier.passed;
    return;
  }
  while (barrier.passed == passed) yield();
}
inline void meet_warp() { meet(fibers.barriers[lanes], lanes); }
/// Each lane's value, once all have given theirs. They stay until the lane's next call: the next exchange
/// uses the other array, and the one after it waits until every lane has come out of this one.
inline const std::array<uint32_t, lanes>& exchange(uint32_t value) {
  auto& values = fibers.values[fibers.barriers[lanes].passed % 2];
  values[fibers.running] = value;
  meet_warp();
  return values;
}

}  // namespace gyre_test::warp

namespace gyre {

struct SingleThread {
  static constexpr uint32_t rank() { return 0; }
  static constexpr uint32_t size() { return 1; }
  static constexpr bool all(bool condition) { return condition; }
  static constexpr bool any(bool condition) { return condition; }
  static constexpr uint32_t ballot(bool condition) { return condition ? 1 : 0; }
  static constexpr uint32_t leading(bool condition) { return condition ? 1 : 0; }
  static constexpr uint32_t broadcast(uint32_t value) { return value; }
  static constexpr uint32_t broadcast_from(uint32_t value, uint32_t) { return value; }
  static constexpr uint32_t match(uint32_t) { return 1; }
  static constexpr void sync() {}
};

struct Warp {
  static uint32_t rank() { return gyre_test::warp::fibers.running; }
  static constexpr uint32_t size() { return gyre_test::warp::lanes; }
  static uint32_t ballot(bool condition) {
    uint32_t bits = 0;
    const auto& conditions = gyre_test::warp::exchange(condition ? 1 : 0);
    for (uint32_t lane = 0; lane < size(); ++lane) bits |= conditions[lane] << lane;
    return bits;
  }
  static bool all(bool condition) { return ballot(condition) == 0xffffffff; }
  static bool any(bool condition) { return ballot(condition) != 0; }
  static uint32_t leading(bool condition) {
    const uint32_t others = ballot(!condition);
    return others == 0 ? size() : uint32_t(__builtin_ctz(others));
  }
  static uint32_t broadcast(uint32_t value) { return broadcast_from(value, 0); }
  static uint32_t broadcast_from(uint32_t value, uint32_t rank) {
    return gyre_test::warp::exchange(value)[rank];
  }
  static uint32_t match(uint32_t value) {
    uint32_t bits = 0;
    const auto& values = gyre_test::warp::exchange(value);
    for (uint32_t lane = 0; lane < size(); ++lane) bits |= uint32_t(values[lane] == value) << lane;
    return bits;
  }
  static void sync() { gyre_test::warp::meet_warp(); }
};
using PollGroup = Warp;

}  // namespace gyre
