// An actor library: actor types compiled into a shared object of their own, with the text that they were
// compiled from, so that a program which was built without them runs them on either engine.
#pragma once

#include <gyre/device/description.hpp>
#include <gyre/runtime/actor_sources.hpp>
#include <gyre/runtime/cpu/worker.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

/// What an actor library exports as `gyre_actor_library`. Static memory of the library. Its file is generated
/// and compiled by `gyre validate --build-library`, from the headers of that very program.
struct ActorLibrary {
  static constexpr uint64_t expected_magic = 0x3162694c65727947ull;  // "GyreLib1"
  static constexpr const char* symbol = "gyre_actor_library";

  uint64_t magic;
  /// Of the text of Gyre's own headers that it was compiled with: a program of others does not load it.
  uint64_t headers_hash;
  std::span<const std::string_view> types;  ///< qualified names of the actor types
  const void* description;                  ///< what describe() says of them
  size_t description_bytes;
  std::string_view text;                ///< the header that defines them
  std::span<const SourceFile> headers;  ///< what it includes but for Gyre's own
  const void* schemas;                  ///< of their messages: a CodeGeneratorRequest, as a stream; or null
  size_t schemas_bytes;
  /// The CPU engine's worker of these types.
  std::unique_ptr<CpuWorker> (*make_worker)(const Bridge&, const EngineMemory&, WaitPolicy);
};

/// The make_worker of a library of `Actors`.
template <class... Actors>
std::unique_ptr<CpuWorker> make_library_worker(const Bridge& bridge, const EngineMemory& memory,
                                               WaitPolicy wait) {
  return std::make_unique<CpuWorkerOf<Actors...>>(bridge, memory, wait);
}

/// Loads the library in `file`; it stays loaded until the process ends, as its workers' code must. Throws
/// Error where it cannot be loaded, is no actor library, or is one for another version of Gyre. Any thread.
const ActorLibrary& load_actor_library(const std::string& file);

/// What ActorLibrary::headers_hash has to be for this program.
uint64_t actor_library_headers_hash();

/// The headers of Gyre that an actor library is compiled from: those that kernels include, and the CPU
/// engine's. Static memory.
std::vector<SourceFile> actor_library_headers();

}  // namespace gyre
