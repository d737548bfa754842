// What a C++ programmer would pick for actors on the CPU: the C++ Actor Framework. Built with GYRE_BENCH_CAF.
#pragma once

#include "measure.hpp"

namespace gyre::bench {

/// Request and response of one actor that adds two vectors of VectorMessage::usual_size floats, each sum
/// checked. `aggressive`: its workers poll for stealing without sleep (row caf-aggressive); else as it comes
/// (row caf). Throws Error.
Row measure_caf(const Plan& plan, bool aggressive);

}  // namespace gyre::bench
