// Gyre's own rows of round trips, one message in flight by the whole client API.
#pragma once

#include "machine.hpp"
#include "measure.hpp"

namespace gyre::bench {

/// A row, and what it ran on.
struct GyreRow {
  Row row;
  Machine machine;
};

/// Bytes of an EchoRequest's body without its payload: root pointer, sequence, list pointer. The response has
/// the same.
inline constexpr uint32_t echo_overhead_bytes = 24;

/// Echo with bodies of `size` bytes: a multiple of 8, at least 32. Worker 0 is asked, the others idle. Throws
/// what run_on_gyre throws, and Error for a wrong reply.
/// `checked` false: a row of its own, "gyre unchecked", whose asks must succeed and whose replies nobody
/// reads, which shows what checking costs.
GyreRow measure_gyre_echo(const Plan& plan, uint32_t size, bool checked = true);
/// VectorAdd of VectorMessage::usual_size floats. Throws likewise.
GyreRow measure_gyre_vector_add(const Plan& plan);

/// Slots that carry bodies of `size` bytes, the smallest, in bytes.
uint32_t slot_bytes_for(uint32_t size);

}  // namespace gyre::bench
