// Device memory that other processes can map: cuMemCreate gives it in multiples of 2 MiB, of which small
// blocks are parts.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/descriptor.hpp>
#include <gyre/runtime/cuda/mapped_memory.hpp>

#include <map>

namespace gyre::cuda {

/// Allocates blocks. Parts of an allocation are not used twice: Gyre's buffers return no memory while workers
/// live (decision 007), and use freed blocks again themselves. One thread at a time.
class ShareableMemory {
 public:
  /// `context` must outlive this. Makes no allocation. Throws Error.
  explicit ShareableMemory(const Context& context);
  ShareableMemory(const ShareableMemory&) = delete;
  ShareableMemory& operator=(const ShareableMemory&) = delete;

  /// Returns false where the device has no such memory.
  bool available() const { return granularity_ != 0; }
  /// Allocates a block, not zeroed, and sets its address, a multiple of 256.
  /// @param bytes  1 to 2^48
  /// @returns      why there is no memory
  /// @throws Error  if the memory cannot be mapped
  CUresult allocate(uint64_t bytes, CUdeviceptr& address);
  /// Gives a block back; waits for no kernel.
  /// @returns false if there is none
  bool release(CUdeviceptr address) noexcept;
  /// Gives all blocks back.
  void release_all() noexcept;

  /// A block's place in its allocation, and the allocation by a descriptor.
  struct Shared {
    Descriptor descriptor;
    uint64_t bytes = 0;   ///< of the whole allocation
    uint64_t offset = 0;  ///< of the block in it
  };
  /// Throws Error if there is no such block.
  Shared share(CUdeviceptr address) const;

 private:
  struct Allocation {
    MappedMemory memory;
    uint64_t used = 0;    // bytes from the beginning on
    uint32_t blocks = 0;  // not given back
  };
  using Allocations = std::map<CUdeviceptr, Allocation>;

  Allocations::const_iterator find(CUdeviceptr address) const;
  CUresult add(uint64_t bytes);
  CUmemAllocationProp properties() const;

  const Context& context_;
  const Driver& driver_;
  size_t granularity_ = 0;
  Allocations allocations_;  // by address
  CUdeviceptr newest_ = 0;   // the allocation that small blocks are cut from; 0: none
};

}  // namespace gyre::cuda
