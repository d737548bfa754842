// Checks whether a launch would work, without launching: finds everything that is wrong at once, and what
// would fit.
#pragma once

#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/options.hpp>

#include <optional>
#include <string>
#include <vector>

namespace gyre {

/// Adds to Options what only check_launch() takes.
struct LaunchPlan {
  /// Blocks per cluster; 1: no clusters. Only checked: the runtime launches without clusters.
  uint32_t cluster = 1;
  /// Bytes per block; empty: what the options' slots need.
  std::optional<uint32_t> dynamic_shared_bytes = std::nullopt;
  /// Architecture to compile for if there is no device (90: compute capability 9.0). 0: do not compile.
  int architecture = 0;
};

/// Describes a compiled kernel.
struct KernelFacts {
  std::string name;
  int architecture = 0;              ///< 90: compute capability 9.0
  uint32_t registers = 0;            ///< per thread
  uint32_t static_shared_bytes = 0;  ///< per block
  uint32_t local_bytes = 0;          ///< per thread, for values that do not fit its registers
  /// Blocks that can be resident at once, per multiprocessor and in all; they limit a cooperative launch.
  /// Empty without a device.
  std::optional<uint32_t> blocks_a_multiprocessor;
  std::optional<uint64_t> max_grid;
};

/// Says whether one launch would work. Copyable.
struct LaunchVerdict {
  EngineKind engine = EngineKind::automatic;  ///< cuda or cpu
  std::string device;                         ///< the device it would run on; empty if there is none
  /// True if this machine or this build lacks the engine, or a compiler for it. A missing device does not
  /// count if the plan names an architecture.
  bool engine_missing = false;
  uint32_t grid = 0;                                          ///< requested blocks; threads on the CPU engine
  uint32_t block = 0, cluster = 1, dynamic_shared_bytes = 0;  ///< as requested
  uint64_t region_bytes = 0;
  /// Everything that is wrong, each with the requested number, the limit, and where the limit comes from.
  std::vector<std::string> problems;
  std::vector<std::string> fits;       ///< what would fit
  std::vector<std::string> unchecked;  ///< what could not be checked here, and why
  std::optional<KernelFacts> kernel;   ///< empty if the actors were not compiled

  /// Returns true if nothing wrong was found; see also `unchecked`.
  bool ok() const { return problems.empty(); }
  /// Returns the verdict as text for people, in lines.
  std::string text() const;
};

/// Checks what Runtime::launch would do, by launch's own code, and launches nothing. Reports what is wrong
/// in the verdict instead of throwing. On CUDA it compiles and loads the actors in a context of this
/// process, with Options::isolation process too. That takes hundreds of milliseconds, and seconds beside
/// live workers of this process. It counts all multiprocessors, also under MPS. Thread-safe.
LaunchVerdict check_launch(const ActorSet& actors, const Options& options, const LaunchPlan& plan = {});

}  // namespace gyre
