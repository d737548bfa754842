// The stepped engine: the CPU engine's workers without threads, moved one poll at a time by whoever holds it.
// It makes full rings, slow workers and late replies happen exactly when a test, or a demonstration, wants
// them.
#pragma once

#include <gyre/bridge/heap.hpp>
#include <gyre/runtime/core/engine.hpp>
#include <gyre/runtime/cpu/actor_memory.hpp>
#include <gyre/runtime/cpu/memory.hpp>

#include <algorithm>
#include <vector>

namespace gyre {

/// Not thread-safe: step and the engine's own calls come from one thread.
class SteppedEngine : public Engine {
 public:
  /// With `--transport bar` the inbound part lies apart from the region, and the host only writes it.
  /// @param time_ns  see CpuWorker::use_time(); null: deadlines are judged by the host's clock
  SteppedEngine(const ActorSet& actors, const Options& options, uint64_t* time_ns = nullptr)
      : actors_(actors),
        time_ns_(time_ns),
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
      if (time_ns_ != nullptr) workers_.back()->use_time(*time_ns_);
      workers_.back()->start();
      stopped_.push_back(false);
    }
  }
  /// Polls each worker once: commanded to stop, they do.
  bool finished() override {
    if (failure_) return true;
    bool all = true;
    for (uint32_t worker = 0; worker < workers_.size(); ++worker) {
      if (!stopped_[worker] && workers_[worker]->step() == PollOutcome::stop) {
        workers_[worker]->finish();
        stopped_[worker] = true;
      }
      all = all && stopped_[worker];
    }
    return all;
  }
  std::optional<std::string> failure() override { return failure_; }
  void leak() override {}

  /// One poll of one worker, and the message it finds, if any.
  PollOutcome step(uint32_t worker = 0) { return workers_[worker]->step(); }
  /// Returns true once the worker has obeyed the command to stop: it must not be stepped any more.
  bool stopped(uint32_t worker) const { return stopped_[worker]; }
  /// Returns true if messages to other actors wait in the worker.
  bool has_waiting(uint32_t worker) const { return workers_[worker]->has_waiting(); }
  /// Returns nanoseconds until a timer may be due of a worker that is not `held`; ~0 if there is none. Does
  /// not count timers that are due already: what they wait for is not time.
  uint64_t ns_to_next_timer(const std::vector<bool>& held) {
    uint64_t next_ns = ~uint64_t(0);
    for (size_t n = 0; n < workers_.size(); ++n) {
      const uint64_t ns = held[n] ? 0 : workers_[n]->ns_to_next_timer();
      if (ns != 0) next_ns = std::min(next_ns, ns);
    }
    return next_ns;
  }
  /// Returns the worker's counts, one for each handler, and one for messages that are for none.
  const HandlerCounts* counts(uint32_t worker) const { return memory_.of_worker(worker).counts; }
  /// From now on the workers count as dead of `cause`.
  void fail(std::string cause) { failure_ = std::move(cause); }

 private:
  Bridge bridge(uint32_t worker) {
    return transport_ == TransportKind::bar ? Bridge::of(region(), inbound_.address(), layout_, worker)
                                            : Bridge::of(region(), layout_, worker);
  }

  const ActorSet actors_;
  uint64_t* const time_ns_;
  const RegionLayout layout_;
  const WaitPolicy wait_;
  const TransportKind transport_;
  HeapRegion region_;
  HeapRegion inbound_;  // what stands for device memory
  ActorMemory actor_memory_;
  HostBufferMemory buffer_memory_;
  EngineMemory memory_{};
  std::vector<std::unique_ptr<CpuWorker>> workers_;
  std::vector<bool> stopped_;  // by worker
  std::optional<std::string> failure_;
};

}  // namespace gyre
