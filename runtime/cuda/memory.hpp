// Buffers of the CUDA engine: device, pinned and managed memory, and the table in device memory. Copies go
// through a pinned staging block and a stream of their own, so that nothing waits for the kernel that the
// workers are.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/memory/buffer_memory.hpp>

#include <mutex>

namespace gyre::cuda {

class CudaBufferMemory final : public BufferMemory {
 public:
  /// `context` must outlive this. Throws Error.
  CudaBufferMemory(const Context& context, uint32_t entries);
  ~CudaBufferMemory() override;

  uint64_t own_bytes() const override { return BufferMemory::own_bytes() + staging_bytes; }
  std::string refusal(MemoryKind kind) const override;
  MemoryBlock allocate(MemoryKind kind, uint64_t bytes) override;
  void release(const MemoryBlock& block) noexcept override;
  void copy_in(const MemoryBlock& block, uint64_t offset, const void* from, uint64_t bytes) override;
  void copy_out(const MemoryBlock& block, uint64_t offset, void* to, uint64_t bytes) override;
  void zero(const MemoryBlock& block, uint64_t bytes) override;
  void set_entry(uint32_t index, const BufferEntry& entry) override;
  void leak() override { leaked_ = true; }

 protected:
  const BufferEntry* table() const override { return reinterpret_cast<const BufferEntry*>(table_); }

 private:
  static constexpr uint64_t staging_bytes = uint64_t(1) << 20;

  CUdeviceptr allocate_device(uint64_t bytes) const;
  CUdeviceptr allocate_unified(uint64_t bytes) const;
  void* allocate_pinned(uint64_t bytes) const;
  void free_own() noexcept;
  // For a thread that holds the lock, with the context current; returns when the copy is done.
  void copy_to_device(CUdeviceptr to, const void* from, uint64_t bytes);
  void zero_device(CUdeviceptr to, uint64_t bytes);
  void synchronise(const char* doing) const;

  const ForkGuard fork_;
  const Context& context_;
  const Driver& driver_;
  std::mutex mutex_;  // of the stream and the staging block
  CUstream stream_ = nullptr;
  void* staging_ = nullptr;
  CUdeviceptr table_ = 0;
  bool managed_ = false;
  bool leaked_ = false;
};

}  // namespace gyre::cuda
