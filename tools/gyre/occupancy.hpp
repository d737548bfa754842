// How many blocks of a kernel can be resident on a multiprocessor at once, worked out without a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gyre::tools {

/// What one multiprocessor of an architecture has.
struct MultiprocessorLimits {
  int architecture;                 ///< 90: compute capability 9.0
  uint32_t threads;                 ///< resident at once
  uint32_t shared_bytes;            ///< shared memory
  uint32_t shared_bytes_a_block;    ///< that one block may have, having opted in
  uint32_t reserved_bytes_a_block;  ///< of shared memory, that the driver takes of each block
};

/// Of the architecture; null where it is not known here. Static memory.
const MultiprocessorLimits* find_multiprocessor(int architecture);

/// What a block of a kernel takes.
struct BlockNeeds {
  uint32_t threads = 32;
  uint32_t registers = 0;  ///< a thread
  uint32_t static_shared_bytes = 0;
  uint32_t dynamic_shared_bytes = 0;
};

/// The answer.
struct Occupancy {
  uint32_t blocks = 0;        ///< a multiprocessor, resident at once; 0: none can be
  std::string limited_by;     ///< what there is no more of: "registers", "shared memory", "threads", "blocks"
  uint32_t threads = 0;       ///< of those blocks
  uint32_t most_threads = 0;  ///< that could be resident
};

/// By NVIDIA's occupancy calculator (cuda_occupancy.h) of the toolkit that this was built with. Throws
/// BadOptions where it does not know the architecture.
Occupancy occupancy(int architecture, const BlockNeeds& block);

}  // namespace gyre::tools
