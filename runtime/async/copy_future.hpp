// What Buffer::write_async and read_async return: a Future without a value.
#pragma once

#include <gyre/runtime/future.hpp>
#include <gyre/runtime/memory/copy_queue.hpp>

#include <chrono>
#include <coroutine>
#include <memory>
#include <utility>

namespace gyre {

/// Delivers the outcome of a copy that goes on by itself: success, Status::buffer_lost (the engine process
/// has ended), engine_failed (the log says why) or forked. Move-only. Used by one thread at a time. A Future
/// destroyed before its outcome was taken does not stop the copy. It may outlive buffer and runtime.
template <>
class Future<void> {
 public:
  using Outcome = Result<void>;

  /// Makes a future of no copy. Its outcome is Status::terminated.
  Future() = default;
  Future(std::shared_ptr<detail::Core> core, std::shared_ptr<detail::CopyState> copy)
      : core_(std::move(core)), copy_(std::move(copy)) {}
  Future(Future&&) noexcept = default;
  Future& operator=(Future&&) noexcept = default;

  /// Returns true once get() will not block. Never blocks.
  bool ready() const { return !copy_ || copy_->done(); }
  /// Blocks until the copy is done.
  void wait() const {
    if (copy_) copy_->wait();
  }
  /// Blocks until the copy is done, at most for `timeout`. Returns true if get() will not block.
  bool wait_for(std::chrono::nanoseconds timeout) const {
    return !copy_ || copy_->wait_until(detail::after(detail::host_now_ns(), timeout));
  }
  /// Waits like wait() and takes the outcome. The future is empty afterwards.
  Outcome get() {
    const std::shared_ptr<detail::CopyState> copy = std::exchange(copy_, nullptr);
    core_.reset();
    if (!copy) return Failure{Status::terminated};
    copy->wait();
    return copy->outcome();
  }

  /// Passes the outcome to `callback` once it is there: as Future<Reply<…>>::then, on the same thread.
  /// @param callback  called once as callback(Result<void>); copyable
  template <class Callback>
  void then(Callback callback) && {
    if (!copy_) return callback(get());
    // Kept until the promise is made: where it throws the future is unchanged.
    (void)copy_->when_done(*core_, std::move(callback));
    *this = Future();
  }

  /// Waits for the outcome in a coroutine; the expression's value is the Result. Resumes on the runtime's
  /// poller thread, unless the outcome is there.
  auto operator co_await() && {
    struct Awaiter {
      Future future;
      Result<void> outcome = Failure{Status::terminated};
      bool await_ready() {
        if (!future.ready()) return false;
        outcome = future.get();
        return true;
      }
      void await_suspend(std::coroutine_handle<> waiting) {
        Future own = std::move(future);  // `this` may be destroyed before then() returns
        std::move(own).then([this, waiting](Result<void> with) {
          outcome = std::move(with);
          waiting.resume();
        });
      }
      Result<void> await_resume() { return std::move(outcome); }
    };
    return Awaiter{std::move(*this)};
  }

  /// Takes what the future holds, for other interfaces.
  std::pair<std::shared_ptr<detail::Core>, std::shared_ptr<detail::CopyState>> parts() && {
    return {std::move(core_), std::move(copy_)};
  }

 private:
  std::shared_ptr<detail::Core> core_;  // whose poller calls back
  std::shared_ptr<detail::CopyState> copy_;
};

}  // namespace gyre
