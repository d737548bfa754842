// Device memory of another process that is mapped here: each allocation once, however many parts of it are
// imported.
//
// Beside a live kernel cuIpcCloseMemHandle waits until the kernel ends, and unmapping a descriptor's memory
// returns at once. Mappings of IPC handles therefore stay until this object ends, and are found again.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/descriptor.hpp>

#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace gyre::cuda {

/// An allocation as its process describes it. Not to be trusted.
struct PeerAllocation {
  uint64_t base = 0;   ///< its address there
  uint64_t id = 0;     ///< tells it from an earlier allocation at that address
  uint64_t bytes = 0;  ///< of all of it
  std::optional<CUipcMemHandle> ipc;
  Descriptor descriptor;  ///< of memory that cuMemCreate made, unless `ipc` is there
};

/// One thread at a time, but for has(), which any thread may call.
class ImportedMemory {
 public:
  /// `context` must outlive this.
  explicit ImportedMemory(const Context& context) : context_(context), driver_(context.driver()) {}
  ~ImportedMemory() = default;  // what is mapped stays, unless unmap_all() was called
  ImportedMemory(const ImportedMemory&) = delete;
  ImportedMemory& operator=(const ImportedMemory&) = delete;

  /// Maps the allocation, unless it is mapped, and counts the part as imported. CUDA may take milliseconds to
  /// map it; has() does not wait for that.
  /// @returns the address of the part's first byte on this side
  /// @throws Error  if the handle is not good, or the part is not in the allocation
  CUdeviceptr import(const PeerAllocation& allocation, uint64_t offset, uint64_t bytes);
  /// Returns true if all these bytes are of allocations' parts that are imported.
  bool has(CUdeviceptr address, uint64_t bytes) const;
  /// Takes back one import of that part. Waits for no kernel.
  /// @returns false if there is none
  bool release(CUdeviceptr address, uint64_t bytes) noexcept;
  /// Unmaps everything. Waits for the context's kernels; makes the context current itself.
  void unmap_all() noexcept;

  size_t mappings() const { return mappings_.size(); }

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // the peer's base and id
  using Part = std::pair<CUdeviceptr, uint64_t>;
  struct Mapping {
    CUdeviceptr address = 0;
    uint64_t bytes = 0;
    CUmemGenericAllocationHandle handle = 0;  // 0: by IPC
    std::map<Part, uint32_t> parts;           // that are imported, with their numbers of imports
  };

  Mapping map(const PeerAllocation& allocation) const;
  void unmap(const Mapping& mapping) const noexcept;

  const Context& context_;
  const Driver& driver_;
  mutable std::mutex mutex_;  // held to change mappings_, and by has()
  std::map<Key, Mapping> mappings_;
};

}  // namespace gyre::cuda
