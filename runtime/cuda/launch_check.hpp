// Launch validation: everything that would make a cooperative launch fail or crash, found before it is tried.
// Pure arithmetic on numbers read from the device and the kernel, so that it is tested without a GPU.
#pragma once

#include <cstdint>
#include <string>

namespace gyre::cuda {

/// What the device allows (cuDeviceGetAttribute).
struct DeviceLimits {
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  bool cooperative_launch = false;
  bool map_host_memory = false;
  bool prohibited = false;  ///< compute mode "prohibited"
  bool watchdog = false;    ///< kernels are ended after a time (display attached)
  uint32_t threads_a_block = 0;
  uint32_t multiprocessors = 0;
  uint32_t shared_bytes_a_block = 0;  ///< without opting in to more
};

/// What the compiled kernel allows (cuFuncGetAttribute, cuOccupancyMaxActiveBlocksPerMultiprocessor).
struct KernelLimits {
  uint32_t threads_a_block = 0;  ///< by its register use
  uint32_t registers = 0;        ///< a thread
  uint32_t static_shared_bytes = 0;
  uint32_t blocks_a_multiprocessor = 0;  ///< resident at once, at the block and shared memory asked for
};

/// What is asked for.
struct LaunchRequest {
  uint32_t grid = 1;    ///< blocks
  uint32_t block = 32;  ///< threads a block
  uint32_t dynamic_shared_bytes = 0;
};

/// What the device itself rules out, a line each with the number asked, the limit, and where the limit comes
/// from; empty if nothing.
std::string device_problems(const LaunchRequest& request, const DeviceLimits& device);

/// The same for the compiled kernel on that device.
std::string kernel_problems(const LaunchRequest& request, const DeviceLimits& device,
                            const KernelLimits& kernel);

}  // namespace gyre::cuda
