// Pinned host memory for a region: the CPU's own cache on one side, mapped over the bus on the other.
#pragma once

#include <gyre/bridge/cuda/region_memory.hpp>

#include <memory>

namespace gyre::cuda {

/// Pages of the process's own that a region can be made of: zeroed, huge ones where the system has them, none
/// of them in a forked child. The driver is not needed for it, and most of what a region takes is that the
/// system zeroes its pages: that can be done beside something else. Move-only.
class OwnPages {
 public:
  /// That there may be.
  static constexpr size_t most_bytes = size_t(256) << 20;

  /// None.
  OwnPages() = default;
  /// Address space for `room` bytes, of which the first `bytes`, no more, are touched: the others the system
  /// zeroes when they are. None where there is none, or for more than most_bytes. Any thread.
  OwnPages(size_t bytes, size_t room);

  /// Whole pages of 4096 bytes that there is room for.
  size_t room() const { return pages_ ? pages_.get_deleter().bytes : 0; }
  /// Where they begin; null where there are none.
  const void* address() const { return pages_.get(); }
  /// The first `bytes`, whole pages and no more than room(), are the caller's, to unmap; the others are given
  /// back.
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
  /// `bytes` of it, the first `zeroed_bytes` zeroed. Made of `pages`, or where there are none of others,
  /// which the driver locks: half as long, and less, as when it allocates them (docs/performance.md). More
  /// than OwnPages::most_bytes, and where that fails, the driver allocates, or says why not. Throws Error.
  /// `context` must outlive this.
  PinnedRegion(const Context& context, size_t bytes, size_t zeroed_bytes, OwnPages pages = {});
  ~PinnedRegion() override;

 private:
  bool lock_own_pages(size_t bytes, OwnPages pages);
  void let_driver_allocate(size_t bytes, size_t zeroed_bytes);
  void free() noexcept;

  const Context& context_;
  size_t own_bytes_ = 0;  // 0: the driver allocated it
};

}  // namespace gyre::cuda
