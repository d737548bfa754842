// The runtime: launches workers, hands out clients, drains and terminates.
#pragma once

#include <gyre/runtime/buffer.hpp>
#include <gyre/runtime/client.hpp>
#include <gyre/runtime/telemetry/stats_file.hpp>

namespace gyre {

/// One launched set of workers. Move-only; its destructor terminates. Its memory is freed when the last
/// Client, Future and Reply that refer to it are gone. One that was moved from throws Error whatever it is
/// asked.
///
/// In a child of fork() the workers are the parent's: messages, futures and drain fail with Status::forked,
/// what reads or ends the workers throws Error with that status, and destructors leave everything alone.
/// Replies that came before belong to the parent; do not read them there.
class Runtime {
 public:
  /// Checks `options`, makes the engine and starts the workers. Throws BadOptions (everything that is wrong,
  /// at once), EngineUnavailable (no such engine here: why, and what to install), Error. Not while a shared
  /// library is being loaded, from an initialiser of its own: other threads load libraries meanwhile, and
  /// would wait for that one.
  static Runtime launch(ActorSet actors, const Options& options = {});

  Runtime(Runtime&& other) noexcept;
  Runtime& operator=(Runtime&& other) noexcept;
  /// terminate() with the default deadline.
  ~Runtime();

  Client client() const {
    core();  // that there is one
    return Client(core_);
  }

  /// From now on each message is answered Status::inactive instead of being handled; a tell becomes a dead
  /// letter. Blocks until every worker does so, at most the timeout, whatever other threads do. Failures:
  /// worker_stuck, draining, terminated, engine_failed.
  Result<void> deactivate(std::chrono::nanoseconds timeout = std::chrono::seconds(5)) {
    return core()->set_active(false, timeout);
  }
  /// Messages are handled again. Waits and fails as deactivate().
  Result<void> activate(std::chrono::nanoseconds timeout = std::chrono::seconds(5)) {
    return core()->set_active(true, timeout);
  }
  /// A buffer of `elements` zeroed elements, at least one. Beside live workers too, from any thread; it
  /// blocks for as long as zeroing takes. Throws Error: no room, or no such memory here (see refusal), with
  /// the numbers.
  template <class T>
  Buffer<T> allocate(MemoryKind kind, uint64_t elements) {
    return Buffer<T>(core(), kind, elements);
  }
  /// The same of elements whose type is known at run time alone, `element_bytes` each; what Buffer is made
  /// of.
  detail::BufferOwner allocate(MemoryKind kind, messages::view::ElementType element, uint64_t element_bytes,
                               uint64_t elements) {
    return detail::BufferOwner(core(), kind, element, element_bytes, elements);
  }
  /// Why this engine has no memory of that kind; empty if it has.
  std::string refusal(MemoryKind kind) const { return core()->buffers().memory().refusal(kind); }
  /// The memory of all buffers; empty() after terminate() once the buffers are gone. Any thread.
  Ledger ledger() const {
    core()->refuse_if_forked("reading the ledger");
    return core()->buffers().ledger();
  }

  /// Refuses new messages and blocks until all accepted ones are done, at most the timeout, whatever other
  /// threads do. May be repeated after a time-out. Failures: worker_stuck, engine_failed, terminated.
  Result<void> drain(std::chrono::nanoseconds timeout = std::chrono::seconds(5));
  /// Lets each worker finish the message in hand and ends them; the rest become dead letters. Every future in
  /// flight completes, and its callback has returned; called from a callback, it does not wait for the
  /// others. From then on then() calls its callback itself.
  ///
  /// Blocks at most the timeout, 250 ms at least, for workers and for threads that are sending, taking
  /// replies, or allocating or freeing buffers, and as long again for callbacks, whatever other threads do.
  /// What it did not wait for the report names: worker_stuck, sender_stuck, reader_stuck, buffers_stuck,
  /// callback_stuck, or unfinished beside another call that still waits; the books count what no longer has a
  /// known outcome as inferred. Repeatable: later calls report what the first did. Throws Error in a forked
  /// child alone.
  Termination terminate(std::chrono::nanoseconds timeout = std::chrono::seconds(5));

  /// Where the messages are; exact after terminate(). Any thread.
  Books books() const { return core()->books(); }
  /// What each worker and handler has done, and how long that took. Any thread; allocates, and takes as long
  /// as reading 400 bytes for each handler of each worker. Throws Error in a forked child.
  Stats stats() const { return core()->stats(); }
  /// Reads the stats as stats() does, for as long as it lives: it keeps the runtime's memory, not its
  /// workers.
  std::function<Stats()> stats_reader() const {
    return [core = core()] { return core->stats(); };
  }
  /// The dead letters since the last call, oldest first. 1,024 are kept, failed tells among them, whether or
  /// not somebody asks; later ones are dropped, and counted in the books. Any thread.
  std::vector<DeadLetter> take_dead_letters() { return core()->take_dead_letters(); }

  /// How many callbacks and coroutines threw, and what the first of them did. Any thread.
  CallbackFailures callback_failures() const {
    core()->refuse_if_forked("asking what callbacks threw");
    return core()->poller().failures();
  }

  /// The actor types that were launched, with the handlers that the engine found them to have.
  const ActorSet& actors() const { return core()->actors(); }
  EngineKind engine() const { return core()->engine().kind(); }
  TransportKind transport() const { return core()->engine().transport(); }
  /// Where `auto` did not choose BAR on CUDA: why; else empty.
  std::string transport_reason() const { return core()->engine().transport_reason(); }
  std::string device_name() const { return core()->engine().device_name(); }
  /// A fault of the device is seen here 5 ms after the driver knows of it, whatever the program does.
  Lifecycle state() const { return core()->state(); }
  /// Why the engine failed; empty if it did not. Any thread.
  std::string failure() const { return core()->failure(); }
  const Options& options() const { return core()->options(); }
  uint64_t region_bytes() const { return core()->region_bytes(); }
  double uptime_s() const { return core()->uptime_s(); }
  const Timings& timings() const { return core()->timings(); }

 private:
  explicit Runtime(std::shared_ptr<detail::Core> core) : core_(std::move(core)) {}

  const std::shared_ptr<detail::Core>& core() const;
  void end() noexcept;

  std::shared_ptr<detail::Core> core_;
  std::unique_ptr<detail::StatsPublisher> published_;  // null: they are not
};

}  // namespace gyre
