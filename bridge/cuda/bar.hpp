// Device memory that the CPU writes through the device's BAR1: posted writes that the device finds in its own
// memory, so that its polling costs no bus crossing. The CPU never reads it.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/region.hpp>

#include <memory>
#include <string>

namespace gyre::cuda {

class VulkanMemory;

/// Such memory, at one address for the host and another for the device: allocated by Vulkan, imported into
/// CUDA, zeroed, and tested. Make and destroy it while no kernel lives on the device: either may wait for
/// that. Not thread-safe.
class BarMemory {
 public:
  /// `bytes` at least, of the device with that UUID; not the device's to use before attach(). It takes as
  /// long as making a context and needs none. Throws EngineUnavailable where something that it needs is not
  /// there: which step, and what to do.
  BarMemory(const CUuuid& device, uint64_t bytes);
  /// Of the context's device, attached.
  BarMemory(const Context& context, uint64_t bytes);
  /// Unless leaked, gives all back.
  ~BarMemory();
  BarMemory(const BarMemory&) = delete;
  BarMemory& operator=(const BarMemory&) = delete;

  /// Imports it into CUDA and tests it: once. Throws EngineUnavailable where the test failed, and Error where
  /// CUDA fails. `context` must outlive this.
  void attach(const Context& context);

  /// For the host to write, as lines or single words.
  BarInbound inbound() const;
  CUdeviceptr device_address() const { return device_; }
  /// Bytes that it has taken of it.
  uint64_t bytes() const { return bytes_; }
  /// Bytes of such memory that the device has in all.
  uint64_t heap_bytes() const;
  /// Gives it up, for ever: somebody may still read it, or this is a forked child.
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
