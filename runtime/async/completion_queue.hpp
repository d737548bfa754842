// Outcomes of asks for poll loops: a queue, and a descriptor that is readable while the queue has
// outcomes.
#pragma once

#include <gyre/runtime/future.hpp>

#include <capnp/any.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace gyre {

/// Holds one outcome. `std::move(completion.outcome).as<EchoResponse>().get()` takes the typed reply.
struct Completion {
  uint64_t tag = 0;  ///< the tag passed to watch()
  /// A future that is done: get() does not block, and then() calls back soon.
  Future<Reply<capnp::AnyPointer>> outcome;
};

/// Queues the outcomes of asks, of any number of runtimes. Move-only. Any thread may call watch(); one
/// thread at a time may call take(). Destroying the queue releases the outcomes that were not taken, and
/// drops those that arrive later. In a child of fork() a queue made before the fork is dead: watch() drops
/// the future, take() finds nothing, and the parent's descriptor is unaffected.
class CompletionQueue {
 public:
  /// Makes an empty queue.
  /// @throws Error  if the process has no file descriptor left
  CompletionQueue();
  CompletionQueue(CompletionQueue&&) noexcept;
  CompletionQueue& operator=(CompletionQueue&&) noexcept;
  ~CompletionQueue();

  /// Adds the future's outcome to the queue once it is there, including refusals, cancellations and
  /// timeouts. Never blocks. Allocates only if the ask was refused. Throws what Future::then() throws; the
  /// future is unchanged then.
  /// @param tag  returned with the outcome
  template <class Response>
  void watch(Future<Reply<Response>>&& future, uint64_t tag) {
    if (future.handle_) {
      watch_call(future.handle_, tag);
    } else {
      add_refusal(future.refusal_, tag);
    }
  }

  /// Takes the oldest outcome; empty if there is none. Never blocks.
  std::optional<Completion> take();

  /// Returns a level-triggered eventfd for poll() and epoll. It is readable while take() has an outcome,
  /// and possibly once more; a take() that returns nothing clears it. It belongs to the queue: do not read
  /// or close it.
  int fd() const;

 private:
  class State;

  void watch_call(detail::CallHandle& call, uint64_t tag);
  void add_refusal(const Failure& refusal, uint64_t tag);

  std::shared_ptr<State> state_;
};

}  // namespace gyre
