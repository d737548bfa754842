// Two threads of one process that sleep while they wait for each other: a bare futex each way.
#pragma once

#include "measure.hpp"

namespace gyre::bench {

/// A message of `size` bytes (a multiple of 8) there and back through memory, each side woken by a futex that
/// it sleeps on at once. The measuring thread sleeps for `pause` before each message. Throws Error.
Row measure_futex(const Plan& plan, uint32_t size, std::chrono::microseconds pause);

}  // namespace gyre::bench
