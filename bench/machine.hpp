// What a benchmark ran on and how: figures mean nothing without it.
#pragma once

#include <gyre/gyre.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include "build_commit.hpp"
#include "json.hpp"

namespace gyre::bench {

/// "unknown" where the machine does not tell; gpu, driver and cuda are empty without the CUDA engine.
struct Machine {
  std::string cpu;     ///< model
  unsigned cpus = 0;   ///< that this process may use
  std::string kernel;  ///< the operating system's
  std::string gpu;
  std::string driver;         ///< NVIDIA's: "580.65.06"
  std::string cuda;           ///< the newest that the driver supports: "13.0"
  std::string compiler;       ///< of this program
  std::string build;          ///< build type and flags of this program
  tools::BuildCommit commit;  ///< of this program
  std::string command;  ///< how this process was called, as a shell reads it, the program without its folder
  std::string date;     ///< UTC, "2025-11-21T13:30:00Z"
  EngineKind engine = EngineKind::automatic;
  TransportKind transport = TransportKind::automatic;
  Options options;
};

/// Describes this machine and a runtime launched on it.
Machine describe_machine(const Runtime& runtime);

/// The same of a runtime of the built-in actors that is launched, and ended, to find out which engine and
/// transport `options` give here. Throws as Runtime::launch.
Machine machine_of(const Options& options);

/// The words of a command, quoted where a shell needs it; the first one without its folder.
std::string command_text(const std::vector<std::string>& words);

/// Two lines.
void print(std::FILE* out, const Machine& machine);
tools::Json to_json(const Machine& machine);

}  // namespace gyre::bench
