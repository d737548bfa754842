// Pinned host memory for a region: the CPU's own cache on one side, mapped over the bus on the other.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>

namespace gyre::cuda {

/// Owns `bytes` of page-locked host memory, the first `zeroed_bytes` of them zeroed, mapped into every
/// context. Move-only.
class PinnedRegion {
 public:
  /// Throws Error. `context` must outlive this.
  PinnedRegion(const Context& context, size_t bytes, size_t zeroed_bytes);
  ~PinnedRegion();
  PinnedRegion(const PinnedRegion&) = delete;
  PinnedRegion& operator=(const PinnedRegion&) = delete;

  void* host_address() const { return host_; }
  CUdeviceptr device_address() const { return device_; }
  /// Gives the memory up, for ever: somebody may still write to it.
  void leak() { host_ = nullptr; }

 private:
  const Context& context_;
  void* host_ = nullptr;
  CUdeviceptr device_ = 0;
};

}  // namespace gyre::cuda
