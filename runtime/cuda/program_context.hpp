// The context that the program's own CUDA code uses: Gyre enters it for imports, exports and waiting, and
// makes none.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>

#include <optional>
#include <string>

namespace gyre::cuda {

/// Returns "GPU-…", as nvidia-smi lists it.
std::string text_of(const DeviceUuid& uuid);

/// Returns this thread's current context if it is of the device, else the device's primary context if the
/// program has made it; nothing where neither is. Makes no context. Throws Error if CUDA fails.
std::optional<CUcontext> find_program_context(const Driver& driver, const DeviceUuid& device);
/// Likewise. Throws Error with what to do where there is none.
/// @param doing  "exporting a buffer"
CUcontext require_program_context(const Driver& driver, const DeviceUuid& device, const char* doing);

/// Makes a context of the program current for a scope, outside captures; none if it is null, or gone.
class MaybeCurrent {
 public:
  MaybeCurrent(const Driver& driver, CUcontext context)
      : driver_(driver), pushed_(context != nullptr && driver.cuCtxPushCurrent(context) == CUDA_SUCCESS) {}
  ~MaybeCurrent() {
    CUcontext popped;
    if (pushed_)
      driver_.check_or_log(driver_.cuCtxPopCurrent(&popped), "leaving a context (cuCtxPopCurrent)");
  }
  MaybeCurrent(const MaybeCurrent&) = delete;
  MaybeCurrent& operator=(const MaybeCurrent&) = delete;

  explicit operator bool() const { return pushed_; }

 private:
  const Driver& driver_;
  const bool pushed_;
  const OutsideCaptures outside_captures_{driver_};
};

/// Blocks until the context's work so far is done, as cudaFree does.
/// @returns false if that cannot be known, and the work may go on
bool wait_for_context(const Driver& driver, CUcontext context) noexcept;

}  // namespace gyre::cuda
