// Buffers of engines that run on the CPU: plain memory, whatever the kind.
#pragma once

#include <gyre/runtime/memory/buffer_memory.hpp>

#include <memory>

namespace gyre {

class HostBufferMemory final : public BufferMemory {
 public:
  /// Throws std::bad_alloc.
  explicit HostBufferMemory(uint32_t entries);
  ~HostBufferMemory() override;

  std::string refusal(MemoryKind kind) const override;
  MemoryBlock allocate(MemoryKind kind, uint64_t bytes) override;
  void release(const MemoryBlock& block) noexcept override;
  void copy_in(const MemoryBlock& block, uint64_t offset, const void* from, uint64_t bytes) override;
  void copy_out(const MemoryBlock& block, uint64_t offset, void* to, uint64_t bytes) override;
  void zero(const MemoryBlock& block, uint64_t bytes) override;
  void set_entry(uint32_t index, const BufferEntry& entry) override;
  void leak() override { leaked_ = true; }

 protected:
  const BufferEntry* table() const override { return table_.get(); }

 private:
  std::unique_ptr<BufferEntry[]> table_;
  bool leaked_ = false;  // then the table stays, and entries are still written: buffers may end later
};

}  // namespace gyre
