// Device memory that the CPU may write: Vulkan is the interface by which NVIDIA's driver gives it out without
// another kernel module. The Vulkan loader is loaded at run time.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gyre::cuda {

/// The Vulkan loader: all else is found through its one function. A plain value.
struct Vulkan {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  /// Keeps the first instance for the life of the process. Destroying the last instance makes the loader
  /// close NVIDIA's driver, which fails to open again after some dozens of launches
  /// (VK_ERROR_INCOMPATIBLE_DRIVER; H200, driver 580, 2026-11-21).
  bool keeps_instance = false;

  /// Loads libvulkan.so.1. Throws EngineUnavailable with what to install.
  static Vulkan load();
  /// From now on load() takes what `loader` gives, and libvulkan.so.1 again if `loader` is empty; returns
  /// what was in force. For tests. Any thread.
  static std::function<Vulkan()> replace_loader(std::function<Vulkan()> loader);
};

/// "VK_ERROR_OUT_OF_DEVICE_MEMORY (-2): what to do".
std::string explain(VkResult result);

/// An instance of Vulkan, and one device opened in it. Opening takes as long as making a CUDA context.
class VulkanDevice {
 public:
  using Uuid = std::array<uint8_t, VK_UUID_SIZE>;

  /// Returns the device that this function returned before, if somebody still has it: a relaunch need not
  /// open it again. Else a new one. Any thread. Throws EngineUnavailable.
  static std::shared_ptr<VulkanDevice> shared();

  /// Makes an instance. Throws EngineUnavailable with the step that failed, its VkResult, and what to do.
  VulkanDevice();
  ~VulkanDevice();
  VulkanDevice(const VulkanDevice&) = delete;
  VulkanDevice& operator=(const VulkanDevice&) = delete;

  /// Opens the machine's device if it has only one and none is open, so that open() has nothing left to do.
  /// What fails is left to open(). Any thread.
  void open_ahead() noexcept;
  /// Opens the device with this UUID. Returns false if another one is open. Any thread. Throws
  /// EngineUnavailable likewise.
  bool open(const Uuid& uuid);
  /// Gives the device up without closing it.
  void leak() { leaked_ = true; }

 private:
  friend class VulkanMemory;

  void create_instance();
  std::vector<VkPhysicalDevice> physical_devices() const;
  Uuid uuid_of(VkPhysicalDevice device) const;
  void create_device(VkPhysicalDevice physical);
  void free() noexcept;

  const Vulkan vulkan_;
// clang-format off
#define GYRE_VULKAN_FUNCTIONS(X)        \
  X(vkDestroyInstance)                  \
  X(vkEnumeratePhysicalDevices)         \
  X(vkGetPhysicalDeviceProperties2)     \
  X(vkGetPhysicalDeviceMemoryProperties) \
  X(vkCreateDevice)                     \
  X(vkDestroyDevice)                    \
  X(vkGetDeviceProcAddr)                \
  X(vkAllocateMemory)                   \
  X(vkFreeMemory)                       \
  X(vkMapMemory)
// clang-format on
#define GYRE_VULKAN_MEMBER(name) PFN_##name name = nullptr;
  GYRE_VULKAN_FUNCTIONS(GYRE_VULKAN_MEMBER)
#undef GYRE_VULKAN_MEMBER
  PFN_vkGetMemoryFdKHR vkGetMemoryFdKHR = nullptr;

  VkInstance instance_ = nullptr;
  VkPhysicalDevice physical_ = nullptr;
  VkDevice device_ = nullptr;
  std::mutex open_mutex_;
  bool leaked_ = false;
};

/// Owns device memory that the host maps uncached and write-combining, and that another interface of the
/// device can import. Make and destroy it while no kernel runs on the device: either may wait for kernels.
/// One thread at a time may use it.
class VulkanMemory {
 public:
  /// Allocates `bytes` of an open device. Throws EngineUnavailable with the step that failed, its VkResult,
  /// and what to do.
  VulkanMemory(std::shared_ptr<VulkanDevice> device, uint64_t bytes);
  /// Frees the memory unless it was leaked.
  ~VulkanMemory();
  VulkanMemory(const VulkanMemory&) = delete;
  VulkanMemory& operator=(const VulkanMemory&) = delete;

  void* host_address() const { return host_; }
  /// Returns the bytes of such memory that the device has in total.
  uint64_t heap_bytes() const { return heap_bytes_; }
  /// Returns a file descriptor of the memory; the caller closes it. Throws EngineUnavailable.
  int export_descriptor() const;
  /// Gives the memory up without freeing it.
  void leak() {
    leaked_ = true;
    device_->leak();
  }

 private:
  uint32_t choose_memory_type(uint64_t bytes);
  void allocate(uint64_t bytes, uint32_t memory_type);
  void free() noexcept;

  const std::shared_ptr<VulkanDevice> device_;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  void* host_ = nullptr;
  uint64_t heap_bytes_ = 0;
  bool leaked_ = false;
};

}  // namespace gyre::cuda
