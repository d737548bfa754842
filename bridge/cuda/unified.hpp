// Managed memory for a region: it stays on the host, and the device maps it.
#pragma once

#include <gyre/bridge/cuda/region_memory.hpp>

namespace gyre::cuda {

/// Managed memory that stays on the host and is mapped for the context's device: no access moves it.
class UnifiedRegion final : public RegionMemory {
 public:
  /// Makes a region of `bytes`, the first `zeroed_bytes` zeroed. `context` must outlive this. Throws
  /// EngineUnavailable if host and device cannot use managed memory at the same time, Error otherwise.
  UnifiedRegion(const Context& context, size_t bytes, size_t zeroed_bytes);
  ~UnifiedRegion() override;

 private:
  void free() noexcept;

  const Context& context_;
};

}  // namespace gyre::cuda
