#include "nvml.hpp"

#include <dlfcn.h>

namespace gyre::tools {

namespace {

// From nvml.h, which few toolkits' installations have.
using NvmlDevice = struct nvmlDevice_st*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
constexpr int nvml_success = 0, nvml_insufficient_size = 7;

class Library {
 public:
  Library() : handle_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  template <class Function>
  Function* find(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

}  // namespace

std::optional<GpuUse> gpu_use(const std::string& pci_bus_id) {
  const Library library;
  const auto init = library.find<int()>("nvmlInit_v2");
  const auto shutdown = library.find<int()>("nvmlShutdown");
  const auto by_bus_id = library.find<int(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByPciBusId_v2");
  const auto memory_of = library.find<int(NvmlDevice, NvmlMemory*)>("nvmlDeviceGetMemoryInfo");
  const auto processes_of =
      library.find<int(NvmlDevice, unsigned*, void*)>("nvmlDeviceGetComputeRunningProcesses_v3");
  if (init == nullptr || shutdown == nullptr || by_bus_id == nullptr || memory_of == nullptr ||
      processes_of == nullptr || init() != nvml_success) {
    return std::nullopt;
  }
  std::optional<GpuUse> use;
  NvmlDevice device = nullptr;
  NvmlMemory memory{};
  if (by_bus_id(pci_bus_id.c_str(), &device) == nvml_success && memory_of(device, &memory) == nvml_success) {
    unsigned processes = 0;  // with room for none it says how many there are
    const int result = processes_of(device, &processes, nullptr);
    if (result == nvml_success || result == nvml_insufficient_size) {
      use = GpuUse{processes, memory.free, memory.total};
    }
  }
  shutdown();
  return use;
}

std::optional<double> gpu_joules(const std::string& pci_bus_id) {
  const Library library;
  const auto init = library.find<int()>("nvmlInit_v2");
  const auto shutdown = library.find<int()>("nvmlShutdown");
  const auto by_bus_id = library.find<int(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByPciBusId_v2");
  const auto energy_of =
      library.find<int(NvmlDevice, unsigned long long*)>("nvmlDeviceGetTotalEnergyConsumption");
  if (init == nullptr || shutdown == nullptr || by_bus_id == nullptr || energy_of == nullptr ||
      init() != nvml_success) {
    return std::nullopt;
  }
  std::optional<double> joules;
  NvmlDevice device = nullptr;
  unsigned long long millijoules = 0;
  if (by_bus_id(pci_bus_id.c_str(), &device) == nvml_success &&
      energy_of(device, &millijoules) == nvml_success) {
    joules = double(millijoules) / 1e3;
  }
  shutdown();
  return joules;
}

}  // namespace gyre::tools
