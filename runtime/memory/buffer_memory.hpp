// Memory for buffers, and the table by which workers find them: what an engine does of it. The rest of the
// runtime knows that memory only through this.
#pragma once

#include <gyre/device/worker/engine_memory.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace gyre {

/// Selects where a buffer's memory lies.
enum class MemoryKind {
  device,   ///< the engine's memory: fastest for workers; the host copies in and out
  pinned,   ///< page-locked host memory: host and workers read and write it, workers over the bus
  unified,  ///< memory managed by the driver: host and workers read and write it
};
inline constexpr uint32_t memory_kinds = 3;
/// Returns the kind's name, for example "pinned".
std::string_view name(MemoryKind kind);

/// A piece of such memory. A plain value; owns nothing.
struct MemoryBlock {
  MemoryKind kind = MemoryKind::device;
  uint64_t bytes = 0;
  uint64_t address = 0;  ///< the engine's own, a multiple of 256
  void* host = nullptr;  ///< the host's address; null where it has none
};

/// Thread-safe, unless the engine says otherwise. Nothing here waits for workers, but release().
class BufferMemory {
 public:
  /// `entries`: of the table.
  explicit BufferMemory(uint32_t entries);
  virtual ~BufferMemory() = default;
  BufferMemory(const BufferMemory&) = delete;
  BufferMemory& operator=(const BufferMemory&) = delete;

  uint32_t entries() const { return entries_; }
  /// Bytes of the table, and of whatever else buffers share.
  virtual uint64_t own_bytes() const { return uint64_t(entries_) * sizeof(BufferEntry); }
  /// In the handles of this engine's buffers and, in this process, of no other's; never 0.
  uint32_t runtime_tag() const { return runtime_tag_; }
  /// What the workers are to know of it.
  void describe(EngineMemory& memory) const;

  /// Why there is no memory of that kind here; empty if there is.
  virtual std::string refusal(MemoryKind kind) const = 0;
  /// Not zeroed. Throws Error: no room, with the numbers.
  virtual MemoryBlock allocate(MemoryKind kind, uint64_t bytes) = 0;
  /// Gives a block back; on CUDA it waits until no worker lives. Never throws: what cannot be freed is left.
  virtual void release(const MemoryBlock& block) noexcept = 0;
  /// Copies `bytes` bytes into the block from its byte `offset` on, or out of it, and returns when that is
  /// done; the range must lie in the block. Throw Error.
  virtual void copy_in(const MemoryBlock& block, uint64_t offset, const void* from, uint64_t bytes) = 0;
  virtual void copy_out(const MemoryBlock& block, uint64_t offset, void* to, uint64_t bytes) = 0;
  /// Zeroes the first `bytes` bytes. Throws Error.
  virtual void zero(const MemoryBlock& block, uint64_t bytes) = 0;
  /// Writes an entry, its generation last; of one without an address the generation and the element alone.
  /// Messages sent after it find it so. One thread at a time an entry. Throws Error.
  virtual void set_entry(uint32_t index, const BufferEntry& entry) = 0;
  /// Workers that do not stop may still read the table: leaves it allocated, for good. Entries can still be
  /// written.
  virtual void leak() = 0;

 protected:
  /// The table's address for workers.
  virtual const BufferEntry* table() const = 0;

 private:
  const uint32_t entries_;
  const uint32_t runtime_tag_;
};

}  // namespace gyre
