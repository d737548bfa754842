// What an ask gives back: a Future of a Reply.
#pragma once

#include <kj/exception.h>
#include <gyre/runtime/async/await.hpp>
#include <gyre/runtime/async/continuation.hpp>
#include <gyre/runtime/calls/call_handle.hpp>

#include <memory>
#include <span>
#include <stop_token>
#include <utility>

namespace gyre {

/// A response, read where it arrived. Holds a call slot until it is destroyed; move-only. One thread at a
/// time.
template <class Response>
class Reply {
 public:
  using Reader = typename Response::Reader;

  /// `read()`: gives the reader, once; what it throws passes through.
  template <class Read>
  Reply(detail::CallHandle&& handle, Read&& read) : handle_(std::move(handle)), reader_(read()) {}

  const Reader& operator*() const { return reader_; }
  const Reader* operator->() const { return &reader_; }
  /// The response as it arrived: one segment, which encode() makes a stream of.
  /// Empty if this was moved from.
  std::span<const std::byte> body() const {
    if (!handle_) return {};
    return handle_.core().calls().body_bytes(handle_.call());
  }

 private:
  detail::CallHandle handle_;
  Reader reader_;
};

/// The outcome of an ask, when it comes. Move-only; one thread at a time. It may outlive its Runtime: then
/// its outcome is Status::terminated. Destroyed unread, it abandons the call: the reply is counted and
/// dropped.
///
/// The outcome is taken by one of: get(), which waits for it; then(), which calls back; co_await, which
/// resumes a coroutine; CompletionQueue::watch(), for poll loops. docs/async.md says what runs where.
template <class T>
class Future;
/// What Client::ask gives: the reply, or why there is none.
template <class Response>
class Future<Reply<Response>> {
 public:
  using Outcome = Result<Reply<Response>>;

  /// Of no ask: its outcome is `terminated`.
  Future() = default;
  explicit Future(detail::CallHandle handle) : handle_(std::move(handle)) {}
  /// Of an ask that was refused.
  explicit Future(const Failure& refused) : refused_(refused) {}
  Future(std::shared_ptr<detail::Core> core, const Failure& refused)
      : refused_by_(std::move(core)), refused_(refused) {}
  Future(Future&& other) noexcept : handle_(std::move(other.handle_)) { take_refusal(other); }
  Future& operator=(Future&& other) noexcept {
    handle_ = std::move(other.handle_);
    take_refusal(other);
    return *this;
  }

  /// Completes what has arrived, for others too; true once get() will not block. Never blocks.
  bool ready() const { return !handle_ || handle_.core().forked() || handle_.core().poll(handle_.call()); }

  /// Blocks until the outcome is there: at the ask's deadline the latest. The caller polls for all meanwhile.
  void wait() const {
    if (handle_ && !handle_.core().forked()) handle_.core().wait(handle_.call());
  }

  /// The same for `timeout` at the most; true once get() will not block.
  bool wait_for(std::chrono::nanoseconds timeout) const {
    if (!handle_ || handle_.core().forked()) return true;
    return handle_.core().wait_until(handle_.call(), detail::after(detail::host_now_ns(), timeout));
  }

  /// Waits and takes the outcome. Afterwards the future is empty: a second get() says `terminated`.
  Outcome get() {
    if (!handle_) return std::exchange(*this, Future()).refused_;
    if (!handle_.core().forked()) handle_.core().wait(handle_.call());
    return taken(std::move(handle_));
  }

  /// Takes the outcome later: `callback(Result<Reply<Response>>)`, called once, on the runtime's poller
  /// thread, after the outcome is there; also where it is there already, or the ask was refused. Where the
  /// runtime has ended, in a forked child, and of an empty future it is called here, before then() returns.
  /// It should not block; what it throws is counted (Runtime::callback_failures). Never blocks, and allocates
  /// nothing for callbacks of up to 48 bytes that move without throwing, of asks that were accepted. The
  /// first use of a runtime's poller starts its thread: throws Error where there can be none; and
  /// std::bad_alloc. The future is as it was then.
  template <class Callback>
  void then(Callback callback) && {
    if (handle_) {
      detail::when_done(handle_, [callback = std::move(callback)](detail::CallHandle handle) mutable {
        callback(taken(std::move(handle)));
      });
    } else if (refused_by_) {
      detail::call_soon(*refused_by_, [callback = std::move(callback), refused = refused_]() mutable {
        callback(refusal(refused));
      });
      *this = Future();
    } else {
      callback(get());
    }
  }

  /// `co_await` gives the Result, in a coroutine of any type. One whose outcome is there does not suspend;
  /// others are resumed on the runtime's poller thread, or where resume_on() says. Do not destroy a coroutine
  /// that waits: cancel it. Throws into the coroutine what then() throws.
  auto operator co_await() && { return std::move(*this).resume_on(detail::ResumeHere{}); }
  /// As co_await of the future itself; `executor(std::coroutine_handle<>)` is called on the poller's thread,
  /// and has the handle resumed, once. It must not throw.
  template <class Executor>
  auto resume_on(Executor executor) && {
    return detail::Awaiter<Response, Executor>(std::move(*this), std::move(executor));
  }

  /// Gives the ask up: see Canceller. The future stays, with its outcome.
  bool cancel() const { return handle_ && handle_.core().cancel(handle_.call()); }
  /// Gives it up from elsewhere and later, also when the future was moved from.
  Canceller canceller() const {
    return handle_ ? Canceller(handle_.core().weak_from_this().lock(), handle_.call()) : Canceller();
  }
  /// Gives it up once a stop is requested, on the thread that requests it; if it was, at once. For as long as
  /// the result lives, which the future need not outlive.
  [[nodiscard]] std::stop_callback<Canceller> cancel_on(std::stop_token token) const {
    return std::stop_callback<Canceller>(std::move(token), canceller());
  }

  /// The same outcome, its response to be read as another message: `capnp::AnyPointer` for code that does not
  /// know which.
  template <class Other>
  Future<Reply<Other>> as() && {
    Future<Reply<Other>> other;
    other.handle_ = std::move(handle_);
    other.take_refusal(*this);
    return other;
  }

 private:
  template <class T>
  friend class Future;
  template <class Other, class Executor>
  friend class detail::Awaiter;
  friend class CompletionQueue;

  static Failure emptied() { return Failure{Status::terminated}; }
  // Hardly any future is: a look at that is less than a copy of the failure.
  bool refused() const { return refused_.status != Status::terminated || refused_by_ != nullptr; }
  template <class Other>
  void take_refusal(Future<Other>& other) {
    if (!refused() && !other.refused()) return;
    refused_ = std::exchange(other.refused_, emptied());
    refused_by_ = std::move(other.refused_by_);
  }

  // Not inlined: g++ 12 takes a move of what it knows to be a Failure for one of a Reply that was never made.
  [[gnu::noinline]] static Outcome refusal(const Failure& refused) { return refused; }

  // The same, and a call that failed is given back before it returns.
  static Outcome taken(detail::CallHandle&& handle) {
    detail::CallHandle mine(std::move(handle));
    return outcome_of(std::move(mine));
  }
  // Of a call that is done, or a forked child's. The reply is made in place: the reader that Cap'n Proto
  // stores word by word is copied once.
  static Outcome outcome_of(detail::CallHandle&& handle) {
    if (handle.core().forked()) return Failure{Status::forked};
    CallTable& calls = handle.core().calls();
    const CallId call = handle.call();
    if (calls.failed(call)) return calls.failure(call);
    try {
      return Outcome(std::in_place_type<Reply<Response>>, std::move(handle),
                     [&] { return calls.read<Response>(call); });
    } catch (const kj::Exception&) {
      return Failure{Status::malformed};
    }
  }

  detail::CallHandle handle_;
  std::shared_ptr<detail::Core> refused_by_;  // null of an ask that nobody refused
  Failure refused_ = emptied();
};

}  // namespace gyre
