// Names calls: which slot, and which use of it.
#pragma once

#include <cstdint>

namespace gyre {

/// Names one use of one call slot: slot in the low 20 bits, generation above, never 0. It travels as
/// Envelope::correlation.
using CallId = uint64_t;

namespace detail {

inline constexpr int call_index_bits = 20;
inline constexpr uint64_t call_generation_mask = ~uint64_t(0) >> call_index_bits;

inline CallId call_id(uint32_t index, uint64_t generation) { return generation << call_index_bits | index; }
inline uint32_t index_of(CallId call) { return uint32_t(call & ((1u << call_index_bits) - 1)); }
inline uint64_t generation_of(CallId call) { return call >> call_index_bits; }

}  // namespace detail
}  // namespace gyre
