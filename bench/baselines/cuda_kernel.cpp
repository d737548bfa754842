#include "baselines/cuda_kernel.hpp"

#include <thread>

namespace gyre::bench {

CudaKernel::~CudaKernel() {
  if (!device_) return;
  if (stream_ != nullptr) {
    driver().cuStreamSynchronize(stream_);
    driver().cuStreamDestroy(stream_);
  }
  if (module_ != nullptr) driver().cuModuleUnload(module_);
}

int CudaKernel::architecture() const {
  return 10 * context().attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
         context().attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

void CudaKernel::load(const cuda::CompiledKernel& kernel) {
  check(driver().cuModuleLoadDataEx(&module_, kernel.cubin.data(), 0, nullptr, nullptr),
        "loading a bare kernel");
  check(driver().cuModuleGetFunction(&function_, module_, kernel.lowered_name.c_str()),
        "finding the kernel " + kernel.lowered_name);
  check(driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "creating a bare kernel's stream");
}

bool CudaKernel::wait_until_ended(std::chrono::nanoseconds timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!ended()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

}  // namespace gyre::bench
