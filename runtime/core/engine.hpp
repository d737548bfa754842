// The engine runs the workers. The rest of the runtime knows engines only through this interface.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/core/program_streams.hpp>
#include <gyre/runtime/memory/buffer_memory.hpp>
#include <gyre/runtime/options.hpp>
#include <gyre/runtime/stats.hpp>

namespace gyre {

class Doorbell;
namespace detail {
class Stepper;
}

/// Owns the region's memory and the workers on it. One thread at a time may use it, except for failure() and
/// the functions that are marked thread-safe. The constructor does all work that is slow, can fail, or would
/// block beside live workers.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual EngineKind kind() const = 0;
  virtual TransportKind transport() const = 0;
  /// Returns the name of the device, for example "NVIDIA H200" or "CPU, 2 worker threads".
  virtual std::string device_name() const = 0;
  /// Returns the host's address of the region: Options::region_layout().region_bytes() bytes, zeroed up to
  /// the arena.
  virtual void* region() = 0;
  /// Returns where workers read the inbound part, if not in the region.
  virtual BarInbound bar_inbound() const { return {}; }
  /// Returns why TransportKind::automatic did not choose the preferred transport; empty otherwise.
  virtual std::string transport_reason() const { return {}; }
  /// Returns true if workers read the host's clock.
  virtual bool shares_host_clock() const { return true; }
  /// Returns the Doorbell by which a worker and its waiting threads wake each other; null if the worker is a
  /// kernel, which can wake no thread, or is stepped.
  virtual Doorbell* doorbell(uint32_t worker) {
    (void)worker;
    return nullptr;
  }
  /// Returns what moves the workers; null if they run by themselves.
  virtual detail::Stepper* stepper() { return nullptr; }
  /// Returns the memory of buffers. Any thread may use it, also beside live workers.
  virtual BufferMemory& buffer_memory() = 0;
  /// Returns what orders the program's CUDA streams and asks. Thread-safe. Throws Error where the workers use
  /// no CUDA device.
  virtual ProgramStreams& program_streams();
  /// Returns the bytes taken for actors, their code, BAR and the buffers' table, and the device's memory;
  /// leaves the other members of MemoryStats 0. Thread-safe. Makes at most one driver call, which waits for
  /// no kernel.
  virtual MemoryStats memory() const { return {}; }
  /// Returns the milliseconds spent to compile the actors or to find them compiled; 0 if they are
  /// compiled in.
  virtual double compile_ms() const = 0;
  /// Returns true if the actors were found in the disk cache.
  virtual bool compiled_from_cache() const { return false; }
  /// Returns true if the actors' machine code was made when the program was built.
  virtual bool compiled_ahead() const { return false; }
  /// Returns `actors` with the handlers that the workers have. Only the engine knows the handlers of actors
  /// given as source text.
  virtual ActorSet complete(ActorSet actors) const { return actors; }

  /// Starts the workers on the initialised region. Call it once. Throws Error.
  virtual void launch() = 0;
  /// Returns true once every worker has left its loop: its memory may be reused. Never blocks for long.
  virtual bool finished() = 0;
  /// Returns why the workers died; nothing if they did not. Thread-safe; costs a driver call on CUDA in
  /// process.
  virtual std::optional<std::string> failure() = 0;
  /// Returns true if workers may die by themselves: the runtime must then call failure() regularly.
  virtual bool may_die() const { return false; }
  /// Ends the workers by force, for `cause`, which failure() then returns. Returns false if this engine
  /// cannot: only one in a process of its own can. Thread-safe; does not wait.
  virtual bool end_by_force(std::string_view cause) noexcept {
    (void)cause;
    return false;
  }
  /// Leaves all memory allocated: workers that do not stop may still write to it.
  virtual void leak() = 0;
};

/// Returns the engine that `options.engine` selects on this machine: cuda or cpu. For `automatic` it starts
/// an engine process that looks for devices, or initialises CUDA in process.
EngineKind chosen_engine(const Options& options);

/// Lists everything that is wrong with a launch, one line each: Options::problems(), the engine's problems,
/// and on CUDA those that the device shows before a kernel is compiled. Empty if nothing is wrong. Loads the
/// driver, or starts an engine process, which does. Throws std::bad_alloc.
std::string launch_problems(const ActorSet& actors, const Options& options);

/// Lists what the CUDA device rules out of a launch before a kernel is compiled, one line each; a driver that
/// fails says why the list is shorter. Loads the driver, or starts an engine process, which does.
std::string device_problems(const ActorSet& actors, const Options& options);

/// Makes the engine that `options.engine` selects. Throws EngineUnavailable or Error.
std::unique_ptr<Engine> make_engine(const ActorSet& actors, const Options& options);

namespace detail {
/// Returns how the engine came by its actors; `launch_ms` is the caller's to add.
inline Timings timings_of(const Engine& engine) {
  return {engine.compile_ms(), 0, engine.compiled_from_cache(), engine.compiled_ahead()};
}
}  // namespace detail

}  // namespace gyre
