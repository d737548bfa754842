// The CUDA engine: one persistent cooperative kernel, a block a worker.
#pragma once

#include <gyre/bridge/cuda/bar.hpp>
#include <gyre/bridge/cuda/device_lease.hpp>
#include <gyre/bridge/cuda/region_memory.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/core/engine.hpp>
#include <gyre/runtime/cuda/arguments.hpp>
#include <gyre/runtime/cuda/loaded_kernel.hpp>
#include <gyre/runtime/cuda/memory.hpp>
#include <gyre/runtime/cuda/program_streams.hpp>

#include <atomic>
#include <mutex>

namespace gyre::cuda {

class CudaEngine final : public Engine {
 public:
  /// Compiles, loads and allocates: all that would block beside a live kernel. Throws EngineUnavailable or
  /// Error.
  /// @param served_runtime  the tag (BufferMemory::runtime_tag) of a runtime in another process, which maps
  ///                        the region and the pinned buffers too; 0: the runtime is in this process
  CudaEngine(const ActorSet& actors, const Options& options, uint32_t served_runtime = 0);
  ~CudaEngine() override;
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  EngineKind kind() const override { return EngineKind::cuda; }
  TransportKind transport() const override { return transport_; }
  std::string device_name() const override { return limits_.name; }
  void* region() override { return region_->host_address(); }
  BarInbound bar_inbound() const override { return bar_memory_ ? bar_memory_->inbound() : BarInbound{}; }
  std::string transport_reason() const override { return transport_reason_; }
  bool shares_host_clock() const override { return false; }
  BufferMemory& buffer_memory() override { return *buffer_memory_; }
  ProgramStreams& program_streams() override { return program_streams_; }
  MemoryStats memory() const override;
  double compile_ms() const override { return compile_ms_; }
  bool compiled_from_cache() const override { return compiled_from_cache_; }
  bool compiled_ahead() const override { return compiled_ahead_; }
  ActorSet complete(ActorSet actors) const override {
    return actors.compiled_in() ? actors : actors.described(description_);
  }
  void launch() override;
  bool finished() override;
  std::optional<std::string> failure() override;
  bool may_die() const override { return true; }
  void leak() override;

  /// Returns the actors' description, as the compiled module has it.
  const std::vector<ActorDescription>& description() const { return description_; }
  const RegionLayout& layout() const { return layout_; }
  /// Returns the descriptor of the region's memory; -1 unless another process is served.
  int region_descriptor() const { return region_descriptor_; }
  /// Returns how many multiprocessors the workers may occupy: under MPS a part of the device's.
  uint32_t multiprocessors() const { return limits_.multiprocessors; }
  /// Returns how long the driver took to lock the region's pages for the device, in milliseconds.
  double register_ms() const { return register_ms_; }
  CudaBufferMemory& cuda_buffers() { return *buffer_memory_; }
  /// Returns the context, which lives as long as the engine.
  const Context& context() const { return context_; }
  /// Returns the device's mapping of the memory behind the BAR transport; null with other transports.
  const BarMapping* bar() const { return bar_.get(); }
  /// Uses BAR in place of pinned memory, before the launch.
  /// @param bar  tested memory of the served process
  void use_bar(std::unique_ptr<BarMapping> bar) {
    bar_ = std::move(bar);
    transport_ = TransportKind::bar;
  }

 private:
  struct Ahead;

  Ahead begin_ahead(const ActorSet& actors, const Options& options) const;
  std::unique_ptr<RegionMemory> make_region();
  void choose_transport(TransportKind asked);
  void allocate_actors();
  CUresult query() const noexcept;
  void release() noexcept;
  void log_launch() const;

  RegionLayout layout_;
  TransportKind transport_ = TransportKind::pinned;
  std::string transport_reason_;  // why it is not BAR, where that was to be chosen
  const bool verbose_;
  const uint32_t served_runtime_;  // 0: in this process
  int region_descriptor_ = -1;
  double register_ms_ = 0;
  const ForkGuard fork_;
  EngineMemory memory_{};
  CUdeviceptr actor_memory_ = 0;
  uint64_t zeroed_bytes_ = 0;  // of it
  Driver driver_;
  DeviceLease lease_;
  DeviceLimits limits_;
  LaunchRequest request_;
  std::unique_ptr<Ahead> ahead_;  // while the engine is made
  Context context_;
  KernelLimits kernel_limits_;
  std::unique_ptr<LoadedKernel> kernel_;
  std::string kernel_name_;
  std::unique_ptr<RegionMemory> region_;
  std::unique_ptr<BarMemory> bar_memory_;  // null unless transport_ is bar, and in this process
  std::unique_ptr<BarMapping> bar_;        // null unless transport_ is bar
  std::unique_ptr<CudaBufferMemory> buffer_memory_;
  CUstream stream_ = nullptr;
  CudaProgramStreams program_streams_{
      [this] { return std::shared_ptr<const Driver>(std::shared_ptr<void>(), &driver_); },
      [this] { return uuid_of(driver_, context_.device()); }};
  ArgumentBlock arguments_;                    // kept until the kernel has ended
  std::vector<ActorDescription> description_;  // of the actors, as the module has them
  double compile_ms_ = 0;
  bool compiled_from_cache_ = false;
  bool compiled_ahead_ = false;
  uint64_t module_bytes_ = 0;
  // What the device has, as last read: by one thread at a time, and none waits for it.
  mutable std::mutex device_memory_mutex_;
  mutable int64_t device_memory_read_ns_ = 0;
  mutable std::atomic<uint64_t> device_total_{0}, device_free_{0};
  bool launched_ = false;
  bool leaked_ = false;
};

/// What is wrong with the workers of a grid-scoped set; empty if nothing.
std::string grid_problem(const ActorSet& actors, const Options& options);

/// Bytes of its own memory that a worker of such actors unpacks messages into and builds replies in: dynamic
/// shared memory, where a worker is a block. `is_warp`: it is one warp.
uint32_t message_bytes(const RingShape& shape, uint32_t workers, bool is_warp,
                       const std::vector<ActorDescription>& actors);

/// Bytes of each block's dynamic shared memory for the handlers' scratch memory. `is_warp`: a worker is one
/// warp.
uint32_t shared_scratch_bytes(bool is_warp, const std::vector<ActorDescription>& actors);

/// What launching `actors` with `options` asks of a device. Of actors given as source that are not compiled
/// yet (ActorSet::described) it does not know that their messages may be handled side by side, nor their
/// scratch memory.
LaunchRequest request_of(const ActorSet& actors, const Options& options);

}  // namespace gyre::cuda
