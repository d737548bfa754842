#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/imported_memory.hpp>
#include <gyre/runtime/cuda/mapped_memory.hpp>

namespace gyre::cuda {

CUdeviceptr ImportedMemory::import(const PeerAllocation& allocation, uint64_t offset, uint64_t bytes) {
  const auto refuse_past = [&](uint64_t end) {
    if (bytes == 0 || offset > end || bytes > end - offset) {
      throw Error(
          fmt::format("importing memory of a program: {} bytes from byte {} on, and the allocation has "
                      "{}",
                      bytes, offset, end));
    }
  };
  refuse_past(allocation.bytes);
  const Context::Current current(context_);
  auto found = mappings_.find({allocation.base, allocation.id});
  if (found == mappings_.end()) {
    const Mapping mapping = map(allocation);
    try {
      const std::lock_guard lock(mutex_);
      found = mappings_.emplace(Key{allocation.base, allocation.id}, mapping).first;
    } catch (...) {
      unmap(mapping);
      throw;
    }
  }
  refuse_past(found->second.bytes);  // it is the first description's
  const CUdeviceptr address = found->second.address + offset;
  const std::lock_guard lock(mutex_);
  ++found->second.parts[{address, bytes}];
  return address;
}

ImportedMemory::Mapping ImportedMemory::map(const PeerAllocation& allocation) const {
  Mapping mapping;
  if (!allocation.ipc) {
    const MappedMemory memory = map_descriptor(driver_, allocation.descriptor.get(), allocation.bytes,
                                               context_.device(), "memory of a program");
    mapping.address = memory.address;
    mapping.bytes = memory.bytes;
    mapping.handle = memory.handle;
    return mapping;
  }
  driver_.check(
      driver_.cuIpcOpenMemHandle(&mapping.address, *allocation.ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
      "opening memory of a program by its IPC handle");
  mapping.bytes = allocation.bytes;
  // The allocation's true size, where the driver says it.
  CUdeviceptr base = 0;
  size_t bytes = 0;
  if (driver_.cuMemGetAddressRange(&base, &bytes, mapping.address) == CUDA_SUCCESS && bytes < mapping.bytes)
    mapping.bytes = bytes;
  return mapping;
}

bool ImportedMemory::has(CUdeviceptr address, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, mapping] : mappings_) {
    for (const auto& [part, imports] : mapping.parts) {
      const uint64_t offset = address - part.first;  // wraps below the part
      if (offset <= part.second && bytes <= part.second - offset) return true;
    }
  }
  return false;
}

bool ImportedMemory::release(CUdeviceptr address, uint64_t bytes) noexcept {
  for (auto each = mappings_.begin(); each != mappings_.end(); ++each) {
    Mapping& mapping = each->second;
    const auto part = mapping.parts.find({address, bytes});
    if (part == mapping.parts.end()) continue;
    const std::lock_guard lock(mutex_);
    if (--part->second == 0) mapping.parts.erase(part);
    if (mapping.parts.empty() && mapping.handle != 0) {
      const Context::Current current(context_, std::nothrow);
      unmap(mapping);
      mappings_.erase(each);
    }
    return true;
  }
  return false;
}

void ImportedMemory::unmap(const Mapping& mapping) const noexcept {
  if (mapping.handle == 0) {
    driver_.check_or_log(driver_.cuIpcCloseMemHandle(mapping.address),
                         "closing memory of a program (cuIpcCloseMemHandle)");
    return;
  }
  unmap_memory(driver_, {mapping.address, mapping.bytes, mapping.handle});
}

void ImportedMemory::unmap_all() noexcept {
  const Context::Current current(context_, std::nothrow);
  for (const auto& [key, mapping] : mappings_) unmap(mapping);
  const std::lock_guard lock(mutex_);
  mappings_.clear();
}

}  // namespace gyre::cuda
