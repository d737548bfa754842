// An actor library: actor types compiled into a shared object, with their source text. A program that was
// built without the actors can run them on either engine.
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

/// Makes the CPU engine's worker of a set of actor types.
using MakeCpuWorker = std::unique_ptr<CpuWorker>(const Bridge&, const EngineMemory&, WaitPolicy);

/// The actor types of a shared object. Everything in it refers to static memory of the object.
struct ActorLibrary {
  std::span<const std::string_view> types;  ///< qualified names of the actor types
  const void* description;                  ///< result of describe(); null if the object has only their text
  size_t description_bytes;
  std::string_view text;  ///< what a kernel includes: the header that defines them, or its #include
  std::span<const SourceFile> headers;  ///< what `text` includes; Gyre's own may be among them
  const void* schemas;                  ///< of their messages: a CodeGeneratorRequest, as a stream; or null
  size_t schemas_bytes;
  MakeCpuWorker* make_worker;  ///< null if the object has only their text, or one of them is cuda_only
  bool grid_scoped;
  /// The names among `headers` that a kernel includes in place of `text`: `headers` has all that it needs.
  /// Empty: `text` is what it includes.
  std::span<const std::string_view> actor_headers = {};
  std::span<const CompiledAhead> ahead = {};  ///< the set, compiled when the object was built
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

/// Returns ActorLibrary::make_worker of `Actors`.
template <class... Actors>
constexpr MakeCpuWorker* make_worker_of() {
  if constexpr ((CudaOnly<Actors> || ...))
    return nullptr;
  else {
    return
        [](const Bridge& bridge, const EngineMemory& memory, WaitPolicy wait) -> std::unique_ptr<CpuWorker> {
          return std::make_unique<CpuWorkerOf<Actors...>>(bridge, memory, wait);
        };
  }
}

/// Loads the actors that the shared object `file` exports as `name`; an empty name means the only actors in
/// it. The object stays loaded until the process ends: workers run its code. Throws Error if it cannot be
/// loaded, does not export the actors, or was built with another Gyre; exceptions of making them pass
/// through. Any thread.
const ActorLibrary& load_actor_library(const std::string& file, std::string_view name = {});

/// Returns the ExportedActors::headers_hash that this program requires.
uint64_t actor_library_headers_hash();

/// Returns Gyre's headers that an actor library is compiled from: those of kernels, and those of the CPU
/// engine. Static memory.
std::vector<SourceFile> actor_library_headers();

}  // namespace gyre
