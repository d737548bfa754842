// Device memory that the CPU writes through the device's BAR1: posted writes that the device finds in its own
// memory, so that its polling costs no bus crossing. The CPU never reads it.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/descriptor.hpp>
#include <gyre/bridge/region.hpp>

#include <functional>
#include <memory>
#include <string>

namespace gyre::cuda {

class VulkanMemory;
class VulkanDevice;

/// Owns device memory that the host maps and writes. Vulkan allocates it; BarMapping is the device's side of
/// it, in this process or in another. Needs no CUDA. Make and destroy it while no kernel of this process runs
/// on the device: either may wait for kernels. Not thread-safe.
class BarMemory {
 public:
  /// Opens Vulkan before it is known for which device, so that the constructor has less to do. Takes as long
  /// as making a CUDA context: a thread may do it beside that. Throws EngineUnavailable with the step that
  /// failed, and what to do.
  static std::shared_ptr<VulkanDevice> open();
  /// Opens Vulkan, and allocates as the next one does.
  BarMemory(const DeviceUuid& device, uint64_t bytes);
  /// Allocates at least `bytes` of the device with this UUID.
  /// @param opened  what open() returned; may have another device open
  /// @throws EngineUnavailable  with the step that failed, and what to do
  BarMemory(std::shared_ptr<VulkanDevice> opened, const DeviceUuid& device, uint64_t bytes);
  /// Frees the memory unless it was leaked.
  ~BarMemory();
  BarMemory(const BarMemory&) = delete;
  BarMemory& operator=(const BarMemory&) = delete;

  /// Returns a descriptor of the memory, by which a BarMapping is made. Throws EngineUnavailable.
  Descriptor export_memory() const;
  /// Tests that the device finds what the host stores, by each LineStore that this processor has, and touches
  /// every page, so that no message waits until the host has mapped one. The mapping must be there.
  /// @param find  BarMapping::expect_test_lines; what it throws is passed on
  void test(const std::function<void(LineStore)>& find);
  /// Returns the host's side, which is written as lines or single words.
  BarInbound inbound() const;
  /// Returns the bytes of device memory that it takes.
  uint64_t bytes() const { return bytes_; }
  /// Returns the bytes of such memory that the device has in total.
  uint64_t heap_bytes() const;
  /// Gives the memory up without freeing it: a worker may still read it, or this is a forked child.
  void leak();

 private:
  const uint64_t bytes_;
  [[maybe_unused]] const LineStore store_;
  std::unique_ptr<VulkanMemory> vulkan_;
};

/// The device's side of a BarMemory: imported into a CUDA context, and zeroed. Make and destroy it while no
/// kernel of the context runs. Not thread-safe.
class BarMapping {
 public:
  /// @param context        must outlive this
  /// @param memory, bytes  BarMemory::export_memory() and bytes(), perhaps of another process
  /// @throws Error         if CUDA fails
  BarMapping(const Context& context, Descriptor memory, uint64_t bytes);
  /// Unmaps the memory unless it was leaked.
  ~BarMapping();
  BarMapping(const BarMapping&) = delete;
  BarMapping& operator=(const BarMapping&) = delete;

  /// Tests that the device finds exactly the lines that BarMemory::test() stored by `how`, and zeroes the
  /// memory again. Throws EngineUnavailable if not, Error if CUDA fails.
  void expect_test_lines(LineStore how);
  CUdeviceptr device_address() const { return device_; }
  uint64_t bytes() const { return bytes_; }
  /// Gives the mapping up without ending it: a worker may still read it.
  void leak() { leaked_ = true; }

 private:
  void import(Descriptor memory);
  void zero();
  void expect(uint64_t line, const Line& expected, const std::string& doing);
  void free() noexcept;

  const Context& context_;
  const uint64_t bytes_;
  CUexternalMemory external_ = nullptr;
  CUdeviceptr device_ = 0;
  bool leaked_ = false;
};

/// Both sides in one process, tested.
struct BarMemoryHere {
  /// @param context  must outlive this
  /// @throws EngineUnavailable, Error
  BarMemoryHere(const Context& context, uint64_t bytes);

  BarMemory memory;
  BarMapping mapping;
};

}  // namespace gyre::cuda
