// CUDA's Multi-Process Service (MPS): whether it runs, and the part of a device that an engine process gets
// from it.
#pragma once

#include <gyre/runtime/options.hpp>

#include <string>

namespace gyre::process {

/// Returns where CUDA looks for MPS: the socket `control` in $CUDA_MPS_PIPE_DIRECTORY, else in
/// /tmp/nvidia-mps.
std::string mps_control();
/// Returns true if a daemon listens there. Makes no CUDA call, and sends the daemon nothing.
bool mps_runs();

/// Returns how many of a device's multiprocessors the workers may occupy under MPS.
/// @param blocks  the launch's blocks; 0: one per multiprocessor
/// @param total   the device's multiprocessors
uint32_t multiprocessors_for(const Options& options, uint32_t blocks, uint32_t total);
/// Returns that part in percent, rounded up: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE.
uint32_t percentage_of(uint32_t multiprocessors, uint32_t total);

}  // namespace gyre::process
