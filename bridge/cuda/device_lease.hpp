// One live kernel a device and process: occupancy and module loading assume that there is no other.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>

namespace gyre::cuda {

/// Gives one user in this process the right to load and run kernels on a device.
class DeviceLease {
 public:
  /// Takes the device. Throws Error if this process has a lease of it already. Any thread; waits only for
  /// release_context().
  explicit DeviceLease(int ordinal);
  ~DeviceLease();
  DeviceLease(const DeviceLease&) = delete;
  DeviceLease& operator=(const DeviceLease&) = delete;
  /// Keeps the device for good: the kernel never ends.
  void keep() { kept_ = true; }

 private:
  int ordinal_;
  bool kept_ = false;
};

/// Releases a device's primary context, or leaves that to a later call: releasing one waits for the kernels
/// of every other device too (measured on two H200), so it is done while no device is leased. Any
/// thread.
void release_context(const Driver& driver, CUdevice device) noexcept;

}  // namespace gyre::cuda
