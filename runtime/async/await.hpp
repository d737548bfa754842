// co_await of a Future.
#pragma once

#include <gyre/runtime/async/continuation.hpp>
#include <gyre/runtime/errors.hpp>

#include <coroutine>
#include <utility>

namespace gyre {

template <class Response>
class Reply;
template <class T>
class Future;

namespace detail {

/// Resumes a coroutine on the thread that finds its reply.
struct ResumeHere {
  void operator()(std::coroutine_handle<> waiting) const { waiting.resume(); }
};

/// Waits for a future on behalf of a coroutine. Lies in the coroutine's frame until the coroutine resumes.
template <class Response, class Executor>
class Awaiter {
 public:
  Awaiter(Future<Reply<Response>> future, Executor executor)
      : future_(std::move(future)), executor_(std::move(executor)) {}

  bool await_ready() const { return future_.ready(); }
  void await_suspend(std::coroutine_handle<> waiting) {
    when_done(future_.handle_, [this, waiting](CallHandle done) {
      future_.handle_ = std::move(done);
      Executor executor = std::move(executor_);  // `this` may be destroyed before the executor returns
      executor(waiting);
    });
  }
  Result<Reply<Response>> await_resume() { return future_.get(); }

 private:
  Future<Reply<Response>> future_;
  Executor executor_;
};

}  // namespace detail
}  // namespace gyre
