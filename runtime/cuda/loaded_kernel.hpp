// What the driver says of a device and of a kernel loaded on it: the numbers that launch_check holds a launch
// against.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/runtime/cuda/launch_check.hpp>
#include <gyre/runtime/cuda/program.hpp>

namespace gyre::cuda {

/// The limits of a device, by its number, as the driver tells them. Makes no context: works for a device in
/// any compute mode. Throws EngineUnavailable where there is no such device, Error.
DeviceLimits read_limits(const Driver& driver, int ordinal);

/// The host's physical memory, or what the container (control group) may have of it where that is less.
HostMemory host_memory();

/// One compiled kernel, loaded: its function, and its module, which is unloaded with this. One thread's at a
/// time. Loading and unloading wait for kernels that run on the device.
class LoadedKernel {
 public:
  /// Throws Error. `context` must outlive this.
  LoadedKernel(const Context& context, const CompiledKernel& kernel);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;
  /// A kernel of it never ends: it stays loaded.
  void leak() { module_ = nullptr; }

  CUfunction function() const { return function_; }
  /// What its module says of the actors, in the variable of that name. Waits for the device. Throws Error.
  std::vector<ActorDescription> read_description(const std::string& lowered_name) const;
  /// Its limits for the block, the shared memory (at most as much as there is) and the cluster of `request`;
  /// opts in to more shared memory where they need it. Throws Error.
  KernelLimits limits(const LaunchRequest& request, const DeviceLimits& device);

 private:
  uint32_t attribute(CUfunction_attribute which) const;

  const Context& context_;
  const Driver& driver_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

}  // namespace gyre::cuda
