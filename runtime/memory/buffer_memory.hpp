// An engine's memory for buffers, and the table by which workers find buffers. The rest of the runtime knows
// that memory only through this interface.
#pragma once

#include <gyre/device/worker/engine_memory.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace gyre {

/// Selects where a buffer's memory lies.
enum class MemoryKind {
  device,    ///< the engine's memory: fastest for workers; the host copies in and out
  pinned,    ///< page-locked host memory: host and workers read and write it, workers over the bus
  unified,   ///< memory managed by the driver: host and workers read and write it; on CUDA in process only
  imported,  ///< device memory that the program allocated: Runtime::import_memory
};
inline constexpr uint32_t memory_kinds = 4;
/// Returns the kind's name, for example "pinned".
std::string_view name(MemoryKind kind);

/// Says what handlers, and Buffer::write, may do to a buffer.
enum class BufferAccess { read_write, read_only };

/// Device memory that the program allocated, to be imported.
struct ForeignMemory {
  uint64_t address = 0;         ///< of the first byte, in this process
  uint64_t bytes = 0;           ///< at least 1
  std::shared_ptr<void> owner;  ///< released once no worker can use the memory any more; may be null
  int64_t stream = -1;          ///< a CUstream whose work is waited for, 1: the default one; -1: none
};

/// A block of buffer memory. A plain value; owns nothing.
struct MemoryBlock {
  MemoryKind kind = MemoryKind::device;
  uint64_t bytes = 0;
  uint64_t address = 0;  ///< the engine's own; a multiple of 256 unless imported
  void* host = nullptr;  ///< the host's address; null if it has none
  uint64_t import = 0;   ///< of imported memory: a number that no other import has
};

/// A block of device memory for CUDA code of the program.
struct ExportedBlock {
  uint64_t address = 0;           ///< in this process
  std::shared_ptr<void> mapping;  ///< to be released once the program uses the memory no more; may wait for
                                  ///< its work on the device
  bool outlives_engine = false;   ///< the memory is there until then, also without the engine
};

/// Allocates buffers and keeps their table. Thread-safe, unless the engine says otherwise. Only release()
/// waits for workers.
class BufferMemory {
 public:
  /// @param entries      number of entries of the table
  /// @param runtime_tag  the tag of the runtime in another process that this memory is for; 0: a new one
  explicit BufferMemory(uint32_t entries, uint32_t runtime_tag = 0);
  virtual ~BufferMemory() = default;
  BufferMemory(const BufferMemory&) = delete;
  BufferMemory& operator=(const BufferMemory&) = delete;

  uint32_t entries() const { return entries_; }
  /// Returns the bytes of the table, and of other memory that all buffers share.
  virtual uint64_t own_bytes() const { return uint64_t(entries_) * sizeof(BufferEntry); }
  /// Returns the tag in the handles of this engine's buffers: unique in this process, never 0.
  uint32_t runtime_tag() const { return runtime_tag_; }
  /// Sets the table's address, its size and the tag in `memory`.
  void describe(EngineMemory& memory) const;

  /// Returns why this engine has no memory of `kind`; empty if it has.
  virtual std::string refusal(MemoryKind kind) const = 0;
  /// Allocates a block, not zeroed. Throws Error with the numbers if there is no room.
  virtual MemoryBlock allocate(MemoryKind kind, uint64_t bytes) = 0;
  /// Makes memory of the program usable by workers, and keeps its owner until release(). Throws Error with
  /// the numbers if the memory is not there, of another device, or of a kind that cannot be imported.
  virtual MemoryBlock import(ForeignMemory memory);
  /// Makes a device block usable by CUDA code of the program. Throws Error if that cannot be.
  virtual ExportedBlock export_block(const MemoryBlock& block);
  /// Frees a block; on CUDA in process waits until no worker runs, unless it is imported. Releases the owner
  /// of an imported one. Never throws: a block that cannot be freed stays allocated.
  virtual void release(const MemoryBlock& block) noexcept = 0;
  /// Copies `bytes` bytes into the block from its byte `offset` on, or out of it; returns when the copy is
  /// done. The range must lie in the block. Both throw Error.
  virtual void copy_in(const MemoryBlock& block, uint64_t offset, const void* from, uint64_t bytes) = 0;
  virtual void copy_out(const MemoryBlock& block, uint64_t offset, void* to, uint64_t bytes) = 0;
  /// Zeroes the first `bytes` bytes. Throws Error.
  virtual void zero(const MemoryBlock& block, uint64_t bytes) = 0;
  /// Writes an entry, its generation last; without an address, only generation and element. Messages sent
  /// afterwards find the new entry. One thread at a time per entry. Throws Error.
  virtual void set_entry(uint32_t index, const BufferEntry& entry) = 0;
  /// Leaves the table allocated: workers that do not stop may still read it. Entries can still be written.
  virtual void leak() = 0;

 protected:
  /// Returns the table's address for workers.
  virtual const BufferEntry* table() const = 0;
  /// Keeps the owner of imported memory, and returns `block` with its number. Throws std::bad_alloc.
  MemoryBlock keep(MemoryBlock block, std::shared_ptr<void> owner);
  /// Returns the owner of imported memory, and keeps it no longer.
  std::shared_ptr<void> take_owner(const MemoryBlock& block) noexcept;
  /// Never releases the owners that are still kept: workers may use their memory.
  void leak_owners() noexcept;

 private:
  using Owners = std::map<uint64_t, std::shared_ptr<void>>;

  const uint32_t entries_;
  const uint32_t runtime_tag_;
  std::mutex owners_mutex_;  // of what follows; never held while an owner is released
  uint64_t imports_ = 0;     // so far
  std::unique_ptr<Owners> owners_ = std::make_unique<Owners>();  // by MemoryBlock::import
};

}  // namespace gyre
