#include <dlfcn.h>
#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/error.hpp>

namespace gyre::cuda {

namespace {

// The interface asked of cuGetProcAddress: that of CUDA 12.0, which every function of the table still has.
constexpr int interface_version = 12000;

// What a user should look at next, for the codes users meet.
std::string_view remedy(CUresult result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "ask for fewer --slots or --workers, or free memory on the device";
    case CUDA_ERROR_NO_DEVICE:
      return "no GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES";
    case CUDA_ERROR_INVALID_DEVICE:
      return "check --device against nvidia-smi -L";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "the kernel was compiled for another GPU";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return "a handler, or its arguments, used a wrong address";
    case CUDA_ERROR_MISALIGNED_ADDRESS:
      return "a handler used a misaligned address";
    case CUDA_ERROR_LAUNCH_FAILED:
      return "a handler crashed; run under compute-sanitizer to see where";
    case CUDA_ERROR_LAUNCH_TIMEOUT:
      return "the display watchdog ended the kernel: use a GPU without a display";
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      return "ask for fewer --workers or a smaller --block";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "driver and libcuda differ: reboot after a driver update";
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return "the NVIDIA driver or fabric manager is not running";
    default:
      return {};
  }
}

void* open_driver() { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); }

}  // namespace

Driver Driver::load() {
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
  if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) {
    throw EngineUnavailable("initialising the CUDA driver: " + driver.explain(result));
  }
  return driver;
}

int Driver::device_count() noexcept {
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

std::string Driver::explain(CUresult result) const {
  const char* name = nullptr;
  const char* meaning = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &meaning);
  std::string text = name != nullptr ? name : "an unknown CUDA error";
  text += " (" + std::to_string(int(result)) + ")";
  if (meaning != nullptr) text += std::string(": ") + meaning;
  if (const std::string_view hint = remedy(result); !hint.empty()) text += "; " + std::string(hint);
  return text;
}

Context::Context(const Driver& driver, int ordinal) : driver_(driver) {
  int count = 0;
  driver.check(driver.cuDeviceGetCount(&count), "counting CUDA devices");
  if (ordinal >= count) {
    throw EngineUnavailable("choosing CUDA device " + std::to_string(ordinal) + ": this machine has " +
                            std::to_string(count) + "; choose --device below that, or use --engine cpu");
  }
  driver.check(driver.cuDeviceGet(&device_, ordinal), "opening CUDA device " + std::to_string(ordinal));
  driver.check(driver.cuDevicePrimaryCtxRetain(&context_, device_), "retaining the device's primary context");
}

Context::~Context() {
  if (retained_) driver_.cuDevicePrimaryCtxRelease(device_);
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
