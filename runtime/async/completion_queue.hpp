// Outcomes of asks for poll loops: a queue, and a descriptor that is readable while something is in it.
#pragma once

#include <gyre/runtime/future.hpp>

#include <capnp/any.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace gyre {

/// One outcome. `std::move(completion.outcome).as<EchoResponse>().get()` takes the typed reply.
struct Completion {
  uint64_t tag = 0;  ///< as it was given to watch()
  /// Done: get() does not block, and then() calls back soon.
  Future<Reply<capnp::AnyPointer>> outcome;
};

/// Of asks of any number of runtimes. Move-only. watch() from any thread; take() from one thread at a time.
/// Its end leaves what is under way to come, and drops it; what was not taken is released. In a child of
/// fork() a queue of before is dead: watch() drops the future, take() finds nothing, and the parent's
/// descriptor is left alone.
class CompletionQueue {
 public:
  /// Throws Error where there is no descriptor left.
  CompletionQueue();
  CompletionQueue(CompletionQueue&&) noexcept;
  CompletionQueue& operator=(CompletionQueue&&) noexcept;
  ~CompletionQueue();

  /// The future's outcome comes by take(), whatever it is: refused, cancelled and timed out too. Never
  /// blocks; allocates only for asks that were refused. Throws what Future::then does; the future is as it
  /// was then.
  template <class Response>
  void watch(Future<Reply<Response>>&& future, uint64_t tag) {
    if (future.handle_) {
      watch_call(future.handle_, tag);
    } else {
      add_refused(future.refused_, tag);
    }
  }

  /// The outcome that has been there longest; empty if there is none. Never blocks.
  std::optional<Completion> take();

  /// An eventfd for poll() and epoll, level-triggered: readable while take() has something to give, and
  /// perhaps once more; a take() that gives nothing clears it. The queue's own: do not read or close it.
  int fd() const;

 private:
  class State;

  void watch_call(detail::CallHandle& call, uint64_t tag);
  void add_refused(const Failure& refused, uint64_t tag);

  std::shared_ptr<State> state_;
};

}  // namespace gyre
