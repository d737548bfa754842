#include <dlfcn.h>
#include <gyre/bridge/cuda/vulkan.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/fork.hpp>

#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace gyre::cuda {

namespace {

struct Loader {
  std::mutex mutex;
  std::function<Vulkan()> function;
};
// Never destroyed: a runtime may be launched, and end, with the program's static objects.
Loader& loader() {
  static Loader& loader = *new Loader;
  return loader;
}

Vulkan load_library() {
  void* const library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw EngineUnavailable(
        "loading the Vulkan loader: libvulkan.so.1 was not found; install it (Debian: libvulkan1)");
  }
  Vulkan vulkan;
  vulkan.keeps_instance = true;
  vulkan.get_instance_proc_addr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (vulkan.get_instance_proc_addr == nullptr) {
    throw EngineUnavailable(
        "loading the Vulkan loader: libvulkan.so.1 has no vkGetInstanceProcAddr; install it anew (Debian: "
        "libvulkan1)");
  }
  return vulkan;
}

std::string name_of(VkResult result) {
  switch (result) {
#define GYRE_VULKAN_NAME(code) \
  case code:                   \
    return #code;
    GYRE_VULKAN_NAME(VK_SUCCESS)
    GYRE_VULKAN_NAME(VK_INCOMPLETE)
    GYRE_VULKAN_NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
    GYRE_VULKAN_NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    GYRE_VULKAN_NAME(VK_ERROR_INITIALIZATION_FAILED)
    GYRE_VULKAN_NAME(VK_ERROR_DEVICE_LOST)
    GYRE_VULKAN_NAME(VK_ERROR_MEMORY_MAP_FAILED)
    GYRE_VULKAN_NAME(VK_ERROR_LAYER_NOT_PRESENT)
    GYRE_VULKAN_NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
    GYRE_VULKAN_NAME(VK_ERROR_FEATURE_NOT_PRESENT)
    GYRE_VULKAN_NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
    GYRE_VULKAN_NAME(VK_ERROR_TOO_MANY_OBJECTS)
    GYRE_VULKAN_NAME(VK_ERROR_UNKNOWN)
    GYRE_VULKAN_NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE)
#undef GYRE_VULKAN_NAME
    default:
      return "an unknown VkResult";
  }
}

const char* advice_on(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "free memory of the host";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "free memory of the device, or launch with fewer --workers, --slots or --slot-bytes";
    case VK_ERROR_MEMORY_MAP_FAILED:
      return "BAR1 may be used up (nvidia-smi -q shows it): end what else uses it, or launch with fewer "
             "--workers, --slots or --slot-bytes";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "there is no Vulkan driver here: install the graphics libraries of NVIDIA's driver (its "
             "nvidia_icd.json names them); in a container, NVIDIA_DRIVER_CAPABILITIES must say graphics too";
    case VK_ERROR_INITIALIZATION_FAILED:
    case VK_ERROR_DEVICE_LOST:
      return "look at nvidia-smi, and whether /dev/nvidia* are open to this user";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "install NVIDIA's driver 525 or later";
    default:
      return "look at nvidia-smi, and try again";
  }
}

void check(VkResult result, const std::string& doing) {
  if (result != VK_SUCCESS) throw EngineUnavailable(doing + ": " + explain(result));
}

[[noreturn]] void lacks(const char* function) {
  throw EngineUnavailable(
      std::string("looking up Vulkan's functions: there is no ") + function +
      ", so it is older than Vulkan 1.1, or its driver is; install libvulkan1 and NVIDIA's "
      "driver 525 or later");
}

}  // namespace

std::function<Vulkan()> Vulkan::replace_loader(std::function<Vulkan()> function) {
  const detail::ForkDeferred deferred;
  const std::lock_guard lock(loader().mutex);
  return std::exchange(loader().function, std::move(function));
}

Vulkan Vulkan::load() {
  const detail::ForkDeferred deferred;
  std::function<Vulkan()> replacement;
  {
    const std::lock_guard lock(loader().mutex);
    replacement = loader().function;
  }
  return replacement ? replacement() : load_library();
}

std::string explain(VkResult result) {
  return name_of(result) + " (" + std::to_string(int(result)) + "): " + advice_on(result);
}

std::shared_ptr<VulkanDevice> VulkanDevice::shared() {
  struct Opened {
    std::mutex mutex;
    std::weak_ptr<VulkanDevice> device;
    ForkGuard fork;
  };
  static auto& opened = *new Opened;  // never destroyed: what ends the process may still launch
  const detail::ForkDeferred deferred;
  const std::lock_guard lock(opened.mutex);
  std::shared_ptr<VulkanDevice> device = opened.fork.forked() ? nullptr : opened.device.lock();
  if (!device) {
    device = std::make_shared<VulkanDevice>();
    opened.device = device;
    opened.fork = ForkGuard();
  }
  return device;
}

VulkanDevice::VulkanDevice() : vulkan_(Vulkan::load()) {
  static const ForkGuard opened;
  if (opened.forked()) {
    throw EngineUnavailable(
        "opening Vulkan: this process is a child of fork(), and its parent had opened it; NVIDIA's driver "
        "does "
        "not work there: launch in a program that exec() started");
  }
  try {
    create_instance();
  } catch (...) {
    free();
    throw;
  }
}

VulkanDevice::~VulkanDevice() {
  if (!leaked_) free();
}

void VulkanDevice::free() noexcept {
  if (device_ != nullptr) vkDestroyDevice(device_, nullptr);
  if (instance_ == nullptr || vkDestroyInstance == nullptr) return;
  static std::atomic<bool> kept{false};
  if (vulkan_.keeps_instance && !kept.exchange(true)) return;
  vkDestroyInstance(instance_, nullptr);
}

void VulkanDevice::open_ahead() noexcept {
  const std::lock_guard lock(open_mutex_);
  if (device_ != nullptr) return;
  try {
    if (const auto devices = physical_devices(); devices.size() == 1) create_device(devices.front());
  } catch (const std::exception&) {
    if (device_ != nullptr) vkDestroyDevice(std::exchange(device_, nullptr), nullptr);
  }
}

bool VulkanDevice::open(const Uuid& uuid) {
  const std::lock_guard lock(open_mutex_);
  if (device_ != nullptr) return uuid_of(physical_) == uuid;
  const std::vector<VkPhysicalDevice> devices = physical_devices();
  for (const VkPhysicalDevice device : devices) {
    if (uuid_of(device) != uuid) continue;
    create_device(device);
    return true;
  }
  throw EngineUnavailable("looking for the CUDA device among Vulkan's: none of the " +
                          std::to_string(devices.size()) +
                          " has its UUID (a part of a GPU by MIG never has); install the graphics libraries "
                          "of NVIDIA's driver; in a "
                          "container, NVIDIA_DRIVER_CAPABILITIES must say graphics too");
}

void VulkanDevice::create_instance() {
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(vulkan_.get_instance_proc_addr(nullptr, "vkCreateInstance"));
  if (create == nullptr) lacks("vkCreateInstance");
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "gyre";
  application.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  check(create(&info, nullptr, &instance_), "creating a Vulkan instance");
#define GYRE_VULKAN_LOAD(name)                                                           \
  name = reinterpret_cast<PFN_##name>(vulkan_.get_instance_proc_addr(instance_, #name)); \
  if (name == nullptr) lacks(#name);
  GYRE_VULKAN_FUNCTIONS(GYRE_VULKAN_LOAD)
#undef GYRE_VULKAN_LOAD
}

std::vector<VkPhysicalDevice> VulkanDevice::physical_devices() const {
  uint32_t count = 0;
  check(vkEnumeratePhysicalDevices(instance_, &count, nullptr), "counting Vulkan's devices");
  std::vector<VkPhysicalDevice> devices(count);
  const VkResult listed = vkEnumeratePhysicalDevices(instance_, &count, devices.data());
  if (listed != VK_INCOMPLETE) check(listed, "listing Vulkan's devices");
  devices.resize(count);
  return devices;
}

VulkanDevice::Uuid VulkanDevice::uuid_of(VkPhysicalDevice device) const {
  VkPhysicalDeviceIDProperties id{};
  id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &id;
  vkGetPhysicalDeviceProperties2(device, &properties);
  Uuid uuid;
  std::memcpy(uuid.data(), id.deviceUUID, uuid.size());
  return uuid;
}

void VulkanDevice::create_device(VkPhysicalDevice physical) {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};  // there must be one
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  const char* const extension = VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = 1;
  info.ppEnabledExtensionNames = &extension;
  check(vkCreateDevice(physical, &info, nullptr, &device_),
        "creating a Vulkan device with VK_KHR_external_memory_fd");
  physical_ = physical;
  vkGetMemoryFdKHR = reinterpret_cast<PFN_vkGetMemoryFdKHR>(vkGetDeviceProcAddr(device_, "vkGetMemoryFdKHR"));
  if (vkGetMemoryFdKHR == nullptr) lacks("vkGetMemoryFdKHR");
}

VulkanMemory::VulkanMemory(std::shared_ptr<VulkanDevice> device, uint64_t bytes)
    : device_(std::move(device)) {
  try {
    allocate(bytes, choose_memory_type(bytes));
  } catch (...) {
    free();
    throw;
  }
}

VulkanMemory::~VulkanMemory() {
  if (!leaked_) free();
}

void VulkanMemory::free() noexcept {
  if (memory_ != VK_NULL_HANDLE) device_->vkFreeMemory(device_->device_, memory_, nullptr);  // unmaps it
}

uint32_t VulkanMemory::choose_memory_type(uint64_t bytes) {
  constexpr VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                           VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                           VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  VkPhysicalDeviceMemoryProperties memory{};
  device_->vkGetPhysicalDeviceMemoryProperties(device_->physical_, &memory);
  for (uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
    if ((memory.memoryTypes[type].propertyFlags & wanted) != wanted) continue;
    heap_bytes_ = memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
    if (bytes <= heap_bytes_) return type;
    throw EngineUnavailable("choosing device memory that the host can write: the rings take " +
                            std::to_string(bytes) + " bytes, and the device has " +
                            std::to_string(heap_bytes_) +
                            " of it (BAR1); launch with fewer --workers, --slots or --slot-bytes, or turn "
                            "resizable BAR on in the machine's setup");
  }
  throw EngineUnavailable("choosing device memory that the host can write: none of the device's " +
                          std::to_string(memory.memoryTypeCount) +
                          " types of memory is DEVICE_LOCAL, HOST_VISIBLE and HOST_COHERENT; install "
                          "NVIDIA's driver 525 or later");
}

void VulkanMemory::allocate(uint64_t bytes, uint32_t memory_type) {
  VkExportMemoryAllocateInfo exported{};
  exported.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
  exported.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = &exported;
  info.allocationSize = bytes;
  info.memoryTypeIndex = memory_type;
  const std::string what = std::to_string(bytes) + " bytes of device memory that the host can write";
  check(device_->vkAllocateMemory(device_->device_, &info, nullptr, &memory_), "allocating " + what);
  check(device_->vkMapMemory(device_->device_, memory_, 0, bytes, 0, &host_), "mapping " + what);
}

int VulkanMemory::export_descriptor() const {
  VkMemoryGetFdInfoKHR info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
  info.memory = memory_;
  info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  int descriptor = -1;
  check(device_->vkGetMemoryFdKHR(device_->device_, &info, &descriptor),
        "exporting the device memory to CUDA");
  return descriptor;
}

}  // namespace gyre::cuda
