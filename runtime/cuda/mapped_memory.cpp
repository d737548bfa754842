#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/mapped_memory.hpp>

namespace gyre::cuda {

MappedMemory map_memory(const Driver& driver, CUmemGenericAllocationHandle handle, uint64_t bytes,
                        CUdevice device, const std::string& what) {
  MappedMemory memory{0, bytes, handle};
  CUresult result = driver.cuMemAddressReserve(&memory.address, bytes, 0, 0, 0);
  const char* doing = "reserving addresses for ";
  bool mapped = false;
  if (result == CUDA_SUCCESS) {
    doing = "mapping ";
    result = driver.cuMemMap(memory.address, bytes, 0, handle, 0);
    mapped = result == CUDA_SUCCESS;
  }
  if (result == CUDA_SUCCESS) {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    doing = "allowing a device to use ";
    result = driver.cuMemSetAccess(memory.address, bytes, &access, 1);
  }
  if (result == CUDA_SUCCESS) return memory;
  if (mapped) driver.check_or_log(driver.cuMemUnmap(memory.address, bytes), "unmapping memory (cuMemUnmap)");
  if (memory.address != 0) {
    driver.check_or_log(driver.cuMemAddressFree(memory.address, bytes),
                        "giving addresses back (cuMemAddressFree)");
  }
  driver.check_or_log(driver.cuMemRelease(handle), "releasing memory (cuMemRelease)");
  driver.check(result, doing + what);
  return memory;
}

MappedMemory map_descriptor(const Driver& driver, int descriptor, uint64_t bytes, CUdevice device,
                            const std::string& what) {
  CUmemGenericAllocationHandle handle = 0;
  driver.check(driver.cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(intptr_t(descriptor)),
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
               "importing " + what + " by its descriptor");
  return map_memory(driver, handle, bytes, device, what);
}

void unmap_memory(const Driver& driver, const MappedMemory& memory) noexcept {
  driver.check_or_log(driver.cuMemUnmap(memory.address, memory.bytes), "unmapping memory (cuMemUnmap)");
  driver.check_or_log(driver.cuMemAddressFree(memory.address, memory.bytes),
                      "giving addresses back (cuMemAddressFree)");
  driver.check_or_log(driver.cuMemRelease(memory.handle), "releasing memory (cuMemRelease)");
}

}  // namespace gyre::cuda
