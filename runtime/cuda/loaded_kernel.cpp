#include <fmt/format.h>
#include <unistd.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/loaded_kernel.hpp>

#include <algorithm>
#include <fstream>

namespace gyre::cuda {

DeviceLimits read_limits(const Driver& driver, int ordinal) {
  const CUdevice device = find_device(driver, ordinal);
  const auto number = [&](CUdevice_attribute attribute) {
    int value = 0;
    driver.check(driver.cuDeviceGetAttribute(&value, attribute, device),
                 fmt::format("reading attribute {} of CUDA device {}", int(attribute), ordinal));
    return value;
  };
  const auto flag = [&number](CUdevice_attribute attribute) { return number(attribute) != 0; };
  DeviceLimits limits;
  char name[256] = {};
  driver.check(driver.cuDeviceGetName(name, int(sizeof name), device), "reading the device's name");
  limits.name = name;
  limits.compute_major = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  limits.compute_minor = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  limits.cooperative_launch = flag(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  limits.map_host_memory = flag(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  limits.prohibited = number(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_PROHIBITED;
  limits.watchdog = flag(CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
  limits.threads_a_block = uint32_t(number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  limits.multiprocessors = uint32_t(number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  limits.shared_bytes_a_block = uint32_t(number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  limits.shared_bytes_a_block_opt_in = std::max(
      limits.shared_bytes_a_block, uint32_t(number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)));
  limits.threads_a_multiprocessor = uint32_t(number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
  limits.blocks_a_multiprocessor = uint32_t(number(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR));
  limits.registers_a_multiprocessor = uint32_t(number(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR));
  limits.shared_bytes_a_multiprocessor =
      uint32_t(number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  limits.shared_bytes_reserved_a_block =
      uint32_t(number(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
  limits.cluster_launch = flag(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
  size_t bytes = 0;
  driver.check(driver.cuDeviceTotalMem(&bytes, device), "reading the device's memory size");
  limits.memory_bytes = bytes;
  return limits;
}

HostMemory host_memory() {
  HostMemory memory{uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE)), "physical memory"};
  for (const char* const file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    uint64_t bytes = 0;
    if (std::ifstream(file) >> bytes && bytes != 0 && bytes < memory.bytes) memory = {bytes, file};
  }
  return memory;
}

LoadedKernel::LoadedKernel(const Context& context, const CompiledKernel& kernel)
    : context_(context), driver_(context.driver()) {
  const Context::Current current(context_);
  driver_.check(driver_.cuModuleLoadDataEx(&module_, kernel.cubin.data(), 0, nullptr, nullptr),
                "loading the compiled actors");
  const CUresult found = driver_.cuModuleGetFunction(&function_, module_, kernel.lowered_name.c_str());
  if (found != CUDA_SUCCESS) {
    driver_.check_or_log(driver_.cuModuleUnload(module_), "unloading the compiled actors (cuModuleUnload)");
    driver_.check(found, "finding the kernel " + kernel.lowered_name);
  }
}

LoadedKernel::~LoadedKernel() {
  if (module_ == nullptr) return;
  // Where the context is dead the call fails, and the module went with it.
  const Context::Current current(context_, std::nothrow);
  driver_.check_or_log(driver_.cuModuleUnload(module_), "unloading the compiled actors (cuModuleUnload)");
}

std::vector<ActorDescription> LoadedKernel::read_description(const std::string& lowered_name) const {
  const Context::Current current(context_);
  CUdeviceptr address = 0;
  size_t size = 0;
  driver_.check(driver_.cuModuleGetGlobal(&address, &size, module_, lowered_name.c_str()),
                "finding the actors' description " + lowered_name);
  std::vector<std::byte> bytes(size);
  driver_.check(driver_.cuMemcpyDtoH(bytes.data(), address, size), "reading the actors' description");
  return gyre::read_description(bytes);
}

uint32_t LoadedKernel::attribute(CUfunction_attribute which) const {
  int value = 0;
  driver_.check(driver_.cuFuncGetAttribute(&value, which, function_),
                fmt::format("reading the kernel's attribute {}", int(which)));
  return uint32_t(value);
}

KernelLimits LoadedKernel::limits(const LaunchRequest& request, const DeviceLimits& device) {
  const Context::Current current(context_);
  KernelLimits limits;
  limits.threads_a_block = attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  limits.registers = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS);
  limits.static_shared_bytes = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  limits.local_bytes = attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  LaunchRequest possible = request;
  possible.dynamic_shared_bytes =
      std::min(request.dynamic_shared_bytes, dynamic_shared_limit(device, limits));
  possible.block = std::min(request.block, limits.threads_a_block);
  if (needs_opt_in(possible, device, limits.static_shared_bytes)) {
    driver_.check(
        driver_.cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   int(possible.dynamic_shared_bytes)),
        fmt::format("opting in to {} bytes of dynamic shared memory", possible.dynamic_shared_bytes));
  }
  int blocks = 0;
  driver_.check(
      driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_, int(possible.block),
                                                          possible.dynamic_shared_bytes),
      fmt::format(
          "asking how many blocks of {} threads with {} bytes of dynamic shared memory can be resident",
          possible.block, possible.dynamic_shared_bytes));
  limits.blocks_a_multiprocessor = uint32_t(blocks);
  if (request.cluster > 1 && device.cluster_launch && driver_.cuOccupancyMaxActiveClusters != nullptr) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = request.cluster;
    attribute.value.clusterDim.y = 1;
    attribute.value.clusterDim.z = 1;
    CUlaunchConfig config{};
    config.gridDimX = (request.grid + request.cluster - 1) / request.cluster * request.cluster;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = possible.block;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = possible.dynamic_shared_bytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    // It refuses a cluster larger than the portable one, which device_problems has said by then.
    if (driver_.cuOccupancyMaxActiveClusters(&clusters, function_, &config) == CUDA_SUCCESS) {
      limits.clusters = uint32_t(clusters);
      limits.clusters_known = true;
    }
  }
  return limits;
}

}  // namespace gyre::cuda
