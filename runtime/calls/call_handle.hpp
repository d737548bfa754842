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

/// Gives one ask up, from any thread and at any time: also once its Future was moved, waited for, or given a
/// callback. A value; it keeps the runtime's memory, unless nobody but calls did when it was made. A function
/// object without arguments, so that `std::stop_callback on_stop(token, future.canceller());` cancels when a
/// stop is requested.
class Canceller {
 public:
  /// Of no ask: cancel() does nothing.
  Canceller() = default;
  Canceller(std::shared_ptr<detail::Core> core, CallId call) : core_(std::move(core)), call_(call) {}

  /// The ask's outcome is Status::cancelled, unless it has one. The request is not taken back: a worker may
  /// handle it, and its reply is counted as late. Until that comes, the ask keeps its part of the reply ring
  /// and its block of the arena. True if this decided. Never blocks.
  bool cancel() const { return core_ != nullptr && core_->cancel(call_); }
  void operator()() const { cancel(); }

 private:
  std::shared_ptr<detail::Core> core_;
  CallId call_ = 0;
};

}  // namespace gyre
