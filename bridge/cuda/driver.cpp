#include <dlfcn.h>
#include <gyre/bridge/cuda/device_lease.hpp>
#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/errors/catalogue.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/fork.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

namespace gyre::cuda {

namespace {

// The interface asked of cuGetProcAddress: that of CUDA 12.0, which every function of the table still has.
constexpr int interface_version = 12000;

// A driver that is missing stays missing for the process: launches with `--engine auto` must not search the
// library path each time.
void* open_driver() {
  static constinit std::atomic<bool> missing{false};  // a flag alone: relaxed, with no partner
  if (missing.load(std::memory_order_relaxed)) return nullptr;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) missing.store(true, std::memory_order_relaxed);
  return library;
}

struct Loader {
  std::mutex mutex;
  std::function<Driver()> function;
};
// Never destroyed: a runtime may be launched, and end, with the program's static objects.
Loader& loader() {
  static Loader& loader = *new Loader;
  return loader;
}

// The fork generation in which CUDA was first initialised, + 1; 0: it was not.
std::atomic<uint64_t> initialised_in{0};

}  // namespace

std::function<Driver()> Driver::replace_loader(std::function<Driver()> function) {
  const detail::ForkDeferred deferred;
  const std::lock_guard lock(loader().mutex);
  return std::exchange(loader().function, std::move(function));
}

void Driver::refuse_after_fork() {
  const uint64_t first = initialised_in.load(std::memory_order_acquire);  // pairs with the exchange in load()
  if (first != 0 && first != uint64_t(detail::fork_generation.load(std::memory_order_relaxed)) + 1) {
    throw EngineUnavailable(
        "using CUDA after fork(): the parent process had initialised CUDA before it forked this one, and "
        "CUDA does not work in such a child; use --isolation process, fork before the first launch on CUDA, "
        "or use --engine cpu");
  }
}

Driver Driver::load() {
  refuse_after_fork();
  const detail::ForkDeferred deferred;  // a child must not find the library half loaded, or half initialised
  std::function<Driver()> replacement;
  {
    const std::lock_guard lock(loader().mutex);
    replacement = loader().function;
  }
  const Driver driver = replacement ? replacement() : load_library();
  if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) {
    throw EngineUnavailable("initialising the CUDA driver: " + driver.explain(result));
  }
  uint64_t not_yet = 0;
  initialised_in.compare_exchange_strong(not_yet, uint64_t(detail::fork_generation.load()) + 1);
  return driver;
}

Driver Driver::load_library() {
  void* const library = open_driver();
  if (library == nullptr) {
    throw EngineUnavailable(
        "loading the CUDA driver: libcuda.so.1 was not found; install NVIDIA's driver (525 or later) on a "
        "machine with "
        "an NVIDIA GPU, or use --engine cpu");
  }
  const auto get_proc_address =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(dlsym(library, "cuGetProcAddress_v2"));
  if (get_proc_address == nullptr) {
    throw EngineUnavailable(
        "loading the CUDA driver: it lacks cuGetProcAddress_v2, so it is older than CUDA 12.0; install "
        "driver 525 or "
        "later");
  }
  Driver driver;
#define GYRE_CUDA_LOAD(function)                                                                         \
  {                                                                                                      \
    void* address = nullptr;                                                                             \
    CUdriverProcAddressQueryResult found;                                                                \
    if (get_proc_address(#function, &address, interface_version, CU_GET_PROC_ADDRESS_DEFAULT, &found) != \
            CUDA_SUCCESS ||                                                                              \
        address == nullptr) {                                                                            \
      throw EngineUnavailable("loading the CUDA driver: it has no " #function                            \
                              "; install driver 525 or later");                                          \
    }                                                                                                    \
    driver.function = reinterpret_cast<decltype(driver.function)>(address);                              \
  }
  GYRE_CUDA_FUNCTIONS(GYRE_CUDA_LOAD)
#undef GYRE_CUDA_LOAD
  {
    void* address = nullptr;
    CUdriverProcAddressQueryResult found;
    if (get_proc_address("cuMemAdvise", &address, interface_version, CU_GET_PROC_ADDRESS_DEFAULT, &found) ==
        CUDA_SUCCESS) {
      driver.advise = reinterpret_cast<decltype(driver.advise)>(address);
    }
  }
#define GYRE_CUDA_LOAD_OPTIONAL(function, version, type)                                       \
  {                                                                                            \
    void* address = nullptr;                                                                   \
    CUdriverProcAddressQueryResult found;                                                      \
    if (get_proc_address(#function, &address, version, CU_GET_PROC_ADDRESS_DEFAULT, &found) == \
        CUDA_SUCCESS) {                                                                        \
      driver.function = reinterpret_cast<decltype(driver.function)>(address);                  \
    }                                                                                          \
  }
  GYRE_CUDA_OPTIONAL_FUNCTIONS(GYRE_CUDA_LOAD_OPTIONAL)
#undef GYRE_CUDA_LOAD_OPTIONAL
  return driver;
}

bool Driver::library_present() {
  const detail::ForkDeferred deferred;
  {
    const std::lock_guard lock(loader().mutex);
    if (loader().function) return true;
  }
  return open_driver() != nullptr;
}

int Driver::device_count() {
  try {
    int count = 0;
    return load().cuDeviceGetCount(&count) == CUDA_SUCCESS ? count : 0;
  } catch (const Error&) {
    return 0;
  }
}

void Driver::check(CUresult result, std::string_view doing) const {
  if (result != CUDA_SUCCESS) throw Error(std::string(doing) + ": " + explain(result));
}

void Driver::check_or_log(CUresult result, const char* doing) const noexcept {
  if (result == CUDA_SUCCESS || ends_context(result)) return;
  // Pairs with the store of the logger when the program starts.
  const detail::ErrorLog log = detail::error_log.load(std::memory_order_acquire);
  if (log == nullptr) return;
  try {
    log(std::string(doing) + ": " + explain(result));
  } catch (const std::bad_alloc&) {
    log(doing);  // it failed; there is no memory to say how
  }
}

std::string Driver::explain(CUresult result) const {
  const char* name = nullptr;
  const char* meaning = nullptr;
  if (cuGetErrorName != nullptr) cuGetErrorName(result, &name);
  if (cuGetErrorString != nullptr) cuGetErrorString(result, &meaning);
  const ErrorEntry* const entry = find_error(ErrorSource::cuda, uint32_t(result));
  std::string text = name != nullptr    ? std::string(name)
                     : entry != nullptr ? std::string(entry->name)
                                        : "an unknown CUDA error";
  text += " (" + std::to_string(int(result)) + ")";
  if (meaning != nullptr) text += std::string(": ") + meaning;
  if (const std::string advice = error_advice(ErrorSource::cuda, uint32_t(result)); !advice.empty()) {
    text += ": " + advice;
  }
  return text;
}

bool ends_context(CUresult result) {
  switch (result) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      break;
  }
  // CUDA_ERROR_CONTAINED and CUDA_ERROR_TENSOR_MEMORY_LEAK, which not every toolkit's headers have.
  return int(result) == 226 || int(result) == 721;
}

CUdevice find_device(const Driver& driver, int ordinal) {
  int count = 0;
  driver.check(driver.cuDeviceGetCount(&count), "counting CUDA devices");
  if (ordinal < 0 || ordinal >= count) {
    throw EngineUnavailable("choosing CUDA device " + std::to_string(ordinal) + ": this machine has " +
                            std::to_string(count) + "; choose --device below that, or use --engine cpu");
  }
  CUdevice device = 0;
  driver.check(driver.cuDeviceGet(&device, ordinal), "opening CUDA device " + std::to_string(ordinal));
  return device;
}

DeviceUuid uuid_of(const Driver& driver, CUdevice device) {
  CUuuid read{};
  driver.check(driver.cuDeviceGetUuid(&read, device), "reading the device's UUID");
  DeviceUuid uuid;
  std::copy_n(reinterpret_cast<const uint8_t*>(read.bytes), uuid.size(), uuid.begin());
  return uuid;
}

namespace {

CUcontext retain_primary(const Driver& driver, CUdevice device) {
  CUcontext context = nullptr;
  driver.check(driver.cuDevicePrimaryCtxRetain(&context, device), "retaining the device's primary context");
  return context;
}

// Made, it is the thread's current one.
CUcontext make_context(const Driver& driver, CUdevice device) {
  if (driver.cuCtxCreate == nullptr) {
    throw EngineUnavailable("making a CUDA context: the driver has no cuCtxCreate; use --context primary");
  }
  CUcontext context = nullptr, popped = nullptr;
  driver.check(driver.cuCtxCreate(&context, CU_CTX_SCHED_AUTO, device), "making a CUDA context");
  driver.check_or_log(driver.cuCtxPopCurrent(&popped), "leaving the new CUDA context (cuCtxPopCurrent)");
  return context;
}

}  // namespace

Context::Context(const Driver& driver, int ordinal)
    : driver_(driver),
      device_(find_device(driver, ordinal)),
      kind_(ContextKind::primary),
      context_(retain_primary(driver, device_)) {}

Context::Context(const Driver& driver, int ordinal, DeviceLease& lease, ContextKind kind, CUcontext given)
    : driver_(driver), device_(find_device(driver, ordinal)), kind_(kind), context_(given) {
  if (kind == ContextKind::own) {
    context_ = take_context(device_);
    if (context_ == nullptr) context_ = make_context(driver, device_);
    return;
  }
  if (kind == ContextKind::primary) {
    context_ = retain_primary(driver, device_);
  } else {
    const Current current(*this);
    CUdevice device = 0;
    driver.check(driver.cuCtxGetDevice(&device), "reading the given context's device");
    if (device != device_) {
      throw Error("launching in a given context: it is of CUDA device " + std::to_string(device) +
                  ", and --device says " + std::to_string(ordinal));
    }
  }
  try {
    lease.claim(context_);
  } catch (...) {
    release();
    throw;
  }
}

Context::~Context() {
  if (!leaked_) release();
}

void Context::release() const noexcept {
  if (kind_ == ContextKind::given) return;
  release_context(driver_, device_, kind_ == ContextKind::own ? context_ : nullptr);
}

std::string Context::name() const {
  char text[256] = {};
  driver_.check(driver_.cuDeviceGetName(text, int(sizeof text), device_), "reading the device's name");
  return text;
}

int Context::attribute(CUdevice_attribute attribute) const {
  int value = 0;
  driver_.check(driver_.cuDeviceGetAttribute(&value, attribute, device_),
                "reading device attribute " + std::to_string(int(attribute)));
  return value;
}

size_t Context::total_memory() const {
  size_t bytes = 0;
  driver_.check(driver_.cuDeviceTotalMem(&bytes, device_), "reading the device's memory size");
  return bytes;
}

}  // namespace gyre::cuda
