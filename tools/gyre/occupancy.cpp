#include "occupancy.hpp"

#include <cuda_occupancy.h>
#include <fmt/format.h>
#include <gyre/runtime/errors.hpp>

#include <climits>

namespace gyre::tools {

namespace {

constexpr uint32_t kibibyte = 1024;
constexpr uint32_t registers = 65536;  // of a multiprocessor, and of a block, on all of these
constexpr uint32_t warp = 32;
constexpr uint32_t shared_bytes_without_opting_in = 48 * kibibyte;

// CUDA C++ programming guide, "Technical Specifications per Compute Capability".
constexpr MultiprocessorLimits all[] = {
    {75, 1024, 64 * kibibyte, 64 * kibibyte, 0},
    {80, 2048, 164 * kibibyte, 163 * kibibyte, kibibyte},
    {86, 1536, 100 * kibibyte, 99 * kibibyte, kibibyte},
    {87, 1536, 164 * kibibyte, 163 * kibibyte, kibibyte},
    {89, 1536, 100 * kibibyte, 99 * kibibyte, kibibyte},
    {90, 2048, 228 * kibibyte, 227 * kibibyte, kibibyte},
    {100, 2048, 228 * kibibyte, 227 * kibibyte, kibibyte},
    {103, 2048, 228 * kibibyte, 227 * kibibyte, kibibyte},
    {120, 1536, 100 * kibibyte, 99 * kibibyte, kibibyte},
};

std::string names_of(unsigned limits) {
  std::string names;
  const auto add = [&](unsigned limit, const char* name) {
    if ((limits & limit) != 0) names += fmt::format("{}{}", names.empty() ? "" : " and ", name);
  };
  add(OCC_LIMIT_REGISTERS, "registers");
  add(OCC_LIMIT_SHARED_MEMORY, "shared memory");
  add(OCC_LIMIT_WARPS, "threads");
  add(OCC_LIMIT_BLOCKS, "blocks");
  add(OCC_LIMIT_BARRIERS, "barriers");
  return names;
}

}  // namespace

const MultiprocessorLimits* find_multiprocessor(int architecture) {
  for (const MultiprocessorLimits& limits : all) {
    if (limits.architecture == architecture) return &limits;
  }
  return nullptr;
}

Occupancy occupancy(int architecture, const BlockNeeds& block) {
  const MultiprocessorLimits* const limits = find_multiprocessor(architecture);
  if (limits == nullptr) {
    std::string known;
    for (const MultiprocessorLimits& other : all) known += fmt::format(" sm_{}", other.architecture);
    throw BadOptions(
        fmt::format("working out the occupancy for sm_{}: known are{}; on a machine with that GPU the driver "
                    "tells",
                    architecture, known));
  }
  cudaOccDeviceProp device;
  device.computeMajor = architecture / 10;
  device.computeMinor = architecture % 10;
  device.maxThreadsPerBlock = 1024;
  device.maxThreadsPerMultiprocessor = int(limits->threads);
  device.regsPerBlock = device.regsPerMultiprocessor = int(registers);
  device.warpSize = int(warp);
  device.sharedMemPerBlock = shared_bytes_without_opting_in;
  device.sharedMemPerMultiprocessor = limits->shared_bytes;
  device.sharedMemPerBlockOptin = limits->shared_bytes_a_block;
  device.reservedSharedMemPerBlock = limits->reserved_bytes_a_block;
  device.numSms = 1;
  cudaOccFuncAttributes kernel;
  kernel.maxThreadsPerBlock = INT_MAX;
  kernel.numRegs = int(block.registers);
  kernel.sharedSizeBytes = block.static_shared_bytes;
  kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
  kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  kernel.maxDynamicSharedSizeBytes = block.dynamic_shared_bytes;
  kernel.numBlockBarriers = 1;
  const cudaOccDeviceState state;
  cudaOccResult result{};
  const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
      &result, &device, &kernel, &state, int(block.threads), block.dynamic_shared_bytes);
  if (error == CUDA_OCC_ERROR_UNKNOWN_DEVICE) {
    throw BadOptions(fmt::format(
        "working out the occupancy for sm_{}: the toolkit that this was built with does not know it",
        architecture));
  }
  Occupancy found;
  found.most_threads = limits->threads;
  if (error != CUDA_OCC_SUCCESS) {
    found.limited_by = fmt::format("a block of {} threads with {} bytes of shared memory", block.threads,
                                   block.static_shared_bytes + block.dynamic_shared_bytes);
    return found;
  }
  found.blocks = uint32_t(result.activeBlocksPerMultiprocessor);
  found.limited_by = names_of(result.limitingFactors);
  found.threads = found.blocks * block.threads;
  return found;
}

}  // namespace gyre::tools
