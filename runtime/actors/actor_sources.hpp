// The source text of actors for NVRTC: embedded in the program, or given at run time.
#pragma once

#include <cstdint>
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

/// Holds the machine code of one set of actors, made when the program was built: see ARCHITECTURES of
/// gyre_add_actors. Refers to static memory, or to memory of an ActorSet.
struct CompiledAhead {
  int architecture = 0;                       ///< compute capability, 90 for 9.0
  uint32_t block = 0;                         ///< threads a block
  uint64_t inputs = 0;                        ///< cuda::ahead_inputs() of what it was compiled from
  std::string_view kernel = {};               ///< ActorSet::kernel()
  std::string_view lowered_name = {};         ///< the kernel's mangled name in the cubin
  std::string_view lowered_description = {};  ///< the mangled name of the variable that describes the actors
  std::string_view compiler = {};             ///< NVRTC's version and file
  std::string_view cubin = {};                ///< empty: of another set than the one that is launched
};

/// Refers to every header that a set of actors needs, including Gyre's own. gyre_add_actors(target …)
/// embeds them as `<target>::sources`. The memory is static, or belongs to an ActorSet made from source
/// text.
struct ActorSources {
  std::span<const SourceFile> files;
  std::span<const std::string_view> actor_headers;  ///< the names among `files` that a kernel includes
  std::span<const CompiledAhead> ahead = {};        ///< sets that were compiled when the program was built
};

}  // namespace gyre
