// Managed memory for a region: it stays on the host, and the device maps it.
#pragma once

#include <gyre/bridge/cuda/region_memory.hpp>

namespace gyre::cuda {

/// Managed memory, preferred on the host and mapped for the context's device, so that neither side's access
/// moves it.
class UnifiedRegion final : public RegionMemory {
 public:
  /// `bytes` of it, the first `zeroed_bytes` zeroed. Throws EngineUnavailable where host and device cannot
  /// use managed memory at the same time, Error. `context` must outlive this.
  UnifiedRegion(const Context& context, size_t bytes, size_t zeroed_bytes);
  ~UnifiedRegion() override;

 private:
  void free() noexcept;

  const Context& context_;
};

}  // namespace gyre::cuda
