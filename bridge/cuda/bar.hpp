// Device memory that the CPU writes through the device's BAR1: posted writes that the device finds in its own
// memory, so that its polling costs no bus crossing. The CPU never reads it.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/region.hpp>

#include <memory>
#include <string>

namespace gyre::cuda {

class VulkanMemory;

/// Owns device memory that host and device map, each at its own address. Vulkan allocates it, CUDA imports
/// it; it is zeroed and tested. Make and destroy it while no kernel runs on the device: either may wait for
/// kernels. Not thread-safe.
class BarMemory {
 public:
  /// Allocates at least `bytes` of the device with this UUID. The device may use the memory after attach().
  /// Takes as long as making a context, and needs no context.
  /// @throws EngineUnavailable  with the step that failed, and what to do
  BarMemory(const CUuuid& device, uint64_t bytes);
  /// Allocates memory of the context's device, and attaches it.
  BarMemory(const Context& context, uint64_t bytes);
  /// Frees the memory unless it was leaked.
  ~BarMemory();
  BarMemory(const BarMemory&) = delete;
  BarMemory& operator=(const BarMemory&) = delete;

  /// Imports the memory into CUDA and tests it. Call it once. `context` must outlive this.
  /// @throws EngineUnavailable if the test fails, Error if CUDA fails
  void attach(const Context& context);

  /// Returns the host's side, which is written as lines or single words.
  BarInbound inbound() const;
  CUdeviceptr device_address() const { return device_; }
  /// Returns the bytes of device memory that it takes.
  uint64_t bytes() const { return bytes_; }
  /// Returns the bytes of such memory that the device has in total.
  uint64_t heap_bytes() const;
  /// Gives the memory up without freeing it: a worker may still read it, or this is a forked child.
  void leak();

 private:
  void import();
  void zero();
  void test();
  void touch();
  void expect(uint64_t line, const Line& expected, const std::string& doing);
  void free() noexcept;

  const Context* context_ = nullptr;  // none before attach()
  const uint64_t bytes_;
  const LineStore store_;
  std::unique_ptr<VulkanMemory> vulkan_;
  CUexternalMemory external_ = nullptr;
  CUdeviceptr device_ = 0;
  bool leaked_ = false;
};

}  // namespace gyre::cuda
