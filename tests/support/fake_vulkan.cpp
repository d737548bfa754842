#include "support/fake_vulkan.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <gyre/bridge/errors/error.hpp>

#include <cstring>
#include <map>
#include <mutex>

#include "support/fake_driver.hpp"

namespace gyre_test {

namespace {

struct Memory {
  int file;
  uint64_t bytes;
  void* mapped;
};

struct State {
  std::mutex mutex;
  FakeVulkan* vulkan = nullptr;
  size_t fail_at = 0;
  VkResult code = VK_SUCCESS;
  std::vector<std::string> calls;
  FakeVulkan::Live live;
  std::map<VkDeviceMemory, Memory> memories;
  uint64_t next = 1;

  // The result of a call that may be the one to fail.
  VkResult begin(const char* function) {
    calls.emplace_back(function);
    return calls.size() == fail_at ? code : VK_SUCCESS;
  }
};
State& state() {
  static State state;
  return state;
}

#define GYRE_FAKE_CALL()               \
  State& s = state();                  \
  const std::lock_guard lock(s.mutex); \
  if (const VkResult result = s.begin(__func__); result != VK_SUCCESS) return result

template <class Handle>
Handle handle(uint64_t number) {
  return reinterpret_cast<Handle>(number);
}
constexpr uint64_t other_device = 1, cuda_device = 2;

VkResult vkCreateInstance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks*, VkInstance* made) {
  GYRE_FAKE_CALL();
  if (info->pApplicationInfo->apiVersion < VK_API_VERSION_1_1) return VK_ERROR_INCOMPATIBLE_DRIVER;
  ++s.live.instances;
  *made = handle<VkInstance>(s.next++);
  return VK_SUCCESS;
}
void vkDestroyInstance(VkInstance, const VkAllocationCallbacks*) {
  const std::lock_guard lock(state().mutex);
  --state().live.instances;
}
VkResult vkEnumeratePhysicalDevices(VkInstance, uint32_t* count, VkPhysicalDevice* devices) {
  GYRE_FAKE_CALL();
  const uint32_t there = s.vulkan->has_device ? 2 : 1;
  if (devices == nullptr) {
    *count = there;
    return VK_SUCCESS;
  }
  for (uint32_t i = 0; i < *count && i < there; ++i) devices[i] = handle<VkPhysicalDevice>(other_device + i);
  const bool all = *count >= there;
  if (all) *count = there;
  return all ? VK_SUCCESS : VK_INCOMPLETE;
}
void vkGetPhysicalDeviceProperties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2* properties) {
  auto* const id = static_cast<VkPhysicalDeviceIDProperties*>(properties->pNext);
  std::memcpy(id->deviceUUID, FakeDriver::uuid().data(), VK_UUID_SIZE);
  id->deviceUUID[VK_UUID_SIZE - 1] = uint8_t(id->deviceUUID[VK_UUID_SIZE - 1] + state().vulkan->device);
  if (device != handle<VkPhysicalDevice>(cuda_device)) id->deviceUUID[VK_UUID_SIZE - 1] ^= 1;
}
void vkGetPhysicalDeviceMemoryProperties(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties* memory) {
  const FakeVulkan& vulkan = *state().vulkan;
  const bool mappable = device == handle<VkPhysicalDevice>(cuda_device) && vulkan.has_mappable_memory;
  memory->memoryHeapCount = 2;
  memory->memoryHeaps[0] = {uint64_t(141) << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  memory->memoryHeaps[1] = {vulkan.heap_bytes, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  memory->memoryTypeCount = mappable ? 3 : 2;
  memory->memoryTypes[0] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  memory->memoryTypes[1] = {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, 0};
  memory->memoryTypes[2] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                            1};
}
VkResult vkCreateDevice(VkPhysicalDevice device, const VkDeviceCreateInfo* info, const VkAllocationCallbacks*,
                        VkDevice* made) {
  GYRE_FAKE_CALL();
  if (device != handle<VkPhysicalDevice>(cuda_device) || info->queueCreateInfoCount != 1) {
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  if (info->enabledExtensionCount != 1 ||
      std::strcmp(info->ppEnabledExtensionNames[0], VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME) != 0) {
    return VK_ERROR_EXTENSION_NOT_PRESENT;
  }
  ++s.live.devices;
  *made = handle<VkDevice>(s.next++);
  return VK_SUCCESS;
}
void vkDestroyDevice(VkDevice, const VkAllocationCallbacks*) {
  const std::lock_guard lock(state().mutex);
  --state().live.devices;
}
VkResult vkAllocateMemory(VkDevice, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks*,
                          VkDeviceMemory* made) {
  GYRE_FAKE_CALL();
  if (info->memoryTypeIndex != 2) return VK_ERROR_FEATURE_NOT_PRESENT;
  const auto* const exported = static_cast<const VkExportMemoryAllocateInfo*>(info->pNext);
  if (exported->handleTypes != VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT) {
    return VK_ERROR_FEATURE_NOT_PRESENT;
  }
  const int file = memfd_create("fake device memory", 0);
  if (file < 0 || ftruncate(file, off_t(info->allocationSize)) != 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  // Not zeroed: 0xa5 at the start, as the fake driver's.
  const std::vector<unsigned char> junk(std::min<uint64_t>(info->allocationSize, 1 << 20), 0xa5);
  if (write(file, junk.data(), junk.size()) != ssize_t(junk.size())) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  ++s.live.memories;
  *made = handle<VkDeviceMemory>(s.next++);
  s.memories[*made] = {file, info->allocationSize, MAP_FAILED};
  return VK_SUCCESS;
}
void vkFreeMemory(VkDevice, VkDeviceMemory memory, const VkAllocationCallbacks*) {
  const std::lock_guard lock(state().mutex);
  const Memory freed = state().memories.at(memory);
  if (freed.mapped != MAP_FAILED) munmap(freed.mapped, freed.bytes);
  close(freed.file);
  state().memories.erase(memory);
  --state().live.memories;
}
VkResult vkMapMemory(VkDevice, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize bytes,
                     VkMemoryMapFlags, void** mapped) {
  GYRE_FAKE_CALL();
  Memory& of = s.memories.at(memory);
  if (offset != 0 || bytes != of.bytes) return VK_ERROR_MEMORY_MAP_FAILED;
  const int kind = s.vulkan->loses_stores ? MAP_PRIVATE : MAP_SHARED;
  of.mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, of.file, 0);
  if (of.mapped == MAP_FAILED) return VK_ERROR_MEMORY_MAP_FAILED;
  *mapped = of.mapped;
  return VK_SUCCESS;
}
VkResult vkGetMemoryFdKHR(VkDevice, const VkMemoryGetFdInfoKHR* info, int* descriptor) {
  GYRE_FAKE_CALL();
  if (info->handleType != VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT) return VK_ERROR_FEATURE_NOT_PRESENT;
  *descriptor = dup(s.memories.at(info->memory).file);
  return *descriptor < 0 ? VK_ERROR_TOO_MANY_OBJECTS : VK_SUCCESS;
}

PFN_vkVoidFunction look_up(const char* name) {
  if (state().vulkan->missing_function == name) return nullptr;
#define GYRE_FAKE(function) \
  if (std::strcmp(name, #function) == 0) return reinterpret_cast<PFN_vkVoidFunction>(function);
  GYRE_FAKE(vkCreateInstance)
  GYRE_FAKE(vkDestroyInstance)
  GYRE_FAKE(vkEnumeratePhysicalDevices)
  GYRE_FAKE(vkGetPhysicalDeviceProperties2)
  GYRE_FAKE(vkGetPhysicalDeviceMemoryProperties)
  GYRE_FAKE(vkCreateDevice)
  GYRE_FAKE(vkDestroyDevice)
  GYRE_FAKE(vkAllocateMemory)
  GYRE_FAKE(vkFreeMemory)
  GYRE_FAKE(vkMapMemory)
  GYRE_FAKE(vkGetMemoryFdKHR)
#undef GYRE_FAKE
  return nullptr;
}
PFN_vkVoidFunction vkGetDeviceProcAddr(VkDevice, const char* name) { return look_up(name); }
PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0 && state().vulkan->missing_function != name) {
    return reinterpret_cast<PFN_vkVoidFunction>(vkGetDeviceProcAddr);
  }
  return look_up(name);
}

}  // namespace

FakeVulkan::FakeVulkan() {
  state().vulkan = this;
  fail(0, VK_SUCCESS);
  gyre::cuda::Vulkan::replace_loader([] { return gyre::cuda::Vulkan{vkGetInstanceProcAddr}; });
}

FakeVulkan::~FakeVulkan() { FakeDriver::without_vulkan(); }

void FakeVulkan::fail(size_t n, VkResult code) {
  const std::lock_guard lock(state().mutex);
  state().fail_at = n;
  state().code = code;
  state().calls.clear();
}

std::vector<std::string> FakeVulkan::calls() const {
  const std::lock_guard lock(state().mutex);
  return state().calls;
}

FakeVulkan::Live FakeVulkan::live() const {
  const std::lock_guard lock(state().mutex);
  return state().live;
}

}  // namespace gyre_test
