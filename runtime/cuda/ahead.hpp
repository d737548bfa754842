// Actors that were compiled when the program was built: which of them a launch takes, and how they are
// written into a program.
#pragma once

#include <gyre/runtime/cuda/program.hpp>

#include <optional>
#include <string>
#include <vector>

namespace gyre::cuda {

/// Returns true if a device of compute capability `device` runs machine code for `compiled` (90: 9.0): the
/// major version is the same, and the minor one not below.
constexpr bool runs_on(int compiled, int device) {
  return compiled / 10 == device / 10 && compiled <= device;
}

/// Returns a hash of all that the compiler is given, except for the toolkit's headers, and of no version of
/// NVRTC or the toolkit: actors compiled ahead stay what they were built as. Not one that withstands intent:
/// whoever can change the program's code can change its text.
uint64_t ahead_inputs(const ActorSet& actors, int architecture, uint32_t block);

/// Finds the kernel of `actors` for `block` threads among those that were compiled ahead, for the device's
/// compute capability `architecture` or the nearest lower one that it runs. Needs neither NVRTC nor the
/// toolkit. Takes about a millisecond; none where nothing was compiled ahead.
std::optional<CompiledKernel> find_ahead(const ActorSet& actors, int architecture, uint32_t block);

/// As find_compiled and compile_not_found of a program: compiled ahead, else in the disk cache, else by
/// NVRTC. `options.keep_program` compiles in any case. EngineUnavailable says what was compiled ahead too.
std::optional<CompiledKernel> find_compiled(const ActorSet& actors, int architecture, uint32_t block,
                                            const CompileOptions& options);
CompiledKernel compile_not_found(const ActorSet& actors, int architecture, uint32_t block,
                                 const CompileOptions& options);

/// Names what was compiled ahead: "my::Counter with 32 threads a block for 8.0 and 9.0; …". Empty if nothing.
std::string list_of_ahead(std::span<const CompiledAhead> ahead);

/// Compiles `actors` by NVRTC and returns them as the initialiser of a CompiledAhead in C++. Its literals
/// need `using namespace std::string_view_literals`. Throws as compile().
std::string ahead_initialiser(const ActorSet& actors, int architecture, uint32_t block);

}  // namespace gyre::cuda
