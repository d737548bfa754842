#include <fmt/format.h>
#include <gyre/runtime/cuda/foreign_memory.hpp>
#include <gyre/runtime/cuda/program_context.hpp>

#include <algorithm>

namespace gyre::cuda {

namespace {

// An attribute, or `otherwise` where the driver knows none.
template <class Value>
Value attribute(const Driver& driver, CUpointer_attribute which, CUdeviceptr address, Value otherwise) {
  Value value{};
  return driver.cuPointerGetAttribute(&value, which, address) == CUDA_SUCCESS ? value : otherwise;
}

}  // namespace

Error import_error(const ForeignMemory& memory, const std::string& why) {
  return Error(fmt::format("importing {} bytes at {:#x}: {}", memory.bytes, memory.address, why));
}

ForeignAllocation find_allocation(const Driver& driver, const ForeignMemory& memory) {
  const CUdeviceptr address = memory.address;
  unsigned int type = 0;
  const CUresult known = driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  if (known == CUDA_ERROR_INVALID_VALUE) {
    throw import_error(memory,
                       "CUDA knows no memory there: it is ordinary host memory, or was freed; allocate a "
                       "buffer and copy the elements with Buffer::write");
  }
  driver.check(known, import_error(memory, "asking what memory it is").what());
  if (attribute(driver, CU_POINTER_ATTRIBUTE_IS_MANAGED, address, 0u) != 0) {
    throw import_error(memory,
                       "it is managed memory, which moves between host and device; allocate it with "
                       "cudaMalloc, or copy the elements to a buffer with Buffer::write");
  }
  if (type != CU_MEMORYTYPE_DEVICE) {
    throw import_error(
        memory,
        "it is page-locked host memory; allocate a buffer with MemoryKind::pinned, or copy the "
        "elements with Buffer::write");
  }
  ForeignAllocation found;
  found.context = attribute(driver, CU_POINTER_ATTRIBUTE_CONTEXT, address, static_cast<CUcontext>(nullptr));
  found.pool = attribute(driver, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address,
                         static_cast<CUmemoryPool>(nullptr)) != nullptr;
  // Attributes need no context, unlike cuMemGetAddressRange. Where cuMemMap was called the range is all that
  // was reserved, and the mapping is what one handle stands for.
  const bool mapped = found.context == nullptr && !found.pool;
  found.base = attribute(
      driver, mapped ? CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR : CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
      address, address);
  found.bytes =
      attribute(driver, mapped ? CU_POINTER_ATTRIBUTE_MAPPING_SIZE : CU_POINTER_ATTRIBUTE_RANGE_SIZE, address,
                size_t(0));
  const uint64_t offset = address - found.base;
  if (offset > found.bytes || memory.bytes > found.bytes - offset) {
    throw import_error(
        memory,
        fmt::format("its allocation has {} bytes at {:#x}, and {} from there on; import less, and each "
                    "allocation by itself (PyTorch: without expandable_segments)",
                    found.bytes, found.base, found.bytes - std::min(offset, found.bytes)));
  }
  found.id = attribute(driver, CU_POINTER_ATTRIBUTE_BUFFER_ID, address, 0ull);
  const int ordinal = attribute(driver, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address, -1);
  if (ordinal >= 0) found.device = uuid_of(driver, find_device(driver, ordinal));
  found.ordinal = ordinal;
  found.ipc = attribute(driver, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address, 0u) != 0;
  const auto types = attribute(driver, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, address, 0ull);
  found.shareable = !found.pool && (types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
  return found;
}

void wait_for_stream(const Driver& driver, const ForeignMemory& memory, const ForeignAllocation& allocation) {
  if (memory.stream < 0) return;
  // Memory of no context: the default streams are those of the primary context, where the program has one.
  CUcontext primary = nullptr;
  CUdevice device = 0;
  unsigned int flags = 0;
  int active = 0;
  if (allocation.context == nullptr && driver.cuDeviceGet(&device, allocation.ordinal) == CUDA_SUCCESS &&
      driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active != 0 &&
      driver.cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) {
    primary = nullptr;
  }
  CUresult result = CUDA_SUCCESS;
  {
    const MaybeCurrent current(driver, primary != nullptr ? primary : allocation.context);
    result = driver.cuStreamSynchronize(reinterpret_cast<CUstream>(memory.stream));
  }
  if (primary != nullptr) {
    driver.check_or_log(driver.cuDevicePrimaryCtxRelease(device),
                        "releasing the primary context (cuDevicePrimaryCtxRelease)");
  }
  driver.check(result, import_error(memory, fmt::format("waiting for stream {:#x}", memory.stream)).what());
}

void check_device(const ForeignMemory& memory, const ForeignAllocation& allocation,
                  const DeviceUuid& device) {
  if (allocation.device == device) return;
  throw import_error(memory, fmt::format("it is of device {}, and the workers run on {}; copy it to that "
                                         "device, or launch with its --device",
                                         text_of(allocation.device), text_of(device)));
}

ExportedAllocation export_allocation(const Driver& driver, const ForeignMemory& memory,
                                     const ForeignAllocation& allocation) {
  const MaybeCurrent current(driver, allocation.context);
  ExportedAllocation exported;
  if (allocation.ipc) {
    driver.check(driver.cuIpcGetMemHandle(&exported.ipc, allocation.base),
                 import_error(memory, "asking for its IPC handle").what());
    return exported;
  }
  if (allocation.pool) {
    throw import_error(
        memory,
        "it is of a stream-ordered pool (cudaMallocAsync), which no other process can map; "
        "allocate it with cudaMalloc (PyTorch: PYTORCH_CUDA_ALLOC_CONF=backend:native), or copy "
        "the elements to a buffer");
  }
  if (!allocation.shareable) {
    throw import_error(memory,
                       "it was allocated by cuMemCreate without a handle type that another process can map; "
                       "ask for CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, or allocate it with cudaMalloc");
  }
  CUmemGenericAllocationHandle handle = 0;
  driver.check(driver.cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(memory.address)),
               import_error(memory, "asking for its allocation handle").what());
  int descriptor = -1;
  const CUresult result =
      driver.cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  driver.check_or_log(driver.cuMemRelease(handle), "importing memory (cuMemRelease)");
  driver.check(result, import_error(memory, "exporting its allocation handle").what());
  exported.descriptor = Descriptor(descriptor);
  return exported;
}

}  // namespace gyre::cuda
