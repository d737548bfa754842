// The runtime: launches workers, hands out clients, drains and terminates.
#pragma once

#include <gyre/runtime/buffer.hpp>
#include <gyre/runtime/client.hpp>
#include <gyre/runtime/from_actor.hpp>
#include <gyre/runtime/memory/segment_reader.hpp>
#include <gyre/runtime/restart.hpp>
#include <gyre/runtime/telemetry/program_counts.hpp>
#include <gyre/runtime/telemetry/stats_file.hpp>

namespace gyre {

namespace testing {
class SteppedRuntime;
}

/// Owns one launched set of workers. Move-only; the destructor terminates the workers. The runtime's memory
/// is freed when the last Client, Future and Reply that refer to it are gone. After a Runtime was moved from,
/// each of its functions throws Error. Thread-safe, except for moving and destroying.
///
/// In a child of fork() the workers belong to the parent. There, messages, futures and drain() fail with
/// Status::forked; functions that read or end the workers throw Error with this status; destructors do
/// nothing. Do not read in the child a Reply that arrived before the fork: it belongs to the parent.
class Runtime {
 public:
  /// Checks `options`, makes the engine and starts the workers. Blocks until the workers run; the Timings say
  /// how long that took. Do not call it from an initializer of a shared library that is being loaded:
  /// launch() waits for threads that load libraries, and they would wait for the initializer.
  /// @throws BadOptions         with everything that is wrong, one line each
  /// @throws EngineUnavailable  with the reason why this machine has no such engine, and what to install
  /// @throws Error              for other failures
  static Runtime launch(ActorSet actors, const Options& options = {});

  Runtime(Runtime&& other) noexcept;
  Runtime& operator=(Runtime&& other) noexcept;
  /// Terminates the workers like terminate() with the default timeout, unless they were terminated.
  ~Runtime();

  /// Returns a client of these workers.
  Client client() const { return Client(incarnations()); }

  /// Makes the workers answer each ask with Status::inactive, and make a dead letter of each tell, instead of
  /// handling it. Blocks until every worker obeys, at most for the timeout.
  /// @returns success, worker_stuck, draining, terminated, engine_failed or forked
  Result<void> deactivate(std::chrono::nanoseconds timeout = std::chrono::seconds(5)) {
    return core()->set_active(false, timeout);
  }
  /// Makes the workers handle messages again. Blocks until every worker obeys, at most for the timeout.
  /// @returns success, worker_stuck, draining, terminated, engine_failed or forked
  Result<void> activate(std::chrono::nanoseconds timeout = std::chrono::seconds(5)) {
    return core()->set_active(true, timeout);
  }
  /// Allocates a buffer of zeroed elements. Works while workers run. Blocks for as long as zeroing takes.
  /// @param elements  number of elements, at least 1
  /// @throws Error    with the numbers, if there is no room or no memory of this kind (see refusal())
  template <class T>
  Buffer<T> allocate(MemoryKind kind, uint64_t elements) {
    return Buffer<T>(core(), kind, elements);
  }
  /// Allocates a buffer of zeroed elements whose type is known only at run time; Buffer is made of the
  /// result.
  /// @param element_bytes  size of one element, in bytes
  /// @param elements       number of elements, at least 1
  detail::BufferOwner allocate(MemoryKind kind, messages::view::ElementType element, uint64_t element_bytes,
                               uint64_t elements) {
    return detail::BufferOwner(core(), kind, element, element_bytes, elements);
  }
  /// Imports device memory that the program allocated, without a copy: handlers use it in place. Works while
  /// workers run. Makes CUDA calls in this thread, in the memory's own context, and makes no context.
  ///
  /// Memory of cudaMalloc, or of cuMemCreate with a descriptor as handle type. The program orders its own
  /// work on the memory: what a stream writes must be done before a message is sent.
  /// @param there     the first element, aligned to its size, of the engine's device
  /// @param elements  number of elements, at least 1, all in one allocation
  /// @param owner     keeps the memory allocated. Released once the buffer is freed and the workers are past
  ///                  the messages sent before; by any thread of Gyre. May be null.
  /// @param access    read_only: a handler must ask for Context::buffer<const T>
  /// @throws Error    with the numbers, and what to do: host or managed memory, memory of a stream-ordered
  ///                  pool, of another device, past the allocation's end, or on the CPU engine
  template <class T>
  Buffer<T> import_memory(T* there, uint64_t elements, std::shared_ptr<void> owner,
                          BufferAccess access = BufferAccess::read_write) requires(!std::is_const_v<T>) {
    return Buffer<T>(core(), there, elements, std::move(owner), access);
  }
  /// Imports device memory that handlers may only read.
  template <class T>
  Buffer<T> import_memory(const T* there, uint64_t elements, std::shared_ptr<void> owner) {
    return Buffer<T>(core(), there, elements, std::move(owner), BufferAccess::read_only);
  }
  /// Imports memory of elements whose type is known only at run time; Buffer is made of the result.
  /// @param stream  a CUstream whose work so far is waited for; 1: the default stream, 2: the thread's; -1:
  /// none
  detail::BufferOwner import_memory(const void* there, messages::view::ElementType element,
                                    uint64_t element_bytes, uint64_t elements, std::shared_ptr<void> owner,
                                    BufferAccess access, int64_t stream = -1) {
    return detail::BufferOwner(core(), there, element, element_bytes, elements, std::move(owner), access,
                               stream);
  }
  /// Returns why this engine has no memory of `kind`; empty if it has.
  std::string refusal(MemoryKind kind) const { return core()->buffers().memory().refusal(kind); }
  /// Counts the memory of all buffers. Ledger::empty() holds after terminate(), once the buffers are gone.
  Ledger ledger() const {
    core()->refuse_if_forked("reading the ledger");
    return core()->buffers().ledger();
  }

  /// Refuses new messages with Status::draining and waits until all accepted messages are done, and all that
  /// actors sent to each other for them. Blocks at most for the timeout. May be repeated after a timeout.
  /// @returns success, worker_stuck (the time is up), engine_failed, terminated or forked
  Result<void> drain(std::chrono::nanoseconds timeout = std::chrono::seconds(5));
  /// Ends the workers. Each worker finishes the message in hand; accepted messages behind it become dead
  /// letters. Unless the report says otherwise, every future is complete and every callback has returned
  /// afterwards; a call from a callback does not wait for other callbacks. Future::then() calls its callback
  /// itself from then on.
  ///
  /// Blocks at most for the timeout, raised to 250 ms if it is shorter, while workers run and while threads
  /// send, take replies, or allocate or free buffers; then at most as long again for callbacks, and for a
  /// relaunch on another thread with what on_restart() was given (`callback_stuck`). The report
  /// names what did not finish in time; the books count messages of unknown outcome as inferred.
  /// @returns       the report; later calls return the report of the first
  /// @throws Error  in a forked child
  Termination terminate(std::chrono::nanoseconds timeout = std::chrono::seconds(5));

  /// Launches the engine again after it failed. Messages sent before have their outcome; those of unknown
  /// outcome count as inferred. Clients and addresses stay valid and reach the new engine; buffers of the
  /// failed one are lost, and actors' state begins anew. Counts add up. Blocks as launch() does, and first at
  /// most for `timeout` while another thread relaunches. Options::restart gives way to it: it does not
  /// relaunch after the same failure.
  /// @throws Error  if the engine has not failed, the runtime was terminated, or the launch fails: the
  ///                runtime stays failed then, and this may be called again
  void relaunch(std::chrono::nanoseconds timeout = std::chrono::seconds(5)) {
    incarnations()->relaunch(timeout);
  }
  /// Sets what is called after each relaunch, on the thread that made it, which Options::restart does on a
  /// thread of the runtime. It must not terminate the runtime. What it throws is logged. Empty: nothing.
  void on_restart(std::function<void(const Restart&)> callback) {
    incarnations()->on_restart(std::move(callback));
  }

  /// Sets the handler for messages of this type that actors send by ctx.tell_host(). Replaces the former
  /// handler; nullptr removes it. Survives a relaunch.
  /// @param handler  copyable; called as handler(const FromActor&, Message::Reader) on the poller's thread,
  ///                 one call at a time. Messages of one worker come in order. The Reader is valid until the
  ///                 call returns. It may send. It must not block, wait for a reply, or drain. The message's
  ///                 slot is freed only when it returns, so a slow handler makes tell_host() return false.
  ///                 What it throws counts in callback_failures()
  /// A call of the former handler may still run when on() returns. Messages without a handler are dropped and
  /// counted: set handlers before the first message is sent.
  /// @throws Error   if no actor of the set tells the host, or in a forked child
  template <class Message, class Handler>
  void on(Handler handler) {
    on(capnp::typeId<Message>(),
       [handler = std::move(handler)](const FromActor& from, std::span<const capnp::word> body) mutable {
         SegmentReader message(body.data(), body.size());
         handler(from, message.getRoot<Message>());
       });
  }
  /// Removes the handler for messages of this type.
  template <class Message>
  void on(std::nullptr_t) {
    on(capnp::typeId<Message>(), ToldHandler{});
  }
  /// Sets the handler for a message of which the program knows the Cap'n Proto type id alone; see above.
  void on(uint64_t type_id, ToldHandler handler) { incarnations()->on_told(type_id, std::move(handler)); }

  /// Counts what became of every message; exact after terminate().
  /// @throws Error  in a forked child
  Books books() const { return incarnations()->books(); }
  /// Reads what each worker and handler has done, and how long it took. Reads 400 bytes for each handler of
  /// each worker. Allocates.
  /// @throws Error  in a forked child
  Stats stats() const { return incarnations()->stats(); }
  /// Returns a function that reads the stats like stats(). The function keeps the runtime's memory alive, but
  /// not its workers.
  std::function<Stats()> stats_reader() const {
    return [incarnations = incarnations()] { return incarnations->stats(); };
  }
  /// Adds counts of the program's own to the stats: Stats::program, the stats file, `gyre stat`, Prometheus.
  /// A relaunch keeps them.
  /// @param section  names and help texts; its values are ignored
  /// @param read     called with one value a count, 0 at first, in the section's order, for each read of the
  ///                 stats: on the thread that reads them, or a thread of Gyre's, one call at a time. It sets
  ///                 the values. It must not block, read the stats, or add or remove counts. Where it throws
  ///                 a std::exception, the stats are without the section.
  /// @returns        a guard; its destructor removes the counts
  /// @throws Error   if names or help texts are wrong, or the section is there; in a forked child
  [[nodiscard]] AddedCounts add_counts(CountSection section, std::function<void(std::span<uint64_t>)> read) {
    return incarnations()->add_counts(std::move(section), std::move(read));
  }
  /// Counts the relaunches after a failed engine, as Stats::restarts does, without reading other stats.
  /// @throws Error  in a forked child
  uint32_t restarts() const { return incarnations()->restarts(); }
  /// Takes the dead letters since the last call, oldest first. At most 1,024 are kept, including failed
  /// tells; later ones are dropped, and counted in the books.
  std::vector<DeadLetter> take_dead_letters() { return incarnations()->take_dead_letters(); }

  /// Counts the callbacks and coroutines that threw, and returns the text of the first exception.
  CallbackFailures callback_failures() const {
    core()->refuse_if_forked("asking what callbacks threw");
    return core()->poller().failures();
  }

  /// Returns the launched actor types, with their handlers as the engine found them.
  const ActorSet& actors() const { return incarnations()->actors(); }
  EngineKind engine() const { return core()->engine().kind(); }
  TransportKind transport() const { return core()->engine().transport(); }
  /// Returns why TransportKind::automatic did not choose BAR on CUDA; empty otherwise.
  std::string transport_reason() const { return core()->engine().transport_reason(); }
  std::string device_name() const { return core()->engine().device_name(); }
  /// Returns the runtime's state. A device fault shows here some milliseconds after the driver knows of it,
  /// even if the program sends nothing.
  Lifecycle state() const { return core()->state(); }
  /// Returns why the engine failed; empty if it did not.
  std::string failure() const { return core()->failure(); }
  const Options& options() const { return incarnations()->options(); }
  uint64_t region_bytes() const { return core()->region_bytes(); }
  double uptime_s() const { return core()->uptime_s(); }
  Timings timings() const { return core()->timings(); }

 private:
  friend class testing::SteppedRuntime;

  explicit Runtime(std::shared_ptr<detail::Incarnations> incarnations)
      : incarnations_(std::move(incarnations)) {}

  const std::shared_ptr<detail::Incarnations>& incarnations() const;
  std::shared_ptr<detail::Core> core() const { return incarnations()->present(); }
  void end() noexcept;

  std::shared_ptr<detail::Incarnations> incarnations_;
  std::unique_ptr<detail::StatsPublisher> published_;  // null unless Options::publish_stats
};

}  // namespace gyre
