// The source text of actors for NVRTC: embedded in the program, or given at run time.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gyre {

/// One header as it was when the program was built. `name` is what `#include` says.
struct SourceFile {
  std::string_view name;
  std::string_view text;
};

/// A header that was given at run time. `name` is what `#include` says.
struct SourceText {
  std::string name;
  std::string text;
};

/// What gyre_add_actors(target …) embeds as `<target>::sources`: every header the actors need, Gyre's own
/// included. Refers to static memory, or to what an ActorSet::from_source owns.
struct ActorSources {
  std::span<const SourceFile> files;
  std::span<const std::string_view> actor_headers;  ///< the names among `files` that a kernel includes
};

}  // namespace gyre
