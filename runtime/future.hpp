// What an ask gives back: a Future of a Reply.
#pragma once

#include <kj/exception.h>
#include <gyre/runtime/core.hpp>

#include <memory>
#include <span>
#include <utility>

namespace gyre {

namespace detail {

/// Ownership of one call slot; empty, of none. Move-only.
class CallHandle {
 public:
  CallHandle() = default;
  CallHandle(std::shared_ptr<Core> core, CallId call) : core_(std::move(core)), call_(call) {}
  CallHandle(CallHandle&& other) noexcept = default;
  CallHandle& operator=(CallHandle&& other) noexcept {
    if (this != &other) {
      abandon();
      core_ = std::move(other.core_);
      call_ = other.call_;
    }
    return *this;
  }
  ~CallHandle() { abandon(); }

  explicit operator bool() const { return core_ != nullptr; }
  Core& core() const { return *core_; }
  CallId call() const { return call_; }

 private:
  void abandon() {
    if (core_) core_->calls().abandon(call_);
  }

  std::shared_ptr<Core> core_;
  CallId call_ = 0;
};

}  // namespace detail

/// A response, read where it arrived. Holds a call slot until it is destroyed; move-only. One thread at a
/// time.
template <class Response>
class Reply {
 public:
  using Reader = typename Response::Reader;

  Reply(detail::CallHandle handle, Reader reader) : handle_(std::move(handle)), reader_(reader) {}

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
template <class T>
class Future;
/// What Client::ask gives: the reply, or why there is none.
template <class Response>
class Future<Reply<Response>> {
 public:
  /// Of no ask: its outcome is `terminated`.
  Future() = default;
  explicit Future(detail::CallHandle handle) : handle_(std::move(handle)) {}
  /// Of an ask that was refused.
  explicit Future(const Failure& refused) : refused_(refused) {}
  Future(Future&& other) noexcept
      : handle_(std::move(other.handle_)), refused_(std::exchange(other.refused_, emptied())) {}
  Future& operator=(Future&& other) noexcept {
    handle_ = std::move(other.handle_);
    refused_ = std::exchange(other.refused_, emptied());
    return *this;
  }

  /// Completes what has arrived, for others too; true once get() will not block. Never blocks.
  bool ready() const { return !handle_ || handle_.core().forked() || handle_.core().poll(handle_.call()); }

  /// Blocks until the outcome is there: at the ask's deadline the latest. The caller polls for all meanwhile.
  void wait() const {
    if (handle_ && !handle_.core().forked()) handle_.core().wait(handle_.call());
  }

  /// Waits and takes the outcome. Afterwards the future is empty: a second get() says `terminated`.
  Result<Reply<Response>> get() {
    if (!handle_) return std::exchange(refused_, emptied());
    detail::CallHandle handle = std::move(handle_);
    detail::Core& core = handle.core();
    if (core.forked()) return Failure{Status::forked};
    core.wait(handle.call());
    CallTable& calls = core.calls();
    if (const Failure& failure = calls.failure(handle.call()); failure.status != Status::ok) return failure;
    try {
      const auto reader = calls.root(handle.call()).template getAs<Response>();
      return Reply<Response>(std::move(handle), reader);
    } catch (const kj::Exception&) {
      return Failure{Status::malformed};
    }
  }

 private:
  static Failure emptied() { return Failure{Status::terminated}; }

  detail::CallHandle handle_;
  Failure refused_ = emptied();
};

}  // namespace gyre
