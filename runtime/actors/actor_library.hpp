// An actor library: actor types compiled into a shared object of their own, with the text that they were
// compiled from, so that a program which was built without them runs them on either engine.
#pragma once

#include <gyre/device/actor/description.hpp>
#include <gyre/runtime/actors/actor_sources.hpp>
#include <gyre/runtime/cpu/worker.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

/// Actor types, as a shared object has them. Refers to static memory of the object, as all that it names
/// does.
struct ActorLibrary {
  std::span<const std::string_view> types;  ///< qualified names of the actor types
  const void* description;                  ///< what describe() says of them; null with make_worker
  size_t description_bytes;
  std::string_view text;  ///< what a kernel includes: the header that defines them, or its #include
  std::span<const SourceFile> headers;  ///< what `text` includes; Gyre's own may be among them
  const void* schemas;                  ///< of their messages: a CodeGeneratorRequest, as a stream; or null
  size_t schemas_bytes;
  /// The CPU engine's worker of these types; null where only their text is there.
  std::unique_ptr<CpuWorker> (*make_worker)(const Bridge&, const EngineMemory&, WaitPolicy);
  bool grid_scoped;
};

/// One set of actors that a shared object exports, by GYRE_EXPORT_ACTORS (runtime/c/export_actors.hpp) or
/// made by `gyre validate --build-library`. Plain values of one layout for all time; `library` is called, and
/// what it gives is read, only by a program with the same headers_hash.
struct ExportedActors {
  static constexpr uint64_t expected_magic = 0x3262694c65727947ull;  // "GyreLib2"
  /// The object's function that returns its sets, `const ExportedActors*`, one after another by `next`.
  static constexpr const char* symbol = "gyre_exported_actors";

  uint64_t magic;
  uint64_t headers_hash;   ///< actor_library_headers_hash() of the Gyre that it was compiled with
  const char* built_with;  ///< that Gyre's version, and the compiler's
  const char* name;
  const ActorLibrary* (*library)();  ///< throws what making it throws
  const ExportedActors* next;
};

/// The make_worker of a library of `Actors`.
template <class... Actors>
std::unique_ptr<CpuWorker> make_library_worker(const Bridge& bridge, const EngineMemory& memory,
                                               WaitPolicy wait) {
  return std::make_unique<CpuWorkerOf<Actors...>>(bridge, memory, wait);
}

/// Loads the actors that the shared object `file` exports by `name`; empty: the only ones that it exports. It
/// stays loaded until the process ends, as its workers' code must. Throws Error where it cannot be loaded,
/// exports no such actors, or was built with another Gyre; and what making them throws. Any thread.
const ActorLibrary& load_actor_library(const std::string& file, std::string_view name = {});

/// What ExportedActors::headers_hash has to be for this program.
uint64_t actor_library_headers_hash();

/// The headers of Gyre that an actor library is compiled from: those that kernels include, and the CPU
/// engine's. Static memory.
std::vector<SourceFile> actor_library_headers();

}  // namespace gyre
