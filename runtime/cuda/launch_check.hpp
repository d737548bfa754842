// Launch validation: everything that would make a cooperative launch fail or crash, found before it is tried.
// Pure arithmetic on numbers read from the device, the kernel and the host, so that it is tested without a
// GPU.
#pragma once

#include <gyre/bridge/cuda/residency.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gyre::cuda {

/// What the device allows (cuDeviceGetAttribute, cuDeviceTotalMem).
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
  uint32_t shared_bytes_a_block = 0;         ///< without opting in to more
  uint32_t shared_bytes_a_block_opt_in = 0;  ///< with opting in
  // What a multiprocessor has for all its blocks; 0: unknown.
  uint32_t threads_a_multiprocessor = 0;
  uint32_t blocks_a_multiprocessor = 0;
  uint32_t registers_a_multiprocessor = 0;
  uint32_t shared_bytes_a_multiprocessor = 0;
  uint32_t shared_bytes_reserved_a_block = 0;  ///< of that, by the system
  bool cluster_launch = false;                 ///< blocks can be launched in clusters
  uint64_t memory_bytes = 0;                   ///< of the device
};

/// What the compiled kernel allows (cuFuncGetAttribute, cuOccupancy…).
struct KernelLimits {
  uint32_t threads_a_block = 0;  ///< by its register use
  uint32_t registers = 0;        ///< a thread
  uint32_t static_shared_bytes = 0;
  uint32_t blocks_a_multiprocessor = 0;  ///< resident at once, at the block and shared memory asked for
  uint32_t local_bytes = 0;              ///< a thread, for what does not fit its registers
  /// Clusters resident at once, of the size asked for; unknown where the driver cannot tell.
  uint32_t clusters = 0;
  bool clusters_known = false;
};

/// Memory of the host that may be pinned.
struct HostMemory {
  uint64_t bytes = 0;
  std::string source;  ///< where the limit comes from
};

/// What is asked for.
struct LaunchRequest {
  uint32_t grid = 1;                    ///< blocks
  bool block_a_multiprocessor = false;  ///< whatever grid says, as many; see on_device
  uint32_t block = 32;                  ///< threads a block
  uint32_t dynamic_shared_bytes = 0;
  uint32_t cluster = 1;       ///< blocks a cluster; 1: no clusters
  uint64_t region_bytes = 0;  ///< pinned host memory
  uint64_t device_bytes = 0;  ///< memory of the device
};

/// A line for each thing that is wrong: the number asked, the limit, and where the limit comes from.
using Problems = std::vector<std::string>;

/// Kernels of other runtimes of this process that stay on the device.
using Others = std::vector<Residency>;

/// All of the following at once; `kernel` may be null, where none could be compiled or loaded, and else holds
/// for with_possible_block(request).
Problems launch_problems(const LaunchRequest& request, const DeviceLimits& device, const HostMemory& host,
                         const KernelLimits* kernel, const Others& others = {});

/// Whether a kernel can be loaded on the device at all, to find out what it would take.
bool can_load_kernels(const DeviceLimits& device);

/// What the device itself rules out; empty if nothing.
Problems device_problems(const LaunchRequest& request, const DeviceLimits& device);

/// The same for the memory of host and device.
Problems memory_problems(const LaunchRequest& request, const DeviceLimits& device, const HostMemory& host);

/// The same for the compiled kernel on that device. `kernel` must hold for the request's block and shared
/// memory.
Problems kernel_problems(const LaunchRequest& request, const DeviceLimits& device, const KernelLimits& kernel,
                         const Others& others = {});

/// The request with the grid that it has on that device.
LaunchRequest on_device(const LaunchRequest& request, const DeviceLimits& device);

/// The request with a block that the device can run: the next multiple of 32, within its limit. For asking
/// what would fit where what was asked for cannot.
LaunchRequest with_possible_block(const LaunchRequest& request, const DeviceLimits& device);

/// What would fit, a line each: blocks of the request's threads, threads a block, shared memory.
std::vector<std::string> what_fits(const LaunchRequest& request, const DeviceLimits& device,
                                   const KernelLimits& kernel);

/// Blocks that can be resident at once on the whole device.
inline uint64_t resident_blocks(const DeviceLimits& device, const KernelLimits& kernel) {
  return uint64_t(kernel.blocks_a_multiprocessor) * device.multiprocessors;
}

/// What the kernel will hold.
Residency residency_of(const LaunchRequest& request, const KernelLimits& kernel);

/// Blocks that can be resident at once on the whole device beside `others`, whose blocks are spread evenly.
/// At most too few: where their remainders lie is unknown.
uint64_t resident_beside(const LaunchRequest& request, const DeviceLimits& device, const KernelLimits& kernel,
                         const Others& others);

/// Dynamic shared memory, in bytes a block, that the kernel's static one leaves.
inline uint32_t dynamic_shared_limit(const DeviceLimits& device, const KernelLimits& kernel) {
  return device.shared_bytes_a_block_opt_in > kernel.static_shared_bytes
             ? device.shared_bytes_a_block_opt_in - kernel.static_shared_bytes
             : 0;
}

/// True where the kernel must opt in to more shared memory than a block gets otherwise.
inline bool needs_opt_in(const LaunchRequest& request, const DeviceLimits& device,
                         uint32_t static_shared_bytes) {
  return uint64_t(request.dynamic_shared_bytes) + static_shared_bytes > device.shared_bytes_a_block;
}

/// Each on a line of its own, indented.
std::string lines(const Problems& problems);

}  // namespace gyre::cuda
