// Streams of the program wait for words of host memory, and are waited for by events.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/runtime/core/program_streams.hpp>

#include <functional>
#include <memory>

namespace gyre::cuda {

class CudaProgramStreams final : public ProgramStreams {
 public:
  /// @param driver  loads the driver in this process, when it is first needed
  /// @param device  the engine's
  CudaProgramStreams(std::function<std::shared_ptr<const Driver>()> driver,
                     std::function<DeviceUuid()> device)
      : driver_(std::move(driver)), device_(std::move(device)) {}

  void wait_for(void* stream, std::chrono::nanoseconds timeout) override;
  std::unique_ptr<StreamHold> hold(void* stream) override;

 private:
  const std::function<std::shared_ptr<const Driver>()> driver_;
  const std::function<DeviceUuid()> device_;
};

}  // namespace gyre::cuda
