#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/program_context.hpp>

namespace gyre::cuda {

namespace {

bool current_is_of(const Driver& driver, const DeviceUuid& uuid) {
  CUdevice device = 0;
  return driver.cuCtxGetDevice(&device) == CUDA_SUCCESS && uuid_of(driver, device) == uuid;
}

// Nothing where the program has not made it.
std::optional<CUcontext> primary_context(const Driver& driver, CUdevice device) {
  unsigned int flags = 0;
  int active = 0;
  CUcontext context = nullptr;
  if (driver.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0 ||
      driver.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  // The program has it: it stays.
  driver.check_or_log(driver.cuDevicePrimaryCtxRelease(device),
                      "releasing the primary context (cuDevicePrimaryCtxRelease)");
  return context;
}

}  // namespace

std::string text_of(const DeviceUuid& uuid) {
  std::string text = "GPU-";
  for (size_t n = 0; n < uuid.size(); ++n)
    text += fmt::format("{}{:02x}", n == 4 || n == 6 || n == 8 || n == 10 ? "-" : "", uuid[n]);
  return text;
}

std::optional<CUcontext> find_program_context(const Driver& driver, const DeviceUuid& uuid) {
  CUcontext current = nullptr;
  driver.check(driver.cuCtxGetCurrent(&current), "asking for the thread's CUDA context");
  if (current != nullptr && current_is_of(driver, uuid)) return current;
  int devices = 0;
  driver.check(driver.cuDeviceGetCount(&devices), "counting the CUDA devices");
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    const CUdevice device = find_device(driver, ordinal);
    if (uuid_of(driver, device) == uuid) return primary_context(driver, device);
  }
  return std::nullopt;
}

CUcontext require_program_context(const Driver& driver, const DeviceUuid& device, const char* doing) {
  if (const auto found = find_program_context(driver, device)) return *found;
  throw Error(
      fmt::format("{}: this thread has no CUDA context on device {}, and the program has made no primary one "
                  "there; make one first: cudaSetDevice and cudaFree(0), or torch.zeros(1, device=\"cuda\")",
                  doing, text_of(device)));
}

bool wait_for_context(const Driver& driver, CUcontext context) noexcept {
  const MaybeCurrent current(driver, context);
  if (!current) return true;  // it is gone, with its work
  const CUresult result = driver.cuCtxSynchronize();
  driver.check_or_log(result, "waiting for work on an exported buffer (cuCtxSynchronize)");
  return result == CUDA_SUCCESS || ends_context(result);
}

}  // namespace gyre::cuda
