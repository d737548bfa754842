// What the parts of gyre doctor find.
#pragma once

#include <gyre/runtime/launch_verdict.hpp>

#include <string>
#include <vector>

namespace gyre::tools {

enum class Health { ok, warn, bad, unknown };

/// "ok", "warn", "bad", "?".
std::string_view name(Health health);

/// One line of the report.
struct Finding {
  std::string what;  ///< what was looked at
  Health health;
  std::string found;   ///< what is there, with its numbers
  std::string remedy;  ///< what to do; empty where all is well
};
using Findings = std::vector<Finding>;

/// Processor, memory, limits, the folder of cached kernels.
Findings check_host();

/// The driver, its device files, NVRTC, and each device. `usable`: the CUDA engine can be launched on some
/// device.
Findings check_cuda(bool& usable);

/// Runs the smallest cooperative kernel there is on device `ordinal`: one block of 32 threads that writes a
/// word to pinned memory. Waits 5 s at most.
Finding check_smallest_kernel(int ordinal);

/// A launch that is planned.
struct Plan {
  std::string actors_file;  ///< a header, or a library of actors; empty: the built-in actors
  std::string types;        ///< of the actors in it, separated by commas
  std::vector<std::string> include_dirs;
  std::vector<std::string> schemas;  ///< of a header's messages, where their views are not in include_dirs
  int device = 0;
  int architecture = 0;  ///< where there is no device; 0: not said
  uint32_t grid = 1, block = 32, cluster = 1;
  std::optional<uint32_t> shared;
};

/// The verdict on it. Throws BadOptions for a file that is not there.
LaunchVerdict judge(const Plan& plan);

}  // namespace gyre::tools
