// The Savina benchmarks on the C++ Actor Framework. Built with GYRE_BENCH_CAF.
#pragma once

#include "savina/benchmark.hpp"

namespace gyre::bench::savina {

struct CafOptions {
  std::string policy = "stealing";  ///< of its scheduler: "stealing", its default, or "sharing"
  uint32_t threads = 1;             ///< of its scheduler
};

/// Returns "CAF 0.17.6".
std::string caf_version();

/// Runs `instances` instances side by side on CAF. Starting its threads is not part of the time; spawning
/// actors is, as on Gyre. Throws Error where it takes longer than `timeout`.
Outcome run_on_caf(const Benchmark& benchmark, const Size& size, uint32_t instances,
                   const CafOptions& options, std::chrono::milliseconds timeout);

}  // namespace gyre::bench::savina
