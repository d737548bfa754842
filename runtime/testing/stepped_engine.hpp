// The stepped engine: the CPU engine's workers without threads, moved one poll at a time by whoever holds it.
// It makes full rings, slow workers and late replies happen exactly when a test, or a demonstration, wants
// them.
#pragma once

#include <gyre/bridge/heap.hpp>
#include <gyre/runtime/core/engine.hpp>
#include <gyre/runtime/cpu/actor_memory.hpp>
#include <gyre/runtime/cpu/memory.hpp>

#include <vector>

namespace gyre {

/// Not thread-safe: step and the engine's own calls come from one thread.
class SteppedEngine final : public Engine {
 public:
  /// With `--transport bar` the inbound part lies apart from the region, and the host only writes it.
  SteppedEngine(const ActorSet& actors, const Options& options)
      : actors_(actors),
        layout_(options.region_layout(actors.handlers().size())),
        wait_(options.wait),
        transport_(options.transport == TransportKind::bar ? TransportKind::bar : TransportKind::heap),
        region_(layout_.region_bytes(), layout_.rings_bytes()),
        inbound_(layout_.inbound_bytes_elsewhere(), layout_.inbound_bytes_elsewhere()),
        actor_memory_(actors, options),
        buffer_memory_(options.max_buffers) {
    actor_memory_.describe(memory_);
    buffer_memory_.describe(memory_);
  }

  EngineKind kind() const override { return EngineKind::cpu; }
  TransportKind transport() const override { return transport_; }
  std::string device_name() const override { return "CPU, stepped"; }
  void* region() override { return region_.address(); }
  BarInbound bar_inbound() const override {
    if (transport_ != TransportKind::bar) return {};
    return {inbound_.address(), LineStore::four_packets};
  }
  BufferMemory& buffer_memory() override { return buffer_memory_; }
  MemoryStats memory() const override {
    MemoryStats memory;
    memory.actors = actor_memory_.bytes();
    memory.buffer_table = buffer_memory_.own_bytes();
    return memory;
  }
  double compile_ms() const override { return 0; }
  void launch() override {
    for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
      workers_.push_back(actors_.make_cpu_worker(bridge(worker), memory_.of_worker(worker), wait_));
      workers_.back()->start();
    }
  }
  /// Polls each worker once: commanded to stop, they do.
  bool finished() override {
    if (failure_) return true;
    bool all = true;
    for (auto& worker : workers_) {
      const bool stopped = worker->step() == PollOutcome::stop;
      if (stopped) worker->finish();
      all = all && stopped;
    }
    return all;
  }
  std::optional<std::string> failure() override { return failure_; }
  void leak() override {}

  /// One poll of one worker, and the message it finds, if any.
  PollOutcome step(uint32_t worker = 0) { return workers_[worker]->step(); }
  /// From now on the workers count as dead of `cause`.
  void fail(std::string cause) { failure_ = std::move(cause); }

 private:
  Bridge bridge(uint32_t worker) {
    return transport_ == TransportKind::bar ? Bridge::of(region(), inbound_.address(), layout_, worker)
                                            : Bridge::of(region(), layout_, worker);
  }

  const ActorSet actors_;
  const RegionLayout layout_;
  const WaitPolicy wait_;
  const TransportKind transport_;
  HeapRegion region_;
  HeapRegion inbound_;  // what stands for device memory
  ActorMemory actor_memory_;
  HostBufferMemory buffer_memory_;
  EngineMemory memory_{};
  std::vector<std::unique_ptr<CpuWorker>> workers_;
  std::optional<std::string> failure_;
};

}  // namespace gyre
