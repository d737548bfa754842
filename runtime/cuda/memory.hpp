// Buffers of the CUDA engine: device, pinned and managed memory, and the table in device memory. Copies go
// through a pinned staging block and a stream of their own, so that nothing waits for the kernel that the
// workers are.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/fork.hpp>
#include <gyre/bridge/shared_memory.hpp>
#include <gyre/runtime/memory/buffer_memory.hpp>

#include <map>
#include <mutex>

namespace gyre::cuda {

class CudaBufferMemory final : public BufferMemory {
 public:
  /// `context` must outlive this. Throws Error.
  /// @param served_runtime  the tag of a runtime in another process, which maps the staging block and the
  ///                        pinned buffers too; 0: this memory is this process's own
  CudaBufferMemory(const Context& context, uint32_t entries, uint32_t served_runtime = 0);
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

  /// Bytes of the staging block.
  static constexpr uint64_t staging_bytes = uint64_t(1) << 20;
  /// Returns the staging block. Copies of at most staging_bytes from and to it copy once.
  void* staging() const { return staging_; }
  /// Returns the descriptor of the staging block's memory; -1 unless another process is served.
  int staging_descriptor() const { return shared_staging_.descriptor(); }
  /// Returns the descriptor of a pinned block's memory; -1 unless another process is served.
  int descriptor_of(const MemoryBlock& block);

 protected:
  const BufferEntry* table() const override { return reinterpret_cast<const BufferEntry*>(table_); }

 private:
  CUdeviceptr allocate_device(uint64_t bytes) const;
  CUdeviceptr allocate_unified(uint64_t bytes) const;
  void* allocate_pinned(uint64_t bytes) const;
  MemoryBlock allocate_shared(uint64_t bytes);
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
  SharedMemory shared_staging_;                     // behind staging_, where another process is served
  std::map<uint64_t, SharedMemory> shared_blocks_;  // by address, likewise; guarded by mutex_
  const bool shared_;
  CUdeviceptr table_ = 0;
  bool managed_ = false;
  bool leaked_ = false;
};

}  // namespace gyre::cuda
