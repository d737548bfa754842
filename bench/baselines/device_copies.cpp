#include <fmt/format.h>
#include <gyre/bridge/cuda/pinned.hpp>
#include <gyre/bridge/errors/error.hpp>

#include <chrono>
#include <cstring>

#include "baselines/copies.hpp"
#include "baselines/cuda_kernel.hpp"
#include "baselines/launches.hpp"

namespace gyre::bench {

namespace {

// A second stream, and device memory for both directions.
class Device {
 public:
  Device(const CudaKernel& kernel, uint64_t bytes_in, uint64_t bytes_out) : kernel_(kernel) {
    try {
      kernel.check(kernel.driver().cuStreamCreate(&back, CU_STREAM_NON_BLOCKING),
                   "creating a stream of copies");
      kernel.check(kernel.driver().cuMemAlloc(&in, bytes_in), fmt::format("allocating {} bytes", bytes_in));
      kernel.check(kernel.driver().cuMemAlloc(&out, bytes_out),
                   fmt::format("allocating {} bytes", bytes_out));
    } catch (...) {
      free();
      throw;
    }
  }
  ~Device() { free(); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  CUdeviceptr in = 0, out = 0;
  CUstream back = nullptr;

 private:
  void free() {
    if (back != nullptr) {
      kernel_.driver().cuStreamSynchronize(back);
      kernel_.driver().cuStreamDestroy(back);
    }
    if (in != 0) kernel_.driver().cuMemFree(in);
    if (out != 0) kernel_.driver().cuMemFree(out);
  }
  const CudaKernel& kernel_;
};

}  // namespace

double measure_device_copies(int device, uint64_t bytes_in, uint64_t bytes_out, uint64_t messages) {
  using Clock = std::chrono::steady_clock;
  CudaKernel kernel(device, compile_empty_kernel);  // for its context and stream
  const cuda::Driver& driver = kernel.driver();
  cuda::PinnedRegion from(kernel.context(), bytes_in, bytes_in), to(kernel.context(), bytes_out, bytes_out);
  Device memory(kernel, bytes_in, bytes_out);
  std::memset(from.host_address(), 0x5a, bytes_in);
  const auto synchronise = [&] {
    kernel.synchronise();
    kernel.check(driver.cuStreamSynchronize(memory.back), "waiting for copies");
  };
  const auto copy = [&](uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) {
      kernel.check(driver.cuMemcpyHtoDAsync(memory.in, from.host_address(), bytes_in, kernel.stream()),
                   "copying to the device");
      kernel.check(driver.cuMemcpyDtoHAsync(to.host_address(), memory.out, bytes_out, memory.back),
                   "copying from the device");
    }
    synchronise();
  };
  // What comes back is known: it was copied there.
  const uint64_t common = bytes_in < bytes_out ? bytes_in : bytes_out;
  kernel.check(driver.cuMemcpyHtoDAsync(memory.out, from.host_address(), common, kernel.stream()),
               "copying to the device");
  synchronise();
  copy((messages + 9) / 10);
  const auto begin = Clock::now();
  copy(messages);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (std::memcmp(to.host_address(), from.host_address(), common) != 0)
    throw Error("copying there and back: what came back differs; please report it");
  return seconds;
}

}  // namespace gyre::bench
