// The floor on the CPU: what two threads need to see each other's stores, and nothing else.
#pragma once

#include "measure.hpp"

namespace gyre::bench {

/// Two threads, one atomic word each way, each word in a line of its own; both spin. The message is the
/// sequence. Throws Error.
Row measure_floor(const Plan& plan);

}  // namespace gyre::bench
