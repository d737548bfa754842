// Pinned host memory for a region: the CPU's own cache on one side, mapped over the bus on the other.
#pragma once

#include <gyre/bridge/cuda/region_memory.hpp>

namespace gyre::cuda {

/// Page-locked host memory, mapped into every context.
class PinnedRegion final : public RegionMemory {
 public:
  /// `bytes` of it, the first `zeroed_bytes` zeroed. Throws Error. `context` must outlive this.
  PinnedRegion(const Context& context, size_t bytes, size_t zeroed_bytes);
  ~PinnedRegion() override;

 private:
  void free() noexcept;

  const Context& context_;
};

}  // namespace gyre::cuda
