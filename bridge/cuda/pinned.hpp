// Pinned host memory for a region: the CPU's own cache on one side, mapped over the bus on the other.
#pragma once

#include <gyre/bridge/cuda/region_memory.hpp>

namespace gyre::cuda {

/// Page-locked host memory, mapped into every context.
class PinnedRegion final : public RegionMemory {
 public:
  /// Regions of up to so many bytes are made of huge pages of the process's own, which several threads touch
  /// first and the driver then locks: half as long, and less, as when the driver allocates them
  /// (docs/performance.md). Larger ones, and where that fails, the driver allocates, or says why not.
  static constexpr size_t own_pages_up_to = size_t(256) << 20;

  /// `bytes` of it, the first `zeroed_bytes` zeroed. Throws Error. `context` must outlive this.
  PinnedRegion(const Context& context, size_t bytes, size_t zeroed_bytes);
  ~PinnedRegion() override;

 private:
  bool lock_own_pages(size_t bytes);
  void let_driver_allocate(size_t bytes, size_t zeroed_bytes);
  void free() noexcept;

  const Context& context_;
  size_t own_bytes_ = 0;  // 0: the driver allocated it
};

}  // namespace gyre::cuda
