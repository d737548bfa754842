// NVRTC, loaded at run time.
#pragma once

#include <nvrtc.h>
#include <gyre/runtime/cuda/program.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace gyre::cuda {

#define GYRE_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion)               \
  X(nvrtcGetErrorString)        \
  X(nvrtcGetNumSupportedArchs)  \
  X(nvrtcGetSupportedArchs)     \
  X(nvrtcCreateProgram)         \
  X(nvrtcDestroyProgram)        \
  X(nvrtcCompileProgram)        \
  X(nvrtcAddNameExpression)     \
  X(nvrtcGetLoweredName)        \
  X(nvrtcGetCUBINSize)          \
  X(nvrtcGetCUBIN) X(nvrtcGetPTXSize) X(nvrtcGetPTX) X(nvrtcGetProgramLogSize) X(nvrtcGetProgramLog)

/// NVRTC's functions, by their names. A plain table.
struct Nvrtc {
#define GYRE_NVRTC_MEMBER(name) decltype(&::name) name = nullptr;
  GYRE_NVRTC_FUNCTIONS(GYRE_NVRTC_MEMBER)
#undef GYRE_NVRTC_MEMBER
  /// Which compiler this is: its version, and its file's name and size, for releases of one version.
  std::string identity;
  NvrtcVersion version;

  /// Loads the library. Throws EngineUnavailable: what is missing and what to install.
  static Nvrtc load();
  /// Throws Error unless `result` is success.
  void check(nvrtcResult result, std::string_view doing) const;
  /// "NVRTC_ERROR_COMPILATION (6): <what the catalogue of errors says it means, and what to check>".
  std::string explain(nvrtcResult result) const;
  /// The compute capabilities it compiles for, ascending, 90 for 9.0. Throws Error.
  std::vector<int> architectures() const;
};

}  // namespace gyre::cuda
