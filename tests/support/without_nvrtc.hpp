// Test cases that need NVRTC.
#pragma once

#include <gyre/runtime/cuda/program.hpp>

#include "support/skip.hpp"

namespace gyre_test {

/// Skips the running test case where NVRTC is not installed. The case returns if this is true.
inline bool without_nvrtc() {
  if (gyre::cuda::nvrtc_available()) return false;
  skip("NVRTC is not installed");
  return true;
}

}  // namespace gyre_test
