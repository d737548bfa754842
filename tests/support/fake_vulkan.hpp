// A Vulkan in ordinary memory, for the fake driver's devices: its device memory is a file without a name,
// mapped once for the host and, when the fake driver imports it, once more for the "device".
#pragma once

#include <gyre/bridge/cuda/vulkan.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gyre_test {

/// While one lives, Vulkan::load() gives it. One at a time, made after the FakeDriver and destroyed before
/// it. Thread-safe, but for the public members, which are for the time before a launch.
class FakeVulkan {
 public:
  FakeVulkan();
  ~FakeVulkan();
  FakeVulkan(const FakeVulkan&) = delete;
  FakeVulkan& operator=(const FakeVulkan&) = delete;

  bool has_device = true;            ///< a device of CUDA's is among its devices
  uint8_t device = 0;                ///< which, by CUDA's number
  bool has_mappable_memory = true;   ///< that device has memory that the host can write
  uint64_t heap_bytes = 256u << 20;  ///< of that memory
  bool loses_stores = false;         ///< what the host stores there does not arrive
  std::string missing_function;      ///< it has no function of this name

  /// Counts its functions' calls that can fail from 1 again, and fails call number `n` from here, once, with
  /// `code`; 0: none.
  void fail(size_t n, VkResult code);
  /// The names of the functions called since fail() that can fail, in order.
  std::vector<std::string> calls() const;

  /// What was given out and not given back: instances, devices, blocks of memory.
  struct Live {
    size_t instances = 0, devices = 0, memories = 0;
    bool operator==(const Live&) const = default;
  };
  Live live() const;
};

}  // namespace gyre_test
