#include <fmt/format.h>
#include <gyre/runtime/cuda/engine.hpp>
#include <gyre/runtime/cuda/program.hpp>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

namespace gyre::cuda {

namespace {

struct LiveDevices {
  std::mutex mutex;
  std::set<int> ordinals;
};
LiveDevices& live_devices() {
  static LiveDevices devices;
  return devices;
}

}  // namespace

CudaEngine::DeviceLease::DeviceLease(int ordinal) : ordinal_(ordinal) {
  const std::lock_guard lock(live_devices().mutex);
  if (!live_devices().ordinals.insert(ordinal).second) {
    throw Error(
        fmt::format("launching on CUDA device {}: this process already has workers on it, and loading a "
                    "second kernel would wait "
                    "until they end; terminate the first runtime, or give one runtime more --workers",
                    ordinal));
  }
}

CudaEngine::DeviceLease::~DeviceLease() {
  if (kept_) return;
  const std::lock_guard lock(live_devices().mutex);
  live_devices().ordinals.erase(ordinal_);
}

DeviceLimits read_limits(const Context& context) {
  const auto flag = [&context](CUdevice_attribute attribute) { return context.attribute(attribute) != 0; };
  const auto number = [&context](CUdevice_attribute attribute) {
    return uint32_t(context.attribute(attribute));
  };
  DeviceLimits limits;
  limits.name = context.name();
  limits.compute_major = context.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  limits.compute_minor = context.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  limits.cooperative_launch = flag(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  limits.map_host_memory = flag(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  limits.prohibited = context.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_PROHIBITED;
  limits.watchdog = flag(CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
  limits.threads_a_block = number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  limits.multiprocessors = number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  limits.shared_bytes_a_block = number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  return limits;
}

CudaEngine::CudaEngine(const ActorSet& actors, const Options& options)
    : verbose_(options.verbose),
      request_{options.workers, options.block, 2 * options.ring_shape().payload_bytes()},
      driver_(Driver::load()),
      lease_(options.device),
      context_(driver_, options.device),
      limits_(read_limits(context_)) {
  if (actors.is_grid_scoped()) {
    if (options.workers != 1) {
      throw BadOptions(
          fmt::format("launching a grid-scoped actor set: --workers {}: it is one worker, of all blocks; "
                      "--blocks says how many",
                      options.workers));
    }
    request_.grid = options.blocks != 0 ? options.blocks : limits_.multiprocessors;
    request_.dynamic_shared_bytes = 0;
  }
  const auto refuse = [this](const std::string& problems) {
    if (!problems.empty()) throw Error("launching on " + limits_.name + ":\n" + problems);
  };
  refuse(device_problems(request_, limits_));

  const CompiledKernel kernel =
      compile(actors, 10 * limits_.compute_major + limits_.compute_minor, options.block,
              {options.cache, options.keep_program, options.verbose});
  compile_ms_ = kernel.compile_ms;
  compiled_from_cache_ = kernel.from_cache;

  const Context::Current current(context_);
  driver_.check(driver_.cuModuleLoadDataEx(&module_, kernel.cubin.data(), 0, nullptr, nullptr),
                "loading the compiled actors");
  try {
    driver_.check(driver_.cuModuleGetFunction(&function_, module_, kernel.lowered_name.c_str()),
                  "finding the kernel " + kernel.lowered_name);
    description_ = read_description(kernel.lowered_description);
    const ActorSet described = complete(actors);
    layout_ = options.region_layout(described.handlers().size());
    const auto attribute = [this](CUfunction_attribute which) {
      int value = 0;
      driver_.check(driver_.cuFuncGetAttribute(&value, which, function_), "reading the kernel's attributes");
      return uint32_t(value);
    };
    KernelLimits limits;
    limits.threads_a_block = attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    limits.registers = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS);
    limits.static_shared_bytes = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    int blocks = 0;
    if (driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_, int(request_.block),
                                                            request_.dynamic_shared_bytes) == CUDA_SUCCESS) {
      limits.blocks_a_multiprocessor = uint32_t(blocks);
    }
    refuse(kernel_problems(request_, limits_, limits));
    region_ = std::make_unique<PinnedRegion>(context_, layout_.region_bytes(), layout_.rings_bytes());
    driver_.check(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "creating the kernel's stream");
    allocate_actors(described, options.actors_per_worker);
    if (verbose_) {
      std::fprintf(
          stderr,
          "gyre: %s\ngyre: kernel %s, grid %u, block %u, dynamic shared %u bytes, static shared %u bytes, "
          "%u registers a thread, %u blocks a multiprocessor on %u\n",
          limits_.name.c_str(), actors.kernel().c_str(), request_.grid, request_.block,
          request_.dynamic_shared_bytes, limits.static_shared_bytes, limits.registers,
          limits.blocks_a_multiprocessor, limits_.multiprocessors);
    }
  } catch (...) {
    driver_.cuModuleUnload(module_);
    if (actor_memory_ != 0) driver_.cuMemFree(actor_memory_);
    throw;
  }
}

// The tables of all workers' actors, and a grid-scoped worker's scratch: zeroed before the kernel, on its
// stream.
void CudaEngine::allocate_actors(const ActorSet& actors, uint32_t actors_per_worker) {
  memory_.actor_bytes = actors.actor_bytes(actors_per_worker);
  memory_.actors_per_worker = actors_per_worker;
  const uint64_t tables = memory_.actor_bytes * layout_.workers;
  const uint64_t scratch = actors.is_grid_scoped() ? 2 * layout_.shape.payload_bytes() : 0;
  if (tables + scratch == 0) return;
  driver_.check(
      driver_.cuMemAlloc(&actor_memory_, tables + scratch),
      fmt::format("allocating {} bytes of device memory for {} actors of each type on each of {} workers "
                  "(--actors-per-worker)",
                  tables + scratch, actors_per_worker, layout_.workers));
  driver_.check(driver_.cuMemsetD8Async(actor_memory_, 0, tables + scratch, stream_),
                "zeroing the actors' memory");
  memory_.actors = reinterpret_cast<uint8_t*>(actor_memory_);
  memory_.scratch = memory_.actors + tables;
}

CudaEngine::~CudaEngine() {
  if (leaked_) return;
  try {
    const Context::Current current(context_);
    driver_.cuStreamDestroy(stream_);
    driver_.cuModuleUnload(module_);
    if (actor_memory_ != 0) driver_.cuMemFree(actor_memory_);
  } catch (const Error&) {  // the context is dead; all went with it
  }
}

void CudaEngine::launch() {
  const Context::Current current(context_);
  // The driver reads each argument through an address: an array of addresses of values that live until it
  // returns.
  CUdeviceptr region = region_->device_address();
  RegionLayout layout = layout_;
  EngineMemory memory = memory_;
  void* arguments[] = {&region, &layout, &memory};
  if (verbose_) {
    std::fprintf(stderr,
                 "gyre: arguments: region 0x%llx (%llu bytes), layout %u workers, %u slots of %u bytes\n",
                 region, static_cast<unsigned long long>(layout.region_bytes()), layout.workers,
                 layout.shape.slots, layout.shape.slot_bytes);
  }
  driver_.check(
      driver_.cuLaunchCooperativeKernel(function_, request_.grid, 1, 1, request_.block, 1, 1,
                                        request_.dynamic_shared_bytes, stream_, arguments),
      fmt::format("launching the kernel on {} blocks of {} threads", request_.grid, request_.block));
  launched_ = true;
}

// What the loaded module says of its actors. With the context current; before the launch, since it waits for
// the device.
std::vector<ActorDescription> CudaEngine::read_description(const std::string& lowered_name) const {
  CUdeviceptr address = 0;
  size_t size = 0;
  driver_.check(driver_.cuModuleGetGlobal(&address, &size, module_, lowered_name.c_str()),
                "finding the actors' description " + lowered_name);
  std::vector<std::byte> bytes(size);
  driver_.check(driver_.cuMemcpyDtoH(bytes.data(), address, size), "reading the actors' description");
  return gyre::read_description(bytes);
}

CUresult CudaEngine::query() const {
  const Context::Current current(context_);
  return driver_.cuStreamQuery(stream_);
}

bool CudaEngine::finished() {
  try {
    return !launched_ || query() != CUDA_ERROR_NOT_READY;
  } catch (const Error&) {
    return true;  // the context is dead, and the kernel with it
  }
}

std::optional<std::string> CudaEngine::failure() {
  if (!launched_) return std::nullopt;
  try {
    const CUresult result = query();
    if (result == CUDA_ERROR_NOT_READY) return std::nullopt;
    if (result != CUDA_SUCCESS) return "running the workers: " + driver_.explain(result);
  } catch (const Error& error) {
    return error.what();
  }
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    if (Memory::load_acquire(Bridge::of(region_->host_address(), layout_, worker).worker_line->stopped) ==
        0) {
      return "running the workers: the kernel ended by itself";
    }
  }
  return std::nullopt;  // all stopped as they were told
}

void CudaEngine::leak() {
  leaked_ = true;
  region_->leak();
  context_.leak();
  lease_.keep();
}

}  // namespace gyre::cuda
