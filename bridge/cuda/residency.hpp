// What a kernel that stays holds of a device's multiprocessors. Plain numbers, without CUDA.
#pragma once

#include <cstdint>

namespace gyre::cuda {

struct Residency {
  uint32_t grid = 0;          ///< blocks
  uint32_t block = 0;         ///< threads a block
  uint32_t registers = 0;     ///< a thread
  uint64_t shared_bytes = 0;  ///< a block, static and dynamic
};

}  // namespace gyre::cuda
