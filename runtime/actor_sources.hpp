// The source text of actors, embedded in the program for NVRTC.
#pragma once

#include <span>
#include <string_view>

namespace gyre {

/// One header as it was when the program was built. `name` is what #include says.
struct SourceFile {
  std::string_view name;
  std::string_view text;
};

/// What gyre_add_actors(target …) embeds as <target>::sources: every header the actors need, Gyre's own
/// included. Refers to static memory.
struct ActorSources {
  std::span<const SourceFile> files;
  std::span<const std::string_view> actor_headers;  ///< the names among `files` that a kernel includes
};

}  // namespace gyre
