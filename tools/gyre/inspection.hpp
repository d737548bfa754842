// What there is to know of a compiled kernel without running it, and what changed between two.
#pragma once

#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/options.hpp>

#include <optional>
#include <string>
#include <vector>

#include "cubin.hpp"
#include "json.hpp"
#include "occupancy.hpp"
#include "ptx.hpp"

namespace gyre::tools {

/// One kernel, from the files that were kept of its compilation.
struct Inspection {
  std::string from;          ///< where it comes from, for people
  std::string kernel;        ///< name expression
  std::string lowered_name;  ///< mangled
  std::string compiler;      ///< which NVRTC
  int architecture = 0;
  uint32_t block = 0;  ///< threads it was compiled for
  std::string ptx;
  std::vector<PtxFunction> functions;  ///< of the PTX
  CubinFacts cubin;
  std::optional<PtxasReport> report;  ///< NVRTC's, or else ptxas's own
  PtxasRun ptxas;
  std::vector<ActorDescription> actors;  ///< what the cubin says of its actor types
  std::vector<std::string> actor_types;  ///< their names

  uint32_t registers() const { return cubin.registers; }
  uint32_t static_shared_bytes() const { return report ? report->static_shared_bytes : 0; }
  /// Bytes of device memory that a worker has for the message in hand, besides its actors' tables.
  uint64_t working_bytes() const;
};

/// Compiles `actors` for `architecture` and `block`, and keeps all of it in `folder`. Throws as
/// cuda::compile.
void compile_into(const ActorSet& actors, int architecture, uint32_t block, const std::string& folder);

/// Reads a folder of compile_into, or one that --keep-program has written. Throws Error where a file of it is
/// missing, or the program did not compile.
Inspection read_inspection(const std::string& folder);

/// What a driver says of the kernel in `folder` on a device of its architecture.
struct DriverOccupancy {
  std::string device;
  uint32_t multiprocessors = 0;
  uint32_t blocks = 0;  ///< a multiprocessor; unless `problem`
  std::string problem;  ///< why it could not be asked; empty if it was
};

/// Asks the driver; nothing where there is no such device. Loads the kernel, and launches nothing.
std::optional<DriverOccupancy> ask_driver(const Inspection& inspection, const std::string& folder, int device,
                                          uint32_t dynamic_shared_bytes);

/// The multiprocessors and the architecture of a device; nothing where there is none.
struct DeviceFacts {
  std::string name;
  int architecture = 0;
  uint32_t multiprocessors = 0;
};
std::optional<DeviceFacts> find_device_facts(int device);

/// For people: the functions that were not inlined, and for each actor which are its handlers'.
std::string functions_text(const Inspection& inspection);
/// Some lines: numbers before and after, functions that came, went or changed, instructions by their class.
std::string difference_text(const Inspection& before, const Inspection& after);
Json to_json(const Inspection& inspection);
Json difference_json(const Inspection& before, const Inspection& after);

}  // namespace gyre::tools
