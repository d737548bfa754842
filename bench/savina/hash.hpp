// What the actors of gyre-bench savina compute, on every engine alike: hashes of integers.
#pragma once

#include <gyre/device/platform.hpp>
#include <gyre/messages/fixed_width.hpp>

namespace gyre_savina {

/// Limits the instances of a benchmark that run side by side.
inline constexpr uint32_t most_instances = 4095;

/// Returns another number for each (the finaliser of SplitMix64).
GYRE_DEVICE constexpr uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}
/// Returns another number for each pair.
GYRE_DEVICE constexpr uint64_t mix(uint32_t a, uint32_t b) { return mix(uint64_t(a) << 32 | b); }
/// Returns what a piece of work comes to: eight hashes, each of the one before.
GYRE_DEVICE constexpr uint64_t work(uint64_t value, uint64_t seed) {
  for (uint32_t n = 0; n < 8; ++n) value = mix(value + seed);
  return value;
}

}  // namespace gyre_savina
