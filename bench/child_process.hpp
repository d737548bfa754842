// Programs that a benchmark starts and waits for.
#pragma once

#include <string>
#include <vector>

namespace gyre::bench {

/// What a program printed, and when it was started.
struct ChildOutput {
  std::string text;         ///< its standard output
  uint64_t started_ns = 0;  ///< by the monotonic clock, which it shares; taken just before
};

/// Nanoseconds of the monotonic clock, the same in all processes.
uint64_t monotonic_ns();

/// Runs this very program with `arguments` and, besides its own environment, `environment` ("NAME=value"),
/// and waits for it. Its standard error is this process's. Throws Error where it cannot be started or does
/// not exit with 0.
ChildOutput run_self(const std::vector<std::string>& arguments, const std::vector<std::string>& environment);

}  // namespace gyre::bench
