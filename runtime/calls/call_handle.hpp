// Who owns a call slot: a Future, then a Reply, or what is to be called when the call is done.
#pragma once

#include <gyre/runtime/calls/teardown.hpp>
#include <gyre/runtime/core/core.hpp>

#include <memory>
#include <utility>

namespace gyre {

namespace detail {

/// Releases a call that the caller holds (CallTable::abandon). The core may be gone afterwards: where it has
/// no shares any more, the last call takes it along. Never blocks while the core has shares.
inline void release(Core& core, CallId call) noexcept {
  if (!core.teardown().try_release([&] { core.calls().abandon(call); })) [[unlikely]]
    release_slow_path(core, call);
}

/// Ownership of one call slot, or of none. The slot keeps its Core. Move-only.
class CallHandle {
 public:
  CallHandle() = default;
  /// `call`: armed.
  CallHandle(Core& core, CallId call) : core_(&core), call_(call) {}
  CallHandle(CallHandle&& other) noexcept : core_(other.core_), call_(std::exchange(other.call_, 0)) {}
  CallHandle& operator=(CallHandle&& other) noexcept {
    if (this != &other) {
      const CallHandle old(std::move(*this));
      core_ = other.core_;
      call_ = std::exchange(other.call_, 0);
    }
    return *this;
  }
  ~CallHandle() {
    if (call_ != 0) release(*core_, call_);
  }

  explicit operator bool() const { return call_ != 0; }
  /// Not of an empty one.
  Core& core() const { return *core_; }
  CallId call() const { return call_; }

 private:
  Core* core_ = nullptr;
  CallId call_ = 0;
};

}  // namespace detail

/// Cancels one ask, from any thread and at any time, even after its Future was moved, waited for or given a
/// callback. Copyable. Usually keeps the runtime's memory alive; it does not if only calls did when it was
/// made. A function object without arguments, so that a stop token can cancel the ask:
/// `std::stop_callback on_stop(token, future.canceller());`
class Canceller {
 public:
  /// Makes a canceller of no ask: cancel() does nothing.
  Canceller() = default;
  Canceller(std::shared_ptr<detail::Core> core, CallId call) : core_(std::move(core)), call_(call) {}

  /// Gives the ask the outcome Status::cancelled, unless it has an outcome already. Does not take the request
  /// back: a worker may handle it, and its reply is counted as late. Until that reply arrives, the ask keeps
  /// its part of the reply ring and its block of the arena. Returns true if this call decided the outcome.
  /// Never blocks.
  bool cancel() const { return core_ != nullptr && core_->cancel(call_); }
  void operator()() const { cancel(); }

 private:
  std::shared_ptr<detail::Core> core_;
  CallId call_ = 0;
};

}  // namespace gyre
