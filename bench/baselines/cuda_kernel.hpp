// One bare kernel on one device: what the CUDA baselines share.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/runtime/cuda/program.hpp>

#include <chrono>
#include <memory>

namespace gyre::bench {

/// Kernels that measure by themselves end in far less.
inline constexpr std::chrono::seconds kernel_end_timeout{60};

/// A device's context, current in the thread that made this, with one loaded kernel and a stream. One
/// thread's. No other kernel may live on the device meanwhile: loading one would wait for it.
class CudaKernel {
 public:
  /// Compiles and loads. `compile(architecture)` gets 90 for compute capability 9.0. Throws
  /// EngineUnavailable, Error.
  template <class Compile>
  CudaKernel(int device, Compile&& compile) : CudaKernel(device) {
    load(compile(architecture()));
  }
  /// Waits for the kernel, unless abandon() was called.
  ~CudaKernel();
  CudaKernel(const CudaKernel&) = delete;
  CudaKernel& operator=(const CudaKernel&) = delete;

  const cuda::Context& context() const { return device_->context; }
  const cuda::Driver& driver() const { return device_->driver; }
  /// What it launches in.
  CUstream stream() const { return stream_; }
  /// Throws Error unless `result` is success.
  void check(CUresult result, std::string_view doing) const { driver().check(result, doing); }

  /// Launches `blocks` blocks of `threads`, without waiting. `arguments`: addresses of the kernel's
  /// parameters. Throws Error.
  void launch(uint32_t threads, void** arguments, uint32_t blocks = 1) {
    check(driver().cuLaunchKernel(function_, blocks, 1, 1, threads, 1, 1, 0, stream_, arguments, nullptr),
          "launching a bare kernel");
  }
  /// Waits, for ever if need be, as the driver likes to wait. Throws Error.
  void synchronise() { check(driver().cuStreamSynchronize(stream_), "waiting for a bare kernel"); }

  /// True once the launched kernel has ended, well or not. Never waits.
  bool ended() const { return driver().cuStreamQuery(stream_) != CUDA_ERROR_NOT_READY; }
  /// The same within `timeout`.
  bool wait_until_ended(std::chrono::nanoseconds timeout) const;
  /// Throws Error if the kernel that ended failed.
  void check_ended() const { check(driver().cuStreamQuery(stream_), "running a bare kernel"); }

  /// The kernel does not end: leaves context, module and stream as they are, for good.
  void abandon() { (void)device_.release(); }

 private:
  // They refer to each other by address: kept together, or left together.
  struct Device {
    explicit Device(int ordinal) : context(driver, ordinal), current(context) {}
    cuda::Driver driver = cuda::Driver::load();
    cuda::Context context;
    cuda::Context::Current current;
  };

  explicit CudaKernel(int device) : device_(std::make_unique<Device>(device)) {}
  int architecture() const;
  void load(const cuda::CompiledKernel& kernel);

  std::unique_ptr<Device> device_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUstream stream_ = nullptr;
};

}  // namespace gyre::bench
