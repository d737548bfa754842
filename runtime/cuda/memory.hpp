// Buffers of the CUDA engine: device, pinned and managed memory, and the table in device memory. Copies go by
// streams of their own, so that nothing waits for the kernel that the workers are.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/fork.hpp>
#include <gyre/bridge/shared_memory.hpp>
#include <gyre/runtime/cuda/imported_memory.hpp>
#include <gyre/runtime/memory/buffer_memory.hpp>

#include <array>
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

  uint64_t own_bytes() const override { return BufferMemory::own_bytes() + shared_staging_.bytes(); }
  std::string refusal(MemoryKind kind) const override;
  MemoryBlock allocate(MemoryKind kind, uint64_t bytes) override;
  /// For memory of this process: it is used as it is.
  MemoryBlock import(ForeignMemory memory) override;
  void release(const MemoryBlock& block) noexcept override;
  void copy_in(const MemoryBlock& block, uint64_t offset, const void* from, uint64_t bytes) override;
  void copy_out(const MemoryBlock& block, uint64_t offset, void* to, uint64_t bytes) override;
  void zero(const MemoryBlock& block, uint64_t bytes) override;
  void set_entry(uint32_t index, const BufferEntry& entry) override;
  void leak() override { leaked_ = true; }

  /// Returns the staging block, of staging_halves times copy_chunk_bytes; none unless another process is
  /// served, which fills or empties one half while the other is copied.
  const SharedMemory& staging() const { return shared_staging_; }
  /// Begins a copy between a block without a host address and page-locked memory. Returns once the copies
  /// begun with other halves are done, and if `last` this one too. Throws Error.
  void begin_copy_in(const MemoryBlock& block, const void* from, uint32_t half, bool last);
  void begin_copy_out(const MemoryBlock& block, void* to, uint32_t half, bool last);
  /// Returns the descriptor of a pinned block's memory; -1 unless another process is served.
  int descriptor_of(const MemoryBlock& block);
  /// Returns the memory of the served process that is mapped here.
  ImportedMemory& imports() { return imports_; }

 protected:
  const BufferEntry* table() const override { return reinterpret_cast<const BufferEntry*>(table_); }

 private:
  CUdeviceptr allocate_device(uint64_t bytes) const;
  CUdeviceptr allocate_unified(uint64_t bytes) const;
  void* allocate_pinned(uint64_t bytes) const;
  MemoryBlock allocate_shared(uint64_t bytes);
  void free_own() noexcept;
  // For a thread that holds the lock, with the context current; return when the copy is done.
  void copy_to_device(CUdeviceptr to, const void* from, uint64_t bytes);
  void zero_device(CUdeviceptr to, uint64_t bytes);
  void synchronise(uint32_t half, const char* doing) const;
  void wait_for_others(uint32_t half, bool last, const char* doing) const;

  const ForkGuard fork_;
  const Context& context_;
  const Driver& driver_;
  std::mutex mutex_;                                // of the streams
  std::array<CUstream, staging_halves> streams_{};  // of copies
  SharedMemory shared_staging_;                     // where another process is served
  std::map<uint64_t, SharedMemory> shared_blocks_;  // by address, likewise; guarded by mutex_
  ImportedMemory imports_;
  const bool shared_;
  CUdeviceptr table_ = 0;
  bool managed_ = false;
  bool leaked_ = false;
};

}  // namespace gyre::cuda
