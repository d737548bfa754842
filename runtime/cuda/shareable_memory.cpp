#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/shareable_memory.hpp>

namespace gyre::cuda {

namespace {
constexpr uint64_t alignment = 256;
uint64_t multiple_of(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }
}  // namespace

ShareableMemory::ShareableMemory(const Context& context) : context_(context), driver_(context.driver()) {
  if (context.attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0 ||
      context.attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 0) {
    return;
  }
  const CUmemAllocationProp asked = properties();
  driver_.check(
      driver_.cuMemGetAllocationGranularity(&granularity_, &asked, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
      "asking for the granularity of memory");
}

CUmemAllocationProp ShareableMemory::properties() const {
  CUmemAllocationProp asked{};
  asked.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  asked.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  asked.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  asked.location.id = context_.device();
  return asked;
}

CUresult ShareableMemory::add(uint64_t bytes) {
  const CUmemAllocationProp asked = properties();
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = driver_.cuMemCreate(&handle, bytes, &asked, 0);
  if (result != CUDA_SUCCESS) return result;
  const MappedMemory memory = map_memory(driver_, handle, bytes, context_.device(), "memory of buffers");
  try {
    allocations_.emplace(memory.address, Allocation{memory});
  } catch (...) {
    unmap_memory(driver_, memory);
    throw;
  }
  newest_ = memory.address;
  return CUDA_SUCCESS;
}

CUresult ShareableMemory::allocate(uint64_t bytes, CUdeviceptr& address) {
  bytes = multiple_of(bytes, alignment);
  const auto room = [this](CUdeviceptr in) {
    const auto found = allocations_.find(in);
    return found == allocations_.end() ? 0 : found->second.memory.bytes - found->second.used;
  };
  const CUdeviceptr before = newest_;
  CUdeviceptr in = before;
  if (room(before) < bytes) {
    if (const CUresult result = add(multiple_of(bytes, granularity_)); result != CUDA_SUCCESS) return result;
    in = newest_;
    // Small blocks are cut from where more room is left.
    if (room(in) - bytes < room(before)) newest_ = before;
  }
  Allocation& allocation = allocations_.at(in);
  address = in + allocation.used;
  allocation.used += bytes;
  ++allocation.blocks;
  return CUDA_SUCCESS;
}

ShareableMemory::Allocations::const_iterator ShareableMemory::find(CUdeviceptr address) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return allocations_.end();
  --after;
  return address - after->first < after->second.used ? after : allocations_.end();
}

bool ShareableMemory::release(CUdeviceptr address) noexcept {
  const auto found = find(address);
  if (found == allocations_.end()) return false;
  Allocation& allocation = allocations_.at(found->first);
  if (--allocation.blocks != 0) return true;
  const Context::Current current(context_, std::nothrow);
  if (newest_ == found->first) newest_ = 0;
  unmap_memory(driver_, allocation.memory);
  allocations_.erase(found);
  return true;
}

void ShareableMemory::release_all() noexcept {
  const Context::Current current(context_, std::nothrow);
  for (const auto& [address, allocation] : allocations_) unmap_memory(driver_, allocation.memory);
  allocations_.clear();
  newest_ = 0;
}

ShareableMemory::Shared ShareableMemory::share(CUdeviceptr address) const {
  const auto found = find(address);
  if (found == allocations_.end()) {
    throw Error(
        fmt::format("exporting a buffer: there is no memory at {:#x} that another process can map; this "
                    "device has none (CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED), "
                    "so launch with --isolation in_process",
                    address));
  }
  const Context::Current current(context_);
  int descriptor = -1;
  driver_.check(driver_.cuMemExportToShareableHandle(&descriptor, found->second.memory.handle,
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                "exporting a buffer's memory");
  return {Descriptor(descriptor), found->second.memory.bytes, address - found->first};
}

}  // namespace gyre::cuda
