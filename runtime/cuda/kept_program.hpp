// A compiled program as files, for whoever wants to see what a GPU runs.
#pragma once

#include <gyre/runtime/cuda/program.hpp>

#include <string>
#include <string_view>

namespace gyre::cuda {

/// What there is to keep of one compilation. Refers to all of it.
struct KeptProgram {
  const Program& program;
  std::string_view compiler;     ///< which NVRTC
  std::string_view log;          ///< all it said
  std::string_view ptx;          ///< empty, and the file removed, where it did not compile
  const CompiledKernel& kernel;  ///< cubin and lowered names, empty where it did not compile
};

/// Writes kernel.cu, include/ with the headers, options.txt, compile.log, kernel.ptx and kernel.cubin to
/// `folder`, which is made if it is not there; over files of an earlier program. Throws Error.
void keep(const KeptProgram& kept, const std::string& folder);

}  // namespace gyre::cuda
