// SteppedRuntime: a runtime without threads, for tests of actors and of programs that use them.
#pragma once

#include <gyre/gyre.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace gyre::testing {

/// Selects the worker that moves next. A value.
class Order {
 public:
  /// One worker after the other, by their numbers.
  static Order round_robin() { return Order(std::nullopt); }
  /// Any worker, by a generator of random numbers: equal seeds give equal orders, on every machine.
  static Order random(uint64_t seed) { return Order(seed); }
  /// Returns the seed; empty for round_robin().
  std::optional<uint64_t> seed() const { return seed_; }

 private:
  explicit Order(std::optional<uint64_t> seed) : seed_(seed) {}
  std::optional<uint64_t> seed_;
};

/// Says what a worker did in one step.
struct Step {
  uint32_t worker = 0;
  /// The actor type's qualified name; empty if the worker itself took the message: a control message, the
  /// answer to an ask that another actor answers, or a message that it hands to many actors from then on.
  std::string actor;
  /// The actor's key; empty if it is not known: of a message between actors that failed.
  std::optional<uint64_t> key;
  /// The message's name in its schema, or its number ("#1"); "start", "stop", or "reply" to an ask of the
  /// actor.
  std::string message;
  uint32_t messages = 1;  ///< that the handler took together: on_batch()

  /// Returns one line, for example "worker 1: token::Player 4, Token".
  std::string text() const;
};

/// A runtime whose workers move when a test says so, one message at a time, and whose time passes when a test
/// says so. Launches the workers of the CPU engine, and starts no thread: callbacks, coroutines and the
/// handlers of Runtime::on() run on the test's thread, after the step that causes them. Two runs with the
/// same calls do the same.
///
/// Clients, futures and the Runtime are those of production code. A call that blocks, such as Future::get(),
/// a tell to a full ring or Runtime::drain(), steps the workers meanwhile. When none of them can move, time
/// passes until the next timer of an actor is due, or until the call's own deadline.
///
/// Deadlines of asks and tells, and timeouts of calls that block, are judged by the virtual time alone. It
/// stands still while workers are stepped; a handler's reading of its clock moves it by 1 ns. terminate() and
/// relaunch() limit their own waiting by the machine's clock.
///
/// Use it, and its clients and futures, from one thread. Neither copyable nor movable.
class SteppedRuntime {
 public:
  /// Launches the workers.
  /// @param options  as for Runtime::launch(). `engine` and `transport` are automatic, or cpu and heap;
  ///                 `publish_stats` is false, `record` empty. `restart`, `wait`, `pin_workers` and all that
  ///                 is CUDA's are ignored.
  /// @throws BadOptions         with everything that is wrong, one line each
  /// @throws EngineUnavailable  if the CPU engine cannot run the actors
  explicit SteppedRuntime(ActorSet actors, const Options& options = {}, Order order = Order::round_robin());
  /// Terminates the workers, unless they were terminated.
  ~SteppedRuntime();
  SteppedRuntime(const SteppedRuntime&) = delete;
  SteppedRuntime& operator=(const SteppedRuntime&) = delete;

  /// Returns the runtime, for all that production code does with one: buffers, on(), drain(), terminate().
  Runtime& runtime();
  /// Returns a client of these workers.
  Client client() const;
  uint32_t workers() const;

  /// Moves the next worker that can move and is not held, by the order: it handles one message, or a batch
  /// for an on_batch().
  /// @returns what it did; empty if no worker can move
  std::optional<Step> step();
  /// Moves this worker, held or not.
  /// @returns what it did; empty if there is nothing for it to do
  std::optional<Step> step(uint32_t worker);
  /// Steps until no worker can move.
  /// @param most    throws Error after so many steps
  /// @returns       the number of steps
  uint64_t run_until_idle(uint64_t most = 1'000'000);
  /// Steps until `done()` returns true; asks it before each step.
  /// @returns       the number of steps
  /// @throws Error  if no worker can move: the text says what each worker waits for
  template <class Done>
  uint64_t run_until(Done&& done) {
    uint64_t steps = 0;
    while (!done()) {
      if (!step()) fail_to_move("a condition of the test");
      ++steps;
    }
    return steps;
  }
  /// Steps until the outcome is there, and takes it. In contrast to Future::get() no time passes.
  /// @throws Error  if no worker can move: the text says what each worker waits for
  template <class T>
  typename Future<T>::Outcome get(Future<T>&& future) {
    return get(future);
  }
  /// Steps until the outcome is there, and takes it: the future is empty afterwards.
  template <class T>
  typename Future<T>::Outcome get(Future<T>& future) {
    while (!future.ready()) {
      if (!step()) fail_to_move("an outcome");
    }
    return future.get();
  }

  /// Chooses another order from now on.
  void set_order(Order order);
  /// Holds a worker: only step(worker) moves it. Its ring fills up, as that of a slow worker.
  void hold(uint32_t worker);
  /// Ends hold().
  void release(uint32_t worker);
  /// Returns true if the worker is held.
  bool is_held(uint32_t worker) const;
  /// Returns how many messages of the host wait in the worker's ring.
  uint64_t waiting(uint32_t worker) const;

  /// Returns the virtual time since the launch.
  std::chrono::nanoseconds now() const;
  /// Lets virtual time pass, without a step. Timers that are due then send at the next steps. Asks whose
  /// deadline passes end with Status::timed_out. Workers refuse messages whose deadline has passed once they
  /// come to them.
  /// @throws Error  if `time` is negative
  void advance(std::chrono::nanoseconds time);

  /// Lets the engine die, as a device fault does: asks in flight end with Status::engine_failed, and
  /// Runtime::failure() says `cause`. Runtime::relaunch() launches the workers again.
  void fail_engine(std::string_view cause);
  /// Lets the engine die while this worker handles the next message of its ring, which the failure names. The
  /// handler is not called.
  /// @throws Error  if its ring is empty
  void fail_engine_at(uint32_t worker, std::string_view cause);

  /// Counts what became of every message so far; each step leaves exact counts.
  Books books() const;
  /// Reads what each worker and handler has done so far; each step leaves exact counts. Handler times are
  /// those of the machine's clock.
  Stats stats() const;

 private:
  class State;
  class TestEngine;

  [[noreturn]] void fail_to_move(std::string_view awaited) const;

  std::shared_ptr<State> state_;
  std::optional<Runtime> runtime_;
};

}  // namespace gyre::testing
