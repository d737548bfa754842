// The cases that hold on either engine are compiled once and linked into one executable an engine.
#pragma once

#include <gyre/runtime/options.hpp>

namespace gyre_test {

/// What this executable runs them on: cpu or cuda. Each executable defines it.
extern const gyre::EngineKind engine_under_test;

/// Where a CUDA engine runs. Each executable defines it, and its main() may set it.
extern gyre::Isolation isolation_under_test;

inline gyre::Options on_this_engine(gyre::Options options = {}) {
  options.engine = engine_under_test;
  options.isolation = isolation_under_test;
  // On a busy machine a process may have no turn for seconds.
  if (options.heartbeat_timeout == gyre::Options{}.heartbeat_timeout)
    options.heartbeat_timeout = std::chrono::seconds(30);
  return options;
}

}  // namespace gyre_test
