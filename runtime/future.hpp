// What Client::ask returns: a Future of a Reply.
#pragma once

#include <kj/exception.h>
#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/async/await.hpp>
#include <gyre/runtime/async/continuation.hpp>
#include <gyre/runtime/calls/call_handle.hpp>
#include <gyre/runtime/system/futex.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>

namespace gyre {

/// Reads a response in place, where it arrived. Holds a call slot until destroyed. Move-only. Used by one
/// thread at a time.
template <class Response>
class Reply {
 public:
  using Reader = typename Response::Reader;

  /// Takes the call, and the reader that `read()` returns. What `read()` throws passes through.
  template <class Read>
  Reply(detail::CallHandle&& handle, Read&& read) : handle_(std::move(handle)), reader_(read()) {}

  const Reader& operator*() const { return reader_; }
  const Reader* operator->() const { return &reader_; }
  /// Returns the response's bytes, one unpacked segment; pass them to encode() to make a stream. They live as
  /// long as the Reply. Empty if the Reply was moved from.
  std::span<const std::byte> body() const {
    if (!handle_) return {};
    return handle_.core().calls().body_bytes(handle_.call());
  }

 private:
  detail::CallHandle handle_;
  Reader reader_;
};

namespace detail {
// Stands for the response that the sender of a tell does not read.
struct UnreadResponse {
  struct Reader {};
};
}  // namespace detail

/// Says that a message was processed: its handler ended without a failure. Holds nothing; the call slot is
/// free again once there is a Receipt.
template <>
class Reply<detail::UnreadResponse> {
 public:
  template <class Read>
  Reply(detail::CallHandle&& handle, Read&&) {
    const detail::CallHandle released(std::move(handle));
  }
};
/// Says that a message was processed; see Client::tell_with_receipt().
using Receipt = Reply<detail::UnreadResponse>;

/// Delivers the outcome of an ask that a CUDA stream waits for. Future::wait_on() returns it. Move-only. Used
/// by one thread at a time. May be destroyed before the outcome is there: the stream waits all the same.
template <class Response>
class StreamFuture {
 public:
  using Outcome = Result<Reply<Response>>;

  /// Returns true once get() will not block.
  bool ready() const {
    return !state_ || fork_.forked() ||
           state_->done.load(std::memory_order_acquire) != 0;  // pairs with set()
  }
  /// Blocks until the outcome is there, at most until the ask's deadline.
  void wait() const { wait_until(INT64_MAX); }
  /// Blocks until the outcome is there, at most for `timeout`. Returns true if get() will not block.
  bool wait_for(std::chrono::nanoseconds timeout) const {
    return wait_until(detail::after(detail::host_now_ns(), timeout));
  }
  /// Waits for the outcome and takes it. The future is empty afterwards, as Future::get() leaves it.
  Outcome get() {
    wait();
    const std::shared_ptr<State> state = std::exchange(state_, nullptr);
    if (!state) return Failure{Status::terminated};
    if (fork_.forked()) return Failure{Status::forked};
    return std::move(*state->outcome);
  }
  /// Cancels the ask: see Canceller::cancel(). The stream goes on.
  bool cancel() const { return canceller_.cancel(); }

 private:
  template <class T>
  friend class Future;

  struct State {
    std::atomic<uint32_t> done{0};  // a futex
    std::optional<Outcome> outcome;

    void set(Outcome&& given) {
      outcome.emplace(std::move(given));
      done.store(1, std::memory_order_release);  // pairs with the load in ready()
      detail::futex_wake(detail::whole(done));
    }
  };

  StreamFuture(std::shared_ptr<State> state, Canceller canceller)
      : state_(std::move(state)), canceller_(std::move(canceller)) {}

  bool wait_until(int64_t until_ns) const {
    while (!ready()) {
      if (until_ns != INT64_MAX && detail::host_now_ns() >= until_ns) return false;
      detail::futex_wait(detail::whole(state_->done), 0, until_ns);
    }
    return true;
  }

  ForkGuard fork_;
  std::shared_ptr<State> state_;
  Canceller canceller_;
};

/// Delivers the outcome of an ask. Move-only. Used by one thread at a time. A Future may outlive its Runtime:
/// its outcome is Status::terminated then. A Future destroyed before its outcome was taken abandons the call:
/// the reply is counted and dropped.
///
/// Take the outcome by one of these:
/// - get() waits for it.
/// - then() calls back.
/// - co_await resumes a coroutine.
/// - CompletionQueue::watch() serves poll loops.
///
/// docs/how-to/asynchronous.md says on which threads they run.
template <class T>
class Future;
/// Delivers the outcome of Client::ask: the reply, or why there is none. Future<Receipt> delivers that of
/// Client::tell_with_receipt.
template <class Response>
class Future<Reply<Response>> {
 public:
  using Outcome = Result<Reply<Response>>;

  /// Makes a future of no ask. Its outcome is Status::terminated.
  Future() = default;
  explicit Future(detail::CallHandle handle) : handle_(std::move(handle)) {}
  /// Makes a future of a refused ask.
  explicit Future(const Failure& refusal) : refusal_(refusal) {}
  Future(std::shared_ptr<detail::Core> core, const Failure& refusal)
      : refused_by_(std::move(core)), refusal_(refusal) {}
  Future(Future&& other) noexcept : handle_(std::move(other.handle_)) { take_refusal(other); }
  Future& operator=(Future&& other) noexcept {
    handle_ = std::move(other.handle_);
    take_refusal(other);
    return *this;
  }

  /// Returns true once get() will not block. Completes the replies that have arrived, for all threads. Never
  /// blocks.
  bool ready() const { return !handle_ || handle_.core().forked() || handle_.core().poll(handle_.call()); }

  /// Blocks until the outcome is there, at most until the ask's deadline. Completes other threads' replies
  /// meanwhile.
  void wait() const {
    if (handle_ && !handle_.core().forked()) handle_.core().wait(handle_.call());
  }

  /// Blocks until the outcome is there, at most for `timeout`. Returns true if get() will not block.
  bool wait_for(std::chrono::nanoseconds timeout) const {
    if (!handle_ || handle_.core().forked()) return true;
    return handle_.core().wait_until(handle_.call(), detail::after(handle_.core().host().now_ns(), timeout));
  }

  /// Waits for the outcome like wait() and takes it. The future is empty afterwards: a second get() returns
  /// Status::terminated.
  Outcome get() {
    if (!handle_) return std::exchange(*this, Future()).refusal_;
    if (!handle_.core().forked()) handle_.core().wait(handle_.call());
    return taken(std::move(handle_));
  }

  /// Passes the outcome to `callback` once it is there. Never blocks.
  /// @param callback  called once as callback(Result<Reply<Response>>), on the runtime's poller thread. In
  ///                  three cases then() calls it before returning: the runtime has ended, the process is a
  ///                  forked child, or the future is empty. It should not block. The poller counts what it
  ///                  throws (Runtime::callback_failures).
  /// @throws Error           if the poller's thread cannot be started; the first then() starts it
  /// @throws std::bad_alloc  if there is no memory. After either exception the future is unchanged.
  /// Allocates nothing if the ask was accepted, the poller runs, and the callback has at most 48 bytes and a
  /// noexcept move constructor.
  template <class Callback>
  void then(Callback callback) && {
    if (handle_) {
      detail::when_done(handle_, [callback = std::move(callback)](detail::CallHandle handle) mutable {
        callback(taken(std::move(handle)));
      });
    } else if (refused_by_) {
      detail::call_soon(*refused_by_, [callback = std::move(callback), refusal = refusal_]() mutable {
        callback(outcome_of_refusal(refusal));
      });
      *this = Future();
    } else {
      callback(get());
    }
  }

  /// Waits for the outcome in a coroutine of any type; the expression's value is the Result. Does not suspend
  /// if the outcome is there. Otherwise the runtime's poller thread resumes the coroutine; resume_on()
  /// chooses another executor. Do not destroy a coroutine while it waits: cancel the ask. Throws what then()
  /// throws, into the coroutine.
  auto operator co_await() && { return std::move(*this).resume_on(detail::ResumeHere{}); }
  /// Waits for the outcome like co_await, and resumes the coroutine through an executor.
  /// @param executor  called as executor(std::coroutine_handle<>) on the poller's thread; must see to it that
  ///                  the handle is resumed once; must not throw
  template <class Executor>
  auto resume_on(Executor executor) && {
    return detail::Awaiter<Response, Executor>(std::move(*this), std::move(executor));
  }

  /// Makes a CUDA stream of the program wait for the outcome, whatever it is. Work that the stream is given
  /// later begins after the outcome, and finds what the handler wrote. Does not block. Makes CUDA calls in
  /// this thread: in its current context, or in the primary one that the program has made. Creates no
  /// context. A stream that is being captured into a graph may wait: launches of the graph wait for this
  /// outcome, and no longer once it was there.
  ///
  /// The stream goes on at the latest at the ask's timeout. Until then calls that wait for the device, such
  /// as cudaFree, wait too. The runtime's poller thread notices the outcome.
  /// @param stream  a CUstream or cudaStream_t; null: the default stream
  /// @returns       the outcome to come, in place of this future
  /// @throws Error  with CUDA's error; without a CUDA context; on the CPU engine, unless the outcome is
  ///                there; or as then() does. The future is unchanged, and the stream does not wait.
  StreamFuture<Response> wait_on(void* stream) && {
    using Held = StreamFuture<Response>;
    auto state = std::make_shared<typename Held::State>();
    if (ready()) {
      state->set(get());
      return Held(std::move(state), Canceller());
    }
    auto hold = handle_.core().engine().program_streams().hold(stream);
    Held held(state, canceller());
    std::move(*this).then([state = std::move(state), hold = std::move(hold)](Outcome outcome) mutable {
      hold.reset();
      state->set(std::move(outcome));
    });
    return held;
  }

  /// Cancels the ask: see Canceller::cancel(). The future stays valid and delivers the outcome.
  bool cancel() const { return handle_ && handle_.core().cancel(handle_.call()); }
  /// Returns an object that can cancel the ask later, from any thread, even after the future was moved from.
  Canceller canceller() const {
    return handle_ ? Canceller(handle_.core().weak_from_this().lock(), handle_.call()) : Canceller();
  }
  /// Cancels the ask once a stop is requested, on the thread that requests the stop; at once if a stop was
  /// requested before.
  /// @returns a guard. After it is destroyed the token has no effect. It may outlive the future.
  [[nodiscard]] std::stop_callback<Canceller> cancel_on(std::stop_token token) const {
    return std::stop_callback<Canceller>(std::move(token), canceller());
  }

  /// Moves the outcome into a future that reads the response as type `Other`. Code that does not know the
  /// type uses `capnp::AnyPointer`.
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
  // Hardly any future holds a refusal: testing for one costs less than copying the failure.
  bool holds_refusal() const { return refusal_.status != Status::terminated || refused_by_ != nullptr; }
  template <class Other>
  void take_refusal(Future<Other>& other) {
    if (!holds_refusal() && !other.holds_refusal()) return;
    refusal_ = std::exchange(other.refusal_, emptied());
    refused_by_ = std::move(other.refused_by_);
  }

  // Not inlined: g++ 12 otherwise warns that a Reply is moved which was never made.
  [[gnu::noinline]] static Outcome outcome_of_refusal(const Failure& refusal) { return refusal; }

  // Returns the outcome, and releases a failed call before returning.
  static Outcome taken(detail::CallHandle&& handle) {
    detail::CallHandle mine(std::move(handle));
    return outcome_of(std::move(mine));
  }
  // Returns the outcome of a call that is done, or that belongs to a forked child. Makes the reply in place,
  // so that the reader is copied once; Cap'n Proto stores readers word by word.
  static Outcome outcome_of(detail::CallHandle&& handle) {
    if (handle.core().forked()) return Failure{Status::forked};
    CallTable& calls = handle.core().calls();
    const CallId call = handle.call();
    if (calls.failed(call)) return calls.failure(call);
    if constexpr (std::is_same_v<Response, detail::UnreadResponse>) {
      return Outcome(std::in_place_type<Receipt>, std::move(handle), [] {});
    } else {
      return read(std::move(handle));
    }
  }
  // Reads the body of a call that is done without a failure.
  static Outcome read(detail::CallHandle&& handle) {
    CallTable& calls = handle.core().calls();
    const CallId call = handle.call();
    try {
      return Outcome(std::in_place_type<Reply<Response>>, std::move(handle),
                     [&] { return calls.read<Response>(call); });
    } catch (const kj::Exception&) {
      return Failure{Status::malformed};
    }
  }

  detail::CallHandle handle_;
  std::shared_ptr<detail::Core> refused_by_;  // set only if the core refused the ask
  Failure refusal_ = emptied();
};

}  // namespace gyre
