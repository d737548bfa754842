// The CUDA driver, loaded at run time: one binary serves machines with and without a GPU.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

namespace gyre::cuda {

// clang-format off
// Every driver function Gyre calls. Only functions whose interface has not changed since CUDA 12.0.
#define GYRE_CUDA_FUNCTIONS(X)                   \
  X(cuInit)                                      \
  X(cuDriverGetVersion)                          \
  X(cuGetErrorName)                              \
  X(cuGetErrorString)                            \
  X(cuDeviceGetCount)                            \
  X(cuDeviceGet)                                 \
  X(cuDeviceGetName)                             \
  X(cuDeviceGetAttribute)                        \
  X(cuDeviceTotalMem)                            \
  X(cuDevicePrimaryCtxRetain)                    \
  X(cuDevicePrimaryCtxRelease)                   \
  X(cuDevicePrimaryCtxGetState)                  \
  X(cuCtxDestroy)                                \
  X(cuCtxGetDevice)                              \
  X(cuCtxPushCurrent)                            \
  X(cuCtxPopCurrent)                             \
  X(cuMemHostAlloc)                              \
  X(cuMemFreeHost)                               \
  X(cuMemHostGetDevicePointer)                   \
  X(cuMemHostRegister)                           \
  X(cuMemHostUnregister)                         \
  X(cuModuleLoadDataEx)                          \
  X(cuModuleUnload)                              \
  X(cuModuleGetFunction)                         \
  X(cuFuncGetAttribute)                          \
  X(cuFuncSetAttribute)                          \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuStreamCreate)                              \
  X(cuStreamDestroy)                             \
  X(cuStreamQuery)                               \
  X(cuStreamSynchronize)                         \
  X(cuLaunchKernel)                              \
  X(cuLaunchCooperativeKernel)                   \
  X(cuMemGetInfo)                                \
  X(cuMemGetAddressRange)                        \
  X(cuPointerGetAttribute)                       \
  X(cuMemAlloc)                                  \
  X(cuMemFree)                                   \
  X(cuMemAllocManaged)                           \
  X(cuMemcpyHtoDAsync)                           \
  X(cuMemcpyDtoHAsync)                           \
  X(cuDeviceGetPCIBusId)                         \
  X(cuMemsetD8Async)                             \
  X(cuModuleGetGlobal)                           \
  X(cuMemcpyDtoH)                                \
  X(cuDeviceGetUuid)                             \
  X(cuImportExternalMemory)                      \
  X(cuExternalMemoryGetMappedBuffer)             \
  X(cuDestroyExternalMemory)                      \
  X(cuIpcGetMemHandle)                            \
  X(cuIpcOpenMemHandle)                           \
  X(cuIpcCloseMemHandle)                          \
  X(cuMemRetainAllocationHandle)                  \
  X(cuMemExportToShareableHandle)                 \
  X(cuMemImportFromShareableHandle)               \
  X(cuMemAddressReserve)                          \
  X(cuMemAddressFree)                             \
  X(cuMemMap)                                     \
  X(cuMemUnmap)                                   \
  X(cuMemSetAccess)                               \
  X(cuMemRelease)                                 \
  X(cuEventCreate)                                \
  X(cuEventDestroy)                               \
  X(cuEventRecord)                                \
  X(cuEventQuery)                                 \
  X(cuMemCreate)                                  \
  X(cuMemGetAllocationGranularity)                \
  X(cuCtxGetCurrent)                              \
  X(cuCtxSynchronize)                             \
  X(cuStreamWaitValue32)                          \
  X(cuStreamWriteValue32)                         \
  X(cuThreadExchangeStreamCaptureMode)

// Functions that not every driver has, each with the CUDA version that brought it and its type there (which the
// toolkit's headers may lack, or have changed): null where the driver lacks it.
#define GYRE_CUDA_OPTIONAL_FUNCTIONS(X)                                                                    \
  X(cuCtxCreate, 3020, CUresult(CUcontext*, unsigned int flags, CUdevice))                                 \
  X(cuOccupancyMaxActiveClusters, 11080, CUresult(int* clusters, CUfunction, const CUlaunchConfig*))       \
  X(cuFuncGetParamInfo, 12040, CUresult(CUfunction, size_t index, size_t* offset, size_t* size))          \
  X(cuStreamBeginCapture, 10010, CUresult(CUstream, CUstreamCaptureMode))                                  \
  X(cuStreamEndCapture, 10000, CUresult(CUstream, CUgraph*))                                               \
  X(cuGraphInstantiateWithFlags, 11040, CUresult(CUgraphExec*, CUgraph, unsigned long long flags))         \
  X(cuGraphLaunch, 10000, CUresult(CUgraphExec, CUstream))                                                 \
  X(cuGraphExecDestroy, 10000, CUresult(CUgraphExec))                                                      \
  X(cuGraphDestroy, 10000, CUresult(CUgraph))
// clang-format on

/// The driver's functions, by their names. A plain table.
struct Driver {
#define GYRE_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  GYRE_CUDA_FUNCTIONS(GYRE_CUDA_MEMBER)
#undef GYRE_CUDA_MEMBER
  /// cuMemAdvise as CUDA 12.0 has it; later headers declare another. Null where the driver lacks it.
  CUresult(CUDAAPI* advise)(CUdeviceptr, size_t, CUmem_advise, CUdevice) = nullptr;
#define GYRE_CUDA_OPTIONAL_MEMBER(name, version, type) std::add_pointer_t<type> name = nullptr;
  GYRE_CUDA_OPTIONAL_FUNCTIONS(GYRE_CUDA_OPTIONAL_MEMBER)
#undef GYRE_CUDA_OPTIONAL_MEMBER

  /// Loads libcuda.so.1 and initialises it. Throws EngineUnavailable: what is missing and what to install, or
  /// that this process was forked from one that uses CUDA.
  static Driver load();
  /// The functions of libcuda.so.1, not initialised. Throws EngineUnavailable.
  static Driver load_library();
  /// From now on load() takes its table from `loader` instead of load_library(), and again from
  /// load_library() if `loader` is empty; returns what was in force. For tests and tracing: a loader may give
  /// functions of its own, or wrap others. Tables that were loaded before stay as they are. Any thread.
  static std::function<Driver()> replace_loader(std::function<Driver()> loader);
  /// Throws EngineUnavailable in a child that was forked after CUDA had been initialised: CUDA does not work
  /// there.
  static void refuse_after_fork();
  /// True where libcuda.so.1 is, or load() has a loader. Initialises nothing: makes no CUDA call.
  static bool library_present();
  /// CUDA devices here; 0 where there is no usable driver. Throws nothing but std::bad_alloc.
  static int device_count();

  /// Throws Error unless `result` is success: "<doing>: CUDA_ERROR_… (700): what it means".
  void check(CUresult result, std::string_view doing) const;
  /// Logs the line of check() as a warning, for code that must not throw. Logs nothing if `result` says that
  /// the context is dead: the engine has reported that. `doing` names the function.
  void check_or_log(CUresult result, const char* doing) const noexcept;
  /// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered: <what the catalogue of
  /// errors says it means here, and what to check>".
  std::string explain(CUresult result) const;
};

/// Returns true if `result` says that the context is dead, with every kernel in it: a device fault, a lost
/// device, a destroyed context. Any other error of a call says nothing about kernels.
bool ends_context(CUresult result);

/// Returns the device with this number. Throws EngineUnavailable if there is none, Error if CUDA fails.
CUdevice find_device(const Driver& driver, int ordinal);
/// The number of a device that no other has.
using DeviceUuid = std::array<uint8_t, 16>;

/// Returns the UUID by which other interfaces, such as Vulkan, know the device. Throws Error.
DeviceUuid uuid_of(const Driver& driver, CUdevice device);

class DeviceLease;

/// While one lives, the calling thread's calls neither spoil another's capture of a stream nor are refused
/// for it: CUDA asks that of code that captures nothing, and does not know who does.
class OutsideCaptures {
 public:
  explicit OutsideCaptures(const Driver& driver) noexcept
      : driver_(driver), changed_(driver.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS) {}
  ~OutsideCaptures() {
    if (changed_) driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  OutsideCaptures(const OutsideCaptures&) = delete;
  OutsideCaptures& operator=(const OutsideCaptures&) = delete;

 private:
  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // then the thread's own
  const bool changed_;
};

/// Selects a context: one that nobody else uses, the device's primary one, or one that the program made.
enum class ContextKind { own, primary, given };

/// Has a context of a device while it lives. It is ended, or the primary one released, when nothing of this
/// process can wait for that (device_lease.hpp); a given one stays the program's. Neither copied nor moved.
class Context {
 public:
  /// Retains the primary context, to make and test memory in. Throws EngineUnavailable for a device that is
  /// not there, Error where CUDA fails. `driver` must outlive this.
  Context(const Driver& driver, int ordinal);
  /// Takes a context to load and run a kernel in. Making an own one beside live kernels takes up to seconds.
  /// `lease` is of the same device. Throws as above, and Error where another lease has that context or the
  /// given one is another device's.
  Context(const Driver& driver, int ordinal, DeviceLease& lease, ContextKind kind, CUcontext given = nullptr);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Keeps the context for good: ending it would wait for a kernel that never ends.
  void leak() { leaked_ = true; }

  const Driver& driver() const { return driver_; }
  /// Returns true if this is that context.
  bool is(CUcontext context) const { return context == context_; }
  CUdevice device() const { return device_; }
  std::string name() const;
  /// Throws Error.
  int attribute(CUdevice_attribute attribute) const;
  size_t total_memory() const;

  /// Makes the context the calling thread's for a scope, outside captures.
  class Current {
   public:
    /// Throws Error.
    explicit Current(const Context& context)
        : Current(context.driver_, context.driver_.cuCtxPushCurrent(context.context_)) {
      driver_.check(result_, "making the CUDA context current");
    }
    /// For code that must not throw: logs a failure; see result().
    Current(const Context& context, std::nothrow_t) noexcept
        : Current(context.driver_, context.driver_.cuCtxPushCurrent(context.context_)) {
      driver_.check_or_log(result_, "making the CUDA context current (cuCtxPushCurrent)");
    }
    ~Current() {
      CUcontext popped;
      if (result_ != CUDA_SUCCESS) return;
      driver_.check_or_log(driver_.cuCtxPopCurrent(&popped), "leaving the CUDA context (cuCtxPopCurrent)");
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

    CUresult result() const { return result_; }

   private:
    Current(const Driver& driver, CUresult pushed) noexcept
        : driver_(driver), result_(pushed), outside_captures_(driver) {}

    const Driver& driver_;
    const CUresult result_;
    const OutsideCaptures outside_captures_;
  };

 private:
  void release() const noexcept;

  const Driver& driver_;
  CUdevice device_ = 0;
  const ContextKind kind_;
  CUcontext context_ = nullptr;
  bool leaked_ = false;
};

}  // namespace gyre::cuda
