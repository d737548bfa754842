// Device memory that the CPU writes through the device's BAR1: posted writes that the device finds in its own
// memory, so that its polling costs no bus crossing. The CPU never reads it.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/descriptor.hpp>
#include <gyre/bridge/region.hpp>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace gyre::cuda {

class VulkanDevice;
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
  /// Imports the memory into CUDA and zeroes it, for another process that maps it: see ImportedBarMemory.
  /// Call it once, in place of attach(). `context` must outlive this. Throws Error.
  void attach_for_other(const Context& context);
  /// Tests that the device finds exactly the lines that ImportedBarMemory::store_test_lines(how) stored, and
  /// zeroes the memory again. Throws EngineUnavailable if not, Error if CUDA fails.
  void expect_test_lines(LineStore how);
  /// Returns a descriptor of the memory, which the caller closes. Throws EngineUnavailable.
  Descriptor export_memory() const;
  /// Returns Vulkan's number of the type of memory.
  uint32_t memory_type() const;

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

/// BarMemory of an engine process, mapped by its program, which makes no CUDA call. Not thread-safe.
class ImportedBarMemory {
 public:
  using Uuid = std::array<uint8_t, 16>;

  /// Opens Vulkan. Takes as long as making a CUDA context: a thread may do it beside the engine process's
  /// launch. Throws EngineUnavailable with the step that failed, and what to do.
  ImportedBarMemory();
  /// Maps the memory. Call it once, before what follows. Throws EngineUnavailable likewise.
  /// @param bytes, memory_type, memory  BarMemory's, of the engine process
  void map(const Uuid& device, uint64_t bytes, uint32_t memory_type, Descriptor memory);
  ~ImportedBarMemory();
  ImportedBarMemory(const ImportedBarMemory&) = delete;
  ImportedBarMemory& operator=(const ImportedBarMemory&) = delete;

  BarInbound inbound() const;
  /// Returns the ways of storing lines that this processor has: each is to be tested.
  std::vector<LineStore> stores() const;
  /// Stores the lines that BarMemory::expect_test_lines(how) looks for.
  void store_test_lines(LineStore how);
  /// Stores zeros on every page, so that no message waits until the host has mapped one.
  void touch();
  /// Gives the mapping up without freeing it: this is a forked child.
  void leak();

 private:
  const LineStore store_;
  uint64_t bytes_ = 0;
  std::shared_ptr<VulkanDevice> opened_;  // until map()
  std::unique_ptr<VulkanMemory> vulkan_;
};

}  // namespace gyre::cuda
