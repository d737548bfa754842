// The CUDA engine: one persistent cooperative kernel, a block a worker.
#pragma once

#include <gyre/bridge/cuda/pinned.hpp>
#include <gyre/bridge/error.hpp>
#include <gyre/runtime/cuda/launch_check.hpp>
#include <gyre/runtime/engine.hpp>

#include <atomic>

namespace gyre::cuda {

class CudaEngine final : public Engine {
 public:
  /// Compiles, loads and allocates: all that would block beside a live kernel. Throws EngineUnavailable or
  /// Error.
  CudaEngine(const ActorSet& actors, const Options& options);
  ~CudaEngine() override;
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  EngineKind kind() const override { return EngineKind::cuda; }
  TransportKind transport() const override { return TransportKind::pinned; }
  std::string device_name() const override { return limits_.name; }
  void* region() override { return region_->host_address(); }
  bool shares_host_clock() const override { return false; }
  double compile_ms() const override { return compile_ms_; }
  bool compiled_from_cache() const override { return compiled_from_cache_; }
  ActorSet complete(ActorSet actors) const override {
    return actors.compiled_in() ? actors : actors.described(description_);
  }
  void launch() override;
  bool finished() override;
  std::optional<std::string> failure() override;
  void leak() override;

 private:
  // One live kernel a device: occupancy and module loading assume that there is no other.
  class DeviceLease {
   public:
    explicit DeviceLease(int ordinal);
    ~DeviceLease();
    DeviceLease(const DeviceLease&) = delete;
    DeviceLease& operator=(const DeviceLease&) = delete;
    /// The kernel never ends: nobody else gets the device.
    void keep() { kept_ = true; }

   private:
    int ordinal_;
    bool kept_ = false;
  };

  void allocate_actors(const ActorSet& actors, uint32_t actors_per_worker);
  CUresult query() const;
  std::vector<ActorDescription> read_description(const std::string& lowered_name) const;

  RegionLayout layout_;
  const bool verbose_;
  LaunchRequest request_;
  EngineMemory memory_;
  CUdeviceptr actor_memory_ = 0;
  Driver driver_;
  DeviceLease lease_;
  Context context_;
  DeviceLimits limits_;
  std::unique_ptr<PinnedRegion> region_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<ActorDescription> description_;  // of the actors, as the module has them
  double compile_ms_ = 0;
  bool compiled_from_cache_ = false;
  bool launched_ = false;
  bool leaked_ = false;
};

/// The limits of a device, as its driver tells them. Throws Error.
DeviceLimits read_limits(const Context& context);

}  // namespace gyre::cuda
