// The source text of actors for NVRTC: embedded in the program, or given at run time.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gyre {

/// Holds one header as it was when the program was built. `name` is the name that `#include` uses.
struct SourceFile {
  std::string_view name;
  std::string_view text;
};

/// Holds one header given at run time. `name` is the name that `#include` uses.
struct SourceText {
  std::string name;
  std::string text;
};

/// Refers to every header that a set of actors needs, including Gyre's own. gyre_add_actors(target …)
/// embeds them as `<target>::sources`. The memory is static, or belongs to an ActorSet made from source
/// text.
struct ActorSources {
  std::span<const SourceFile> files;
  std::span<const std::string_view> actor_headers;  ///< the names among `files` that a kernel includes
};

}  // namespace gyre
