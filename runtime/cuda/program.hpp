// NVRTC: from the actors' source text to a cubin and the kernel's name in it. Works on machines without a
// GPU.
#pragma once

#include <gyre/runtime/actor_set.hpp>

#include <string>
#include <vector>

namespace gyre::cuda {

/// What NVRTC is given and what it makes of it.
struct Program {
  std::string text;                  ///< the main file: includes and nothing else
  std::vector<std::string> options;  ///< compiler options
};

struct CompiledKernel {
  std::string cubin;         ///< machine code for one architecture
  std::string lowered_name;  ///< the kernel's mangled name in it
  std::string log;           ///< the compiler's warnings
  double compile_ms = 0;
};

/// The program that instantiates `actors`' kernel for `block` threads on compute capability `architecture`
/// (90: 9.0).
Program program_of(const ActorSet& actors, int architecture, uint32_t block);

/// Compiles it. Throws EngineUnavailable where NVRTC is not installed (what to install), Error with the
/// compiler's log where the text does not compile. Any thread; takes tens of milliseconds and more.
CompiledKernel compile(const ActorSet& actors, int architecture, uint32_t block);

/// As compile, for any main file and kernel, with only the headers that the program may include: bench's bare
/// kernels.
CompiledKernel compile_text(const std::string& text, const std::string& kernel, int architecture,
                            const std::vector<std::string>& options, std::span<const SourceFile> headers);

/// True where NVRTC can be loaded.
bool nvrtc_available() noexcept;

/// Of the NVRTC that compiles here. Throws EngineUnavailable where there is none, or it is too old.
struct NvrtcVersion {
  int major = 0;
  int minor = 0;
};
NvrtcVersion nvrtc_version();

}  // namespace gyre::cuda
