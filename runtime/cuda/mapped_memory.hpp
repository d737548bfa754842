// Device memory that cuMemCreate made, here or in another process, at addresses of this process.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>

#include <cstdint>
#include <string>

namespace gyre::cuda {

/// Memory that is mapped. A plain value; owns nothing.
struct MappedMemory {
  CUdeviceptr address = 0;
  uint64_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
};

/// Maps all of a handle's memory for a device, to be read and written. Takes the handle, also where it fails.
/// Waits for no kernel.
/// @param bytes  the memory's size
/// @param what   whose memory it is, for errors: "memory of a program"
/// @throws Error
MappedMemory map_memory(const Driver& driver, CUmemGenericAllocationHandle handle, uint64_t bytes,
                        CUdevice device, const std::string& what);
/// Imports the memory of a descriptor, and maps it likewise. The descriptor stays the caller's.
MappedMemory map_descriptor(const Driver& driver, int descriptor, uint64_t bytes, CUdevice device,
                            const std::string& what);
/// Unmaps the memory and releases its handle. Returns at once, also beside kernels that use the memory.
void unmap_memory(const Driver& driver, const MappedMemory& memory) noexcept;

}  // namespace gyre::cuda
