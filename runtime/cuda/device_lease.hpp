// One live kernel a device and process: occupancy and module loading assume that there is no other.
#pragma once

namespace gyre::cuda {

/// The right to load and run kernels on a device, for this process's one user of it at a time.
class DeviceLease {
 public:
  /// Throws Error where somebody in this process has it. Any thread; never waits.
  explicit DeviceLease(int ordinal);
  ~DeviceLease();
  DeviceLease(const DeviceLease&) = delete;
  DeviceLease& operator=(const DeviceLease&) = delete;
  /// The kernel never ends: nobody else gets the device.
  void keep() { kept_ = true; }

 private:
  int ordinal_;
  bool kept_ = false;
};

}  // namespace gyre::cuda
