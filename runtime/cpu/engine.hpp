// The CPU engine: a thread a worker, plain memory for the region.
#pragma once

#include <gyre/bridge/fork.hpp>
#include <gyre/bridge/heap.hpp>
#include <gyre/runtime/core/engine.hpp>
#include <gyre/runtime/cpu/actor_memory.hpp>
#include <gyre/runtime/cpu/doorbell.hpp>
#include <gyre/runtime/cpu/memory.hpp>

#include <atomic>
#include <thread>
#include <vector>

namespace gyre {

class CpuEngine final : public Engine {
 public:
  /// What this machine's processors rule out of `options`; empty if nothing.
  static std::string problems(const Options& options);

  /// Throws BadOptions for those problems, EngineUnavailable for actors given as source text, std::bad_alloc
  /// where the region does not fit in memory.
  CpuEngine(const ActorSet& actors, const Options& options);
  ~CpuEngine() override;

  EngineKind kind() const override { return EngineKind::cpu; }
  TransportKind transport() const override { return TransportKind::heap; }
  std::string device_name() const override;
  void* region() override { return region_.address(); }
  Doorbell* doorbell(uint32_t worker) override { return bells_[worker].get(); }
  BufferMemory& buffer_memory() override { return buffer_memory_; }
  MemoryStats memory() const override {
    MemoryStats memory;
    memory.actors = actor_memory_.bytes();
    memory.buffer_table = buffer_memory_.own_bytes();
    return memory;
  }
  double compile_ms() const override { return 0; }
  void launch() override;
  bool finished() override;
  /// Always empty: what kills a worker thread kills the process.
  std::optional<std::string> failure() override { return std::nullopt; }
  void leak() override;

 private:
  void stop_threads() noexcept;
  void pin(std::thread& thread, uint32_t worker) const;

  const ForkGuard fork_;
  const ActorSet actors_;
  const RegionLayout layout_;
  const WaitPolicy wait_;
  const std::vector<int> pin_workers_;
  HeapRegion region_;
  ActorMemory actor_memory_;
  HostBufferMemory buffer_memory_;
  EngineMemory memory_{};
  std::vector<std::unique_ptr<Doorbell>> bells_;  // one a worker
  std::vector<std::unique_ptr<CpuWorker>> workers_;
  // Apart, so that a forked child, which has no such threads, can leave it as it is.
  std::unique_ptr<std::vector<std::thread>> threads_ = std::make_unique<std::vector<std::thread>>();
  // Shared with the threads: a leaked one outlives the engine.
  std::shared_ptr<std::atomic<uint32_t>> running_ = std::make_shared<std::atomic<uint32_t>>(0);
};

}  // namespace gyre
