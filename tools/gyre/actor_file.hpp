// Actors that a command is given as a file: a header with all that it includes, or an actor library.
#pragma once

#include <gyre/runtime/actor_set.hpp>

#include <memory>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "temporary_folder.hpp"

namespace gyre::tools {

/// What --actors and the options beside it say.
struct ActorFileOptions {
  std::string file;   ///< a header, or a library: "actors.so", or "actors.so:name" of several
  std::string types;  ///< of the actors in a header, separated by commas
  std::vector<std::string> include_dirs;  ///< where a header's includes are looked for
  std::vector<std::string> schemas;       ///< .capnp files of its messages, compiled where there are any
};

/// Adds --actors, --types, --schema and --include to a command.
/// @param options  gets what they say; must outlive the command
/// @param help     of --actors
/// @param group    under which the help lists them; empty: under no name of their own
/// @returns        --actors
CommandOption add_actor_file_options(const ProgramCommand& command, ActorFileOptions& options,
                                     const std::string& help, const std::string& group = {});

/// The schemas of messages, compiled.
struct CompiledSchemas {
  std::string request;  ///< the schema compiler's CodeGeneratorRequest, as a stream; empty: none
  std::string views;    ///< the folder with <schema>.view.hpp of each
};

/// Compiles `schemas` by `capnp compile`, with the imports in `import_dirs`; views go to the folder `views`.
/// Throws Error with what the compiler says, EngineUnavailable where it, or capnpc-gyre, is not installed.
CompiledSchemas compile_schemas(const std::vector<std::string>& schemas,
                                const std::vector<std::string>& import_dirs, const std::string& views);

/// A header, with the headers that it includes and that are found, all by the names that #include says. What
/// is not found, the compilers will say.
struct ActorText {
  std::string text;  ///< the main text: one #include
  std::vector<std::string> types;
  std::vector<SourceText> headers;
  std::string schemas;  ///< CompiledSchemas::request
};

/// Reads a header. Throws BadOptions for a file that is not there and for types that are not named, and as
/// compile_schemas.
ActorText read_actor_text(const ActorFileOptions& options);

/// For which compute capabilities (90: 9.0), with how many threads a block, a library's actors are compiled
/// ahead.
struct AheadOptions {
  std::vector<int> architectures;
  uint32_t block = 32;
};

/// Compiles a library of the actors for both engines into `file`, by $CXX, c++, g++ or clang++, and by NVRTC
/// for each architecture of `ahead`. Throws EngineUnavailable where there is no compiler, Error with what it
/// says. Takes seconds.
void build_actor_library(const ActorText& actors, const std::string& file, const AheadOptions& ahead = {});

/// Actors that can be launched. A value.
struct ActorsOfFile {
  ActorSet actors;
  std::string schemas;  ///< CompiledSchemas::request; empty where none were given
};

/// The actors of a header or a library, for CUDA alone where they come from a header. Throws as
/// read_actor_text and load_actor_library.
ActorsOfFile read_actors(const ActorFileOptions& options);

/// The same for both engines: a header is made a library first.
ActorsOfFile build_and_load_actors(const ActorFileOptions& options);

}  // namespace gyre::tools
