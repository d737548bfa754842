#include <fmt/format.h>
#include <gyre/bridge/cuda/pinned.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/foreign_memory.hpp>
#include <gyre/runtime/cuda/loaded_kernel.hpp>
#include <gyre/runtime/cuda/memory.hpp>
#include <gyre/runtime/cuda/program_context.hpp>

#include <algorithm>
#include <cstring>

namespace gyre::cuda {

CudaBufferMemory::CudaBufferMemory(const Context& context, uint32_t entries, uint32_t served_runtime)
    : BufferMemory(entries, served_runtime),
      context_(context),
      driver_(context.driver()),
      imports_(context),
      shared_(served_runtime != 0),
      managed_(context.attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) != 0 &&
               context.attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) != 0) {
  const Context::Current current(context_);
  try {
    for (Line* line : {&in_, &out_})
      driver_.check(driver_.cuStreamCreate(&line->stream, CU_STREAM_NON_BLOCKING),
                    "creating a stream of copies");
    if (shared_) shareable_.emplace(context_);
    const uint64_t table_bytes = std::max<uint64_t>(entries, 1) * sizeof(BufferEntry);
    table_ = allocate_device(table_bytes);
    zero_device(table_, table_bytes);
  } catch (...) {
    free_own();
    throw;
  }
}

CudaBufferMemory::~CudaBufferMemory() {
  if (leaked_ || fork_.forked()) leak_owners();
  if (leaked_) return;
  imports_.unmap_all();
  if (shareable_) shareable_->release_all();
  const Context::Current current(context_, std::nothrow);
  free_own();
}

// Where the context is dead the calls fail, and all went with it.
void CudaBufferMemory::free_own() noexcept {
  if (table_ != 0) driver_.check_or_log(driver_.cuMemFree(table_), "freeing the buffers' table (cuMemFree)");
  for (const Line* line : {&in_, &out_}) {
    if (line->stream != nullptr)
      driver_.check_or_log(driver_.cuStreamDestroy(line->stream),
                           "ending a stream of copies (cuStreamDestroy)");
  }
}

std::string CudaBufferMemory::refusal(MemoryKind kind) const {
  if (kind != MemoryKind::unified || managed_) return {};
  return "this device lets the host use managed memory only while no kernel runs "
         "(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS is 0), and the workers are one; use "
         "MemoryKind::pinned or MemoryKind::device";
}

CUdeviceptr CudaBufferMemory::allocate_device(uint64_t bytes) const {
  CUdeviceptr address = 0;
  const CUresult result = driver_.cuMemAlloc(&address, bytes);
  if (result != CUDA_SUCCESS) throw no_room(bytes, result);
  return address;
}

CUdeviceptr CudaBufferMemory::allocate_shareable(uint64_t bytes) {
  constexpr uint64_t most_bytes = uint64_t(1) << 48;
  if (!shareable_ || !shareable_->available() || bytes == 0 || bytes > most_bytes)
    return allocate_device(bytes);
  CUdeviceptr address = 0;
  const CUresult result = shareable_->allocate(bytes, address);
  // Some machines that have such memory do not permit it.
  if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED) return allocate_device(bytes);
  if (result != CUDA_SUCCESS) throw no_room(bytes, result);
  return address;
}

Error CudaBufferMemory::no_room(uint64_t bytes, CUresult result) const {
  size_t free = 0, total = 0;
  std::string there;
  if (driver_.cuMemGetInfo(&free, &total) == CUDA_SUCCESS)
    there = fmt::format(" (the device has {} bytes free of {})", free, total);
  return Error(
      fmt::format("allocating {} bytes of device memory{}: {}", bytes, there, driver_.explain(result)));
}

CUdeviceptr CudaBufferMemory::allocate_unified(uint64_t bytes) const {
  CUdeviceptr address = 0;
  driver_.check(driver_.cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL),
                fmt::format("allocating {} bytes of managed memory", bytes));
  // It stays with the host and the device maps it, so that nothing moves by pages. Advice: it may be refused.
  if (driver_.advise != nullptr) {
    const char* const doing = "keeping a buffer's unified memory on the host (cuMemAdvise)";
    driver_.check_or_log(driver_.advise(address, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU),
                         doing);
    driver_.check_or_log(driver_.advise(address, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, context_.device()),
                         doing);
  }
  return address;
}

void* CudaBufferMemory::allocate_pinned(uint64_t bytes) const {
  void* host = nullptr;
  driver_.check(driver_.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                fmt::format("allocating {} bytes of pinned host memory", bytes));
  return host;
}

MemoryBlock CudaBufferMemory::allocate_shared(uint64_t bytes) {
  // Its pages are made at once: more than there are would end a process.
  if (const HostMemory most = host_memory(); bytes > most.bytes) {
    throw Error(fmt::format("allocating {} bytes of pinned host memory: {} has {}; ask for less", bytes,
                            most.source, most.bytes));
  }
  SharedMemory memory("gyre-buffer", bytes, bytes);
  const CUdeviceptr address = lock_shared(driver_, memory, "a pinned buffer");
  void* const host = memory.address();
  const std::lock_guard lock(mutex_);
  shared_blocks_.emplace(address, std::move(memory));
  return {MemoryKind::pinned, bytes, address, host};
}

int CudaBufferMemory::descriptor_of(const MemoryBlock& block) {
  const std::lock_guard lock(mutex_);
  const auto found = shared_blocks_.find(block.address);
  return found == shared_blocks_.end() ? -1 : found->second.descriptor();
}

// One call that may fail, and nothing to undo: giving memory back would wait for live workers.
MemoryBlock CudaBufferMemory::allocate(MemoryKind kind, uint64_t bytes) {
  const Context::Current current(context_);
  if (kind == MemoryKind::device) return {kind, bytes, allocate_shareable(bytes), nullptr};
  if (shared_ && kind == MemoryKind::pinned) return allocate_shared(bytes);
  // Such memory has one address on both sides (unified addressing, on every 64-bit platform).
  void* const host =
      kind == MemoryKind::pinned ? allocate_pinned(bytes) : reinterpret_cast<void*>(allocate_unified(bytes));
  return {kind, bytes, reinterpret_cast<uint64_t>(host), host};
}

MemoryBlock CudaBufferMemory::import(ForeignMemory memory) {
  const ForeignAllocation allocation = find_allocation(driver_, memory);
  check_device(memory, allocation, uuid_of(driver_, context_.device()));
  wait_for_stream(driver_, memory, allocation);
  return keep({MemoryKind::imported, memory.bytes, memory.address, nullptr, 0}, std::move(memory.owner));
}

ExportedBlock CudaBufferMemory::export_block(const MemoryBlock& block) {
  // Whoever has the export keeps the engine, and this with it.
  const auto wait_for_program = [this](void*) {
    if (fork_.forked()) return;
    try {
      const auto program = find_program_context(driver_, uuid_of(driver_, context_.device()));
      if (program && !context_.is(*program))
        wait_for_context(driver_, *program);  // there it would wait for workers
    } catch (const Error&) {                  // CUDA is gone, and the work with it
    }
  };
  return {block.address, std::shared_ptr<void>(nullptr, wait_for_program), false};
}

void CudaBufferMemory::release(const MemoryBlock& block) noexcept {
  if (fork_.forked()) return;  // it is the parent's
  if (block.kind == MemoryKind::imported) {
    (void)take_owner(block);
    return;
  }
  // Where the context is dead the call fails, and the memory went with it.
  const Context::Current current(context_, std::nothrow);
  if (block.kind == MemoryKind::pinned && shared_) {
    driver_.check_or_log(driver_.cuMemHostUnregister(block.host), "freeing a buffer (cuMemHostUnregister)");
    const std::lock_guard lock(mutex_);
    shared_blocks_.erase(block.address);
  } else if (block.kind == MemoryKind::pinned) {
    driver_.check_or_log(driver_.cuMemFreeHost(block.host), "freeing a buffer (cuMemFreeHost)");
  } else if (!shareable_ || !shareable_->release(block.address)) {
    driver_.check_or_log(driver_.cuMemFree(block.address), "freeing a buffer (cuMemFree)");
  }
}

void CudaBufferMemory::copy_in(const MemoryBlock& block, uint64_t offset, const void* from, uint64_t bytes) {
  if (block.host != nullptr) {
    std::memcpy(static_cast<char*>(block.host) + offset, from, bytes);
    return;
  }
  const Context::Current current(context_);
  const std::lock_guard lock(in_.mutex);
  copy_to_device(block.address + offset, from, bytes);
}

void CudaBufferMemory::copy_out(const MemoryBlock& block, uint64_t offset, void* to, uint64_t bytes) {
  if (block.host != nullptr) {
    std::memcpy(to, static_cast<const char*>(block.host) + offset, bytes);
    return;
  }
  const Context::Current current(context_);
  const std::lock_guard lock(out_.mutex);
  driver_.check(driver_.cuMemcpyDtoHAsync(to, block.address + offset, bytes, out_.stream),
                "reading a buffer");
  synchronise(out_.stream, "reading a buffer");
}

void CudaBufferMemory::zero(const MemoryBlock& block, uint64_t bytes) {
  if (block.host != nullptr) {
    std::memset(block.host, 0, bytes);
    return;
  }
  const Context::Current current(context_);
  const std::lock_guard lock(in_.mutex);
  zero_device(block.address, bytes);
}

void CudaBufferMemory::set_entry(uint32_t index, const BufferEntry& entry) {
  const Context::Current current(context_);
  const std::lock_guard lock(in_.mutex);
  const CUdeviceptr there = table_ + index * sizeof(BufferEntry);
  constexpr uint64_t first = offsetof(BufferEntry, generation);
  const char* const bytes = reinterpret_cast<const char*>(&entry);
  if (entry.address != 0) copy_to_device(there, bytes, first);
  copy_to_device(there + first, bytes + first, sizeof entry - first);
}

// The driver copies what is not page-locked through memory of its own, beside live kernels too.
void CudaBufferMemory::copy_to_device(CUdeviceptr to, const void* from, uint64_t bytes) {
  driver_.check(driver_.cuMemcpyHtoDAsync(to, from, bytes, in_.stream), "writing a buffer");
  synchronise(in_.stream, "writing a buffer");
}

// By copies: a memset may be a kernel that the driver has yet to load, and loading waits for live ones.
void CudaBufferMemory::zero_device(CUdeviceptr to, uint64_t bytes) {
  alignas(4096) static std::byte zeros[1 << 20];  // never written
  for (uint64_t done = 0; done < bytes; done += sizeof zeros) {
    driver_.check(driver_.cuMemcpyHtoDAsync(to + done, zeros, std::min<uint64_t>(sizeof zeros, bytes - done),
                                            in_.stream),
                  "zeroing a buffer");
  }
  synchronise(in_.stream, "zeroing a buffer");
}

void CudaBufferMemory::synchronise(CUstream stream, const char* doing) const {
  driver_.check(driver_.cuStreamSynchronize(stream), doing);
}

}  // namespace gyre::cuda
