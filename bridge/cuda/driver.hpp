// The CUDA driver, loaded at run time: one binary serves machines with and without a GPU.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>
#include <string_view>

namespace gyre::cuda {

// Every driver function Gyre calls. Only functions whose interface has not changed since CUDA 12.0.
#define GYRE_CUDA_FUNCTIONS(X)                                                                               \
  X(cuInit)                                                                                                  \
  X(cuDriverGetVersion)                                                                                      \
  X(cuGetErrorName)                                                                                          \
  X(cuGetErrorString)                                                                                        \
  X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem)          \
      X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxPushCurrent) X(cuCtxPopCurrent)        \
          X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostGetDevicePointer) X(cuModuleLoadDataEx)              \
              X(cuModuleUnload) X(cuModuleGetFunction) X(cuFuncGetAttribute) X(cuFuncSetAttribute)           \
                  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) X(cuStreamCreate) X(cuStreamDestroy)        \
                      X(cuStreamQuery) X(cuStreamSynchronize) X(cuLaunchKernel) X(cuLaunchCooperativeKernel) \
                          X(cuMemAlloc) X(cuMemFree) X(cuMemsetD8Async) X(cuModuleGetGlobal) X(cuMemcpyDtoH)

/// The driver's functions, by their names. A plain table.
struct Driver {
#define GYRE_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  GYRE_CUDA_FUNCTIONS(GYRE_CUDA_MEMBER)
#undef GYRE_CUDA_MEMBER

  /// Loads libcuda.so.1 and initialises it. Throws EngineUnavailable: what is missing and what to install.
  static Driver load();
  /// CUDA devices here; 0 where there is no usable driver. Never throws.
  static int device_count() noexcept;

  /// Throws Error unless `result` is success: "<doing>: CUDA_ERROR_… (700): what it means".
  void check(CUresult result, std::string_view doing) const;
  /// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered; <what to check>".
  std::string explain(CUresult result) const;
};

/// A device's primary context, retained while this lives. Move-only.
class Context {
 public:
  /// Throws EngineUnavailable for a device that is not there, Error where CUDA fails. `driver` must outlive
  /// this.
  Context(const Driver& driver, int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Keeps the context for ever: releasing it would wait for a kernel that never ends.
  void leak() { retained_ = false; }

  const Driver& driver() const { return driver_; }
  CUdevice device() const { return device_; }
  std::string name() const;
  /// Throws Error.
  int attribute(CUdevice_attribute attribute) const;
  size_t total_memory() const;

  /// Makes the context the calling thread's for a scope.
  class Current {
   public:
    explicit Current(const Context& context) : driver_(context.driver_) {
      driver_.check(driver_.cuCtxPushCurrent(context.context_), "making the CUDA context current");
    }
    ~Current() {
      CUcontext popped;
      driver_.cuCtxPopCurrent(&popped);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const Driver& driver_;
  };

 private:
  const Driver& driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  bool retained_ = true;
};

}  // namespace gyre::cuda
