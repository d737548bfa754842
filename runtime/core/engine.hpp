// What runs the workers. The rest of the runtime knows an engine only through this.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/memory/buffer_memory.hpp>
#include <gyre/runtime/options.hpp>
#include <gyre/runtime/stats.hpp>

namespace gyre {

class Doorbell;

/// Owns the region's memory and the workers on it. Used by one thread at a time, but for failure().
/// Created ready to launch: whatever is slow, can fail, or would block beside live workers has been done.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual EngineKind kind() const = 0;
  virtual TransportKind transport() const = 0;
  /// What it runs on: "NVIDIA H200", "CPU, 2 threads".
  virtual std::string device_name() const = 0;
  /// The host's address of the region, Options::region_layout().region_bytes() bytes, zeroed up to the arena.
  virtual void* region() = 0;
  /// Where workers read the inbound part, if that is not in the region.
  virtual BarInbound bar_inbound() const { return {}; }
  /// Why the transport is not the one that `auto` prefers; empty if it is, or was asked for.
  virtual std::string transport_reason() const { return {}; }
  /// Whether the workers' clock is the host's.
  virtual bool shares_host_clock() const { return true; }
  /// How a worker and the threads that wait for it wake each other; null where its kernel can wake no thread,
  /// or somebody else moves it.
  virtual Doorbell* doorbell(uint32_t worker) {
    (void)worker;
    return nullptr;
  }
  /// Where buffers get their memory; it may be used from any thread, beside live workers too.
  virtual BufferMemory& buffer_memory() = 0;
  /// What it has taken for actors, their code, BAR and the buffers' table, and what the device has. The rest
  /// of MemoryStats is not the engine's. Thread-safe; at most one driver call, which waits for no kernel.
  virtual MemoryStats memory() const { return {}; }
  /// Milliseconds that compiling the actors took, or finding them compiled; 0 where they are compiled in.
  virtual double compile_ms() const = 0;
  /// True where they were found compiled, on disk.
  virtual bool compiled_from_cache() const { return false; }
  /// `actors`, the set that the engine was made for, with the handlers that its workers have: those of actors
  /// given as source text are known to the engine alone.
  virtual ActorSet complete(ActorSet actors) const { return actors; }

  /// Starts the workers on the initialised region; throws Error. Once.
  virtual void launch() = 0;
  /// True once every worker has left its loop and its memory may be reused. Never blocks for long.
  virtual bool finished() = 0;
  /// Why the workers died, if they did. Thread-safe; costs a driver call on CUDA.
  virtual std::optional<std::string> failure() = 0;
  /// Whether workers may die by themselves, so that somebody must ask for failure() now and then.
  virtual bool may_die() const { return false; }
  /// Workers that do not stop may still write: leaves all memory allocated, for good.
  virtual void leak() = 0;
};

/// The engine that `options.engine` means on this machine: cuda or cpu.
EngineKind chosen_engine(const Options& options);

/// Everything that is wrong with a launch of these actors with these options: Options::problems(), what the
/// engine says of them, and, where there is any of that on CUDA, what the device says before a kernel is
/// compiled. A line each; empty if nothing is wrong. Loads the driver. Throws std::bad_alloc.
std::string launch_problems(const ActorSet& actors, const Options& options);

/// Makes the engine that `options.engine` asks for, for `layout` (options' own). Throws EngineUnavailable or
/// Error.
std::unique_ptr<Engine> make_engine(const ActorSet& actors, const Options& options);

}  // namespace gyre
