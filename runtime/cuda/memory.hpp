// Buffers of the CUDA engine: device, pinned and managed memory, and the table in device memory. Copies go by
// streams of their own, so that nothing waits for the kernel that the workers are.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/fork.hpp>
#include <gyre/bridge/shared_memory.hpp>
#include <gyre/runtime/cuda/imported_memory.hpp>
#include <gyre/runtime/cuda/shareable_memory.hpp>
#include <gyre/runtime/memory/buffer_memory.hpp>

#include <map>
#include <mutex>
#include <optional>

namespace gyre::cuda {

class CudaBufferMemory final : public BufferMemory {
 public:
  /// `context` must outlive this. Throws Error.
  /// @param served_runtime  the tag of a runtime in another process, which maps the pinned buffers
  ///                        too; 0: this memory is this process's own
  CudaBufferMemory(const Context& context, uint32_t entries, uint32_t served_runtime = 0);
  ~CudaBufferMemory() override;

  std::string refusal(MemoryKind kind) const override;
  MemoryBlock allocate(MemoryKind kind, uint64_t bytes) override;
  /// For memory of this process: it is used as it is.
  MemoryBlock import(ForeignMemory memory) override;
  /// For this process, where the program's own contexts use the memory as it is.
  ExportedBlock export_block(const MemoryBlock& block) override;
  void release(const MemoryBlock& block) noexcept override;
  void copy_in(const MemoryBlock& block, uint64_t offset, const void* from, uint64_t bytes) override;
  void copy_out(const MemoryBlock& block, uint64_t offset, void* to, uint64_t bytes) override;
  void zero(const MemoryBlock& block, uint64_t bytes) override;
  void set_entry(uint32_t index, const BufferEntry& entry) override;
  void leak() override { leaked_ = true; }

  /// Returns the descriptor of a pinned block's memory; -1 unless another process is served.
  int descriptor_of(const MemoryBlock& block);
  /// Returns the memory of the served process that is mapped here.
  ImportedMemory& imports() { return imports_; }
  /// Returns the memory that the served process can map.
  const ShareableMemory& shareable() const { return *shareable_; }

 protected:
  const BufferEntry* table() const override { return reinterpret_cast<const BufferEntry*>(table_); }

 private:
  CUdeviceptr allocate_device(uint64_t bytes) const;
  CUdeviceptr allocate_shareable(uint64_t bytes);
  Error no_room(uint64_t bytes, CUresult result) const;
  CUdeviceptr allocate_unified(uint64_t bytes) const;
  void* allocate_pinned(uint64_t bytes) const;
  MemoryBlock allocate_shared(uint64_t bytes);
  void free_own() noexcept;
  // For a thread that holds the lock of in_, with the context current; return when the copy is done.
  void copy_to_device(CUdeviceptr to, const void* from, uint64_t bytes);
  void zero_device(CUdeviceptr to, uint64_t bytes);
  void synchronise(CUstream stream, const char* doing) const;

  const ForkGuard fork_;
  const Context& context_;
  const Driver& driver_;
  // Copies of one direction, one at a time; the other direction's overlap them.
  struct Line {
    std::mutex mutex;
    CUstream stream = nullptr;
  };
  Line in_, out_;
  std::mutex mutex_;                                // of what follows
  std::map<uint64_t, SharedMemory> shared_blocks_;  // by address, where another process is served
  ImportedMemory imports_;
  std::optional<ShareableMemory> shareable_;  // where another process is served
  const bool shared_;
  CUdeviceptr table_ = 0;
  bool managed_ = false;
  bool leaked_ = false;
};

}  // namespace gyre::cuda
