// Device memory that the program allocated with CUDA: what the driver says of it, and how it is handed to an
// engine.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/descriptor.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/memory/buffer_memory.hpp>

namespace gyre::cuda {

/// An allocation of device memory in this process, around the bytes that are to be imported.
struct ForeignAllocation {
  CUdeviceptr base = 0;
  uint64_t bytes = 0;
  uint64_t id = 0;  ///< CU_POINTER_ATTRIBUTE_BUFFER_ID: tells it from an earlier allocation at this address
  DeviceUuid device{};
  int ordinal = -1;             ///< of the device, in this process
  CUcontext context = nullptr;  ///< null: of no context (virtual memory management, pools)
  bool ipc = false;             ///< cuIpcGetMemHandle works
  bool pool = false;            ///< of a stream-ordered pool
  bool shareable = false;       ///< can be exported as a descriptor
};

/// Returns the allocation that has the memory. Makes no context, and waits for nothing.
/// @throws Error  with the numbers: not device memory, managed, or past the allocation's end
ForeignAllocation find_allocation(const Driver& driver, const ForeignMemory& memory);
/// Blocks until the work so far of the memory's stream is done. Throws Error.
void wait_for_stream(const Driver& driver, const ForeignMemory& memory, const ForeignAllocation& allocation);
/// Throws Error unless the allocation is of this device.
void check_device(const ForeignMemory& memory, const ForeignAllocation& allocation, const DeviceUuid& device);

/// What another process opens an allocation by: a handle of cudaMalloc's memory, or else a descriptor.
struct ExportedAllocation {
  CUipcMemHandle ipc{};
  Descriptor descriptor;
};
/// Throws Error, with what to do, if no other process can map the allocation.
ExportedAllocation export_allocation(const Driver& driver, const ForeignMemory& memory,
                                     const ForeignAllocation& allocation);

/// Returns "importing … bytes at …: <why>".
Error import_error(const ForeignMemory& memory, const std::string& why);

}  // namespace gyre::cuda
