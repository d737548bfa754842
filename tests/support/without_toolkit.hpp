// Test cases whose actors include headers of the CUDA toolkit.
#pragma once

#include "support/engine_under_test.hpp"

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/program.hpp>
#include <gyre/runtime/cuda/toolkit.hpp>

#include "support/skip.hpp"
#endif

namespace gyre_test {

/// Skips the running test case where CUDA compiles the actors and the toolkit's headers are not installed.
/// The case returns if this is true.
inline bool without_toolkit() {
#if defined(GYRE_WITH_CUDA)
  if (engine_under_test != gyre::EngineKind::cuda) return false;
  if (!gyre::cuda::nvrtc_available() ||
      gyre::cuda::find_toolkit_headers(gyre::cuda::nvrtc_version().major).folders.empty()) {
    skip("the headers of the CUDA toolkit are not installed");
    return true;
  }
#endif
  return false;
}

}  // namespace gyre_test
