// The views rows that run on a GPU.
#pragma once

#include <gyre/runtime/cuda/program.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace gyre::bench {

/// Cycles of each of `count` messages in one warp, by the plain structs or by the views; `response` gets the
/// last message's 1 KiB. No other kernel may live on the device. Throws EngineUnavailable, Error.
std::vector<uint64_t> views_cycles(int device, bool by_views, uint32_t count,
                                   std::span<const uint64_t> request, std::vector<uint64_t>& response);

/// Its kernel. Needs no GPU. Throws as cuda::compile_text.
cuda::CompiledKernel compile_views_kernel(int architecture, bool by_views);

}  // namespace gyre::bench
