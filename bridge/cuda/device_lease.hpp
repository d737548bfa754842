// Who runs kernels on which device and in which context of this process, and the contexts that nobody uses.
//
// Ending any context, and releasing the last retain of a primary one, waits for every kernel of the process
// (measured: decision 042). So a context is ended only while there is no lease; until then it is kept, and an
// own one is used again by the next launch on its device.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/cuda/residency.hpp>

#include <cstdint>
#include <vector>

namespace gyre::cuda {

/// Keeps every context of this process from being ended while one user loads and runs kernels on a device.
/// Make it before the user's Context, and destroy it after.
class DeviceLease {
 public:
  /// Any thread; waits only while contexts are ended.
  explicit DeviceLease(int ordinal);
  /// The last lease of the process ends all contexts that nobody uses.
  ~DeviceLease();
  DeviceLease(const DeviceLease&) = delete;
  DeviceLease& operator=(const DeviceLease&) = delete;

  /// Takes a context that others of this process may know: the primary one or a given one. Loading a kernel
  /// into it would wait for a live one there. Throws Error if another lease has it.
  void claim(CUcontext context);
  /// Says what the kernel holds from now on; see others().
  void hold(const Residency& residency);
  /// Returns what the kernels of other leases hold on the same device. Of two launches at once that hold
  /// first and then ask, at least one sees the other.
  std::vector<Residency> others() const;
  /// Keeps the lease for good: the kernel never ends.
  void keep() { kept_ = true; }

 private:
  const int ordinal_;
  uint64_t number_;
  bool kept_ = false;
};

/// Returns an own context of the device that nobody uses, for the caller alone; null if there is none. Any
/// thread.
CUcontext take_context(CUdevice device) noexcept;
/// Takes back an own context, or a retain of the device's primary one (`own` null): ends it if there is no
/// lease, else keeps it. Any thread.
void release_context(const Driver& driver, CUdevice device, CUcontext own) noexcept;
/// Forgets all leases and kept contexts: their driver is gone. For tests that replace it.
void forget_contexts() noexcept;

}  // namespace gyre::cuda
