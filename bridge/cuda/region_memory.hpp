// Memory for a region that host and device both touch; the engine does not care which kind.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>

namespace gyre::cuda {

/// Owns a region's memory, at one address for the host and one for the device. Allocated by the classes that
/// implement it; freed by the destructor, which never throws, unless leaked. Not thread-safe.
class RegionMemory {
 public:
  virtual ~RegionMemory() = default;
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;

  void* host_address() const { return host_; }
  CUdeviceptr device_address() const { return device_; }
  /// Gives the memory up without freeing it: a worker may still write to it, or this is a forked child.
  void leak() { host_ = nullptr; }

 protected:
  RegionMemory() = default;

  void* host_ = nullptr;  // null: nothing is owned
  CUdeviceptr device_ = 0;
};

}  // namespace gyre::cuda
