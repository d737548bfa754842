// Pinned host memory for a region: the CPU's own cache on one side, mapped over the bus on the other.
#pragma once

#include <gyre/bridge/cuda/region_memory.hpp>
#include <gyre/bridge/shared_memory.hpp>

#include <memory>

namespace gyre::cuda {

/// Owns zeroed pages of ordinary memory from which a region can be made: huge pages if the system has them; a
/// forked child does not inherit them. Needs no driver. Zeroing takes most of the time of making a region,
/// and another thread can do it this way. Move-only.
class OwnPages {
 public:
  /// The most bytes that OwnPages holds.
  static constexpr size_t most_bytes = size_t(256) << 20;

  /// Makes an object without pages.
  OwnPages() = default;
  /// Reserves address space for `room` bytes and touches the first `bytes`; the system zeroes the others at
  /// their first access. Holds no pages if there is no memory, or for more than most_bytes. Any thread.
  OwnPages(size_t bytes, size_t room);

  /// Returns the bytes that there is room for, a multiple of 4096.
  size_t room() const { return pages_ ? pages_.get_deleter().bytes : 0; }
  /// Returns the address of the first page; null without pages.
  const void* address() const { return pages_.get(); }
  /// Passes the first `bytes` to the caller, who unmaps them, and releases the others.
  /// @param bytes  whole pages, at most room()
  void* take(size_t bytes);

 private:
  struct Unmap {
    Unmap() : bytes(0) {}
    explicit Unmap(size_t size) : bytes(size) {}
    void operator()(char* pages) const;
    size_t bytes;
  };
  std::unique_ptr<char, Unmap> pages_;
};

/// Page-locked host memory, mapped into every context.
class PinnedRegion final : public RegionMemory {
 public:
  /// Makes a region of `bytes`, the first `zeroed_bytes` zeroed. The driver locks `pages`, or new
  /// OwnPages: that takes less time than letting the driver allocate (docs/decisions/031). The driver
  /// allocates regions of more than OwnPages::most_bytes, and those whose pages it cannot lock. `context`
  /// must outlive this. Throws Error.
  PinnedRegion(const Context& context, size_t bytes, size_t zeroed_bytes, OwnPages pages = {});
  /// Makes a region of memory that another process maps too. Throws Error if the driver does not lock it.
  PinnedRegion(const Context& context, SharedMemory memory);
  ~PinnedRegion() override;

  /// Returns the descriptor of the region's memory; -1 if no other process can map it.
  int descriptor() const { return shared_.descriptor(); }

 private:
  bool lock_own_pages(size_t bytes, OwnPages pages);
  void let_driver_allocate(size_t bytes, size_t zeroed_bytes);
  void free() noexcept;

  const Context& context_;
  size_t own_bytes_ = 0;  // 0: the driver allocated it
  SharedMemory shared_;   // in place of own pages, where another process maps it
};

/// Locks shared memory for the device, and returns the device's address of it. `context` must be current.
/// Throws Error with `what`, for example "the region", if the driver refuses.
CUdeviceptr lock_shared(const Driver& driver, const SharedMemory& memory, const char* what);

}  // namespace gyre::cuda
