// The CUDA engine in a process of its own, gyre-engine: nothing that the program does with CUDA waits for its
// workers, and a fault takes only that process along.
#pragma once

#include <gyre/bridge/cuda/bar.hpp>
#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/runtime/core/engine.hpp>
#include <gyre/runtime/cuda/program_streams.hpp>
#include <gyre/runtime/process/copy_client.hpp>
#include <gyre/runtime/process/engine_process.hpp>

#include <future>
#include <map>
#include <mutex>

namespace gyre::process {

/// Buffers of an engine process. Device memory is there alone, and copied through a staging block that both
/// map (copy_lane.hpp); each pinned buffer is shared memory. Thread-safe.
class ProcessBufferMemory final : public BufferMemory {
 public:
  /// `process` must outlive this.
  ProcessBufferMemory(EngineProcess& process, uint32_t entries)
      : BufferMemory(entries),
        process_(process),
        in_(process, CopyDirection::in),
        out_(process, CopyDirection::out) {}
  ~ProcessBufferMemory() override;

  /// @param staging    the staging block
  /// @param own_bytes  see own_bytes()
  /// @param device     the engine's
  void launched(SharedMemory staging, uint64_t own_bytes, const cuda::DeviceUuid& device);
  uint64_t own_bytes() const override { return own_bytes_; }
  std::string refusal(MemoryKind kind) const override;
  MemoryBlock allocate(MemoryKind kind, uint64_t bytes) override;
  /// Makes CUDA calls in this process.
  MemoryBlock import(ForeignMemory memory) override;
  /// Returns the CUDA driver in this process, loaded when it is first needed. Throws Error.
  std::shared_ptr<const cuda::Driver> driver();
  const cuda::DeviceUuid& device() const { return device_; }
  /// Makes CUDA calls in this process, likewise.
  ExportedBlock export_block(const MemoryBlock& block) override;
  void release(const MemoryBlock& block) noexcept override;
  void copy_in(const MemoryBlock& block, uint64_t offset, const void* from, uint64_t bytes) override;
  void copy_out(const MemoryBlock& block, uint64_t offset, void* to, uint64_t bytes) override;
  void zero(const MemoryBlock& block, uint64_t bytes) override;
  void set_entry(uint32_t index, const BufferEntry& entry) override;
  void leak() override {}

 protected:
  const BufferEntry* table() const override { return nullptr; }  // the engine process has it

 private:
  void post_release(const MemoryBlock& block) noexcept;
  void refuse_if_lost() const;
  uint64_t pinned_address_of(const void* host, uint64_t bytes) const;

  const ForkGuard fork_;
  EngineProcess& process_;
  const std::shared_ptr<detail::CopyThreads> threads_ = detail::CopyThreads::shared();
  SharedMemory staging_;
  CopyClient in_, out_;
  uint64_t own_bytes_ = 0;
  cuda::DeviceUuid device_{};
  std::shared_ptr<const cuda::Driver> driver_;  // of this process, once it was needed; by mutex_
  mutable std::mutex mutex_;                    // of blocks_ and driver_
  std::map<uint64_t, SharedMemory> blocks_;     // pinned ones, by address
};

/// What an engine process asks MPS for.
struct Share {
  uint32_t multiprocessors = 0, total = 0;  ///< the device's part, and all that it has
  uint32_t percentage = 0;                  ///< that part; 0: nothing is asked for
};

class ProcessEngine final : public Engine {
 public:
  /// Starts gyre-engine, which compiles, loads and allocates. Throws EngineUnavailable, BadOptions or Error.
  ProcessEngine(const ActorSet& actors, const Options& options);
  /// Ends the process; blocks until it is gone.
  ~ProcessEngine() override;

  EngineKind kind() const override { return EngineKind::cuda; }
  TransportKind transport() const override { return transport_; }
  std::string device_name() const override { return device_; }
  void* region() override { return region_.address(); }
  BarInbound bar_inbound() const override { return bar_ ? bar_->inbound() : BarInbound{}; }
  std::string transport_reason() const override { return transport_reason_; }
  bool shares_host_clock() const override { return false; }
  BufferMemory& buffer_memory() override { return buffers_; }
  ProgramStreams& program_streams() override { return program_streams_; }
  MemoryStats memory() const override;
  double compile_ms() const override { return compile_ms_; }
  bool compiled_from_cache() const override { return from_cache_; }
  bool compiled_ahead() const override { return compiled_ahead_; }
  ActorSet complete(ActorSet actors) const override {
    return actors.compiled_in() ? actors : actors.described(description_);
  }
  void launch() override;
  bool finished() override;
  std::optional<std::string> failure() override;
  bool may_die() const override { return true; }
  bool end_by_force(std::string_view cause) noexcept override {
    process_.kill(cause);
    return true;
  }
  /// Kills the process: what its workers used is then free.
  void leak() override { process_.kill(); }

 private:
  void choose_transport(TransportKind asked, std::future<std::shared_ptr<cuda::VulkanDevice>> opened,
                        control::Launched::Reader launched, uint64_t bar_bytes);
  void log_share(uint32_t multiprocessors) const;

  const ForkGuard fork_;
  const Share share_;
  EngineProcess process_;
  ProcessBufferMemory buffers_;
  SharedMemory region_;
  cuda::CudaProgramStreams program_streams_{[this] { return buffers_.driver(); },
                                            [this] { return buffers_.device(); }};
  std::unique_ptr<cuda::BarMemory> bar_;  // null unless transport_ is bar
  TransportKind transport_ = TransportKind::pinned;
  std::string device_, transport_reason_;
  std::vector<ActorDescription> description_;
  double compile_ms_ = 0;
  bool from_cache_ = false, compiled_ahead_ = false;
  bool launched_ = false;
  MemoryStats memory_;
};

/// Returns how many CUDA devices an engine process finds. Throws EngineUnavailable if none can be started.
uint32_t device_count(const Options& options);

/// Lists what the device rules out of a launch before a kernel is compiled, one line each, as an engine
/// process finds it. Empty if that is nothing. Throws EngineUnavailable if no such process can be started.
std::string device_problems(const ActorSet& actors, const Options& options);

}  // namespace gyre::process
