// What Gyre is there to avoid: a kernel launch a call.
#pragma once

#include <gyre/runtime/cuda/program.hpp>

#include "measure.hpp"

// In none of these rows may another kernel live on the device. All throw EngineUnavailable, Error.
namespace gyre::bench {

/// Launches an empty kernel of one warp and synchronises its stream. Nothing comes back, so only the driver's
/// success is checked.
Row measure_launch_sync(const Plan& plan);
/// The same by a CUDA graph of that one kernel.
Row measure_graph_sync(const Plan& plan);
/// Adds two vectors of VectorMessage::usual_size floats: writes them to mapped pinned memory, launches a
/// kernel that reads and writes there, synchronises, and checks each sum.
Row measure_launch_pinned(const Plan& plan);
/// The same by device memory: two copies to it, launch, copy back, synchronise; from and to pinned memory.
Row measure_copies_launch_sync(const Plan& plan);
/// Launches the work of measure_copies_launch_sync as one CUDA graph, captured and instantiated beforehand.
Row measure_graph_copies_sync(const Plan& plan);

/// Their kernels, as compile_raw_kernel.
cuda::CompiledKernel compile_empty_kernel(int architecture);
cuda::CompiledKernel compile_add_kernel(int architecture);

}  // namespace gyre::bench
