// Whether a launch would work, found out without launching: everything that is wrong at once, and what would
// fit.
#pragma once

#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/options.hpp>

#include <optional>
#include <string>
#include <vector>

namespace gyre {

/// What Options do not say of a launch.
struct LaunchPlan {
  /// Blocks a cluster; 1: no clusters. Checked alone: the runtime launches without clusters.
  uint32_t cluster = 1;
  /// Bytes a block; what the options' slots need unless given.
  std::optional<uint32_t> dynamic_shared_bytes = std::nullopt;
  /// Compile for this architecture (90: compute capability 9.0) where there is no device. 0: do not.
  int architecture = 0;
};

/// What is known of a compiled kernel.
struct KernelFacts {
  std::string name;
  int architecture = 0;              ///< 90: compute capability 9.0
  uint32_t registers = 0;            ///< a thread
  uint32_t static_shared_bytes = 0;  ///< a block
  uint32_t local_bytes = 0;          ///< a thread, for what does not fit its registers
  /// Blocks that can be resident at once, a multiprocessor and in all: what a cooperative launch may have.
  /// Only a device tells.
  std::optional<uint32_t> blocks_a_multiprocessor;
  std::optional<uint64_t> max_grid;
};

/// The verdict on one launch. A value.
struct LaunchVerdict {
  EngineKind engine = EngineKind::automatic;  ///< cuda or cpu
  std::string device;                         ///< what it would run on; empty where there is none
  /// This machine, or this build, has no such engine, or no compiler for it; a device is not missed where the
  /// plan names an architecture.
  bool engine_missing = false;
  uint32_t grid = 0;                                          ///< blocks, as asked; threads on the CPU engine
  uint32_t block = 0, cluster = 1, dynamic_shared_bytes = 0;  ///< as asked
  uint64_t region_bytes = 0;
  /// Everything that is wrong, each with the number asked, the limit, and where the limit comes from.
  std::vector<std::string> problems;
  std::vector<std::string> fits;       ///< what would fit
  std::vector<std::string> unchecked;  ///< what could not be checked here, and why
  std::optional<KernelFacts> kernel;   ///< where it was compiled

  /// Nothing wrong was found; `unchecked` says what was not looked at.
  bool ok() const { return problems.empty(); }
  /// All of it, for people; some lines, each ended.
  std::string text() const;
};

/// Checks what Runtime::launch would do, by the same code, and launches nothing. What is wrong is in the
/// verdict and not thrown. On CUDA it compiles the actors and loads them (hundreds of milliseconds, and a
/// context on the device meanwhile), unless this process has workers on the device: loading would wait for
/// them. Any thread.
LaunchVerdict check_launch(const ActorSet& actors, const Options& options, const LaunchPlan& plan = {});

}  // namespace gyre
