// Function objects to call when a call is done.
#pragma once

#include <gyre/runtime/calls/call_handle.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace gyre::detail {

/// Holds a call and the function object to run when the call is done, in the call slot's space for one.
struct Continuation : Deliverable {
  static constexpr size_t place_bytes = 48;
  template <class Function>
  static constexpr bool fits =
      sizeof(Function) <= place_bytes &&
      alignof(Function) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<Function>;

  template <class Function>
  void put(CallHandle call, Function&& function) noexcept {
    using Stored = std::decay_t<Function>;
    static_assert(fits<Stored>);
    ::new (place) Stored(std::forward<Function>(function));
    handle = std::move(call);
  }
  /// Takes the call and the function object. Called once per put().
  template <class Stored>
  std::pair<CallHandle, Stored> take() noexcept {
    auto* const stored = std::launder(reinterpret_cast<Stored*>(place));
    std::pair<CallHandle, Stored> taken(std::move(handle), std::move(*stored));
    stored->~Stored();
    return taken;
  }

  CallHandle handle;
  alignas(std::max_align_t) std::byte place[place_bytes];
};

/// Holds a function object that is too large for a Continuation.
template <class Function>
struct Boxed {
  std::unique_ptr<Function> function;
  void operator()(CallHandle call) { (*function)(std::move(call)); }
};

/// Calls `function(CallHandle)` on the poller's thread once the call is done. If the runtime has ended,
/// and in a forked child, it calls the function itself before returning. Allocates nothing for functions
/// of up to 48 bytes with a noexcept move constructor. Throws what Poller::expect() throws; `call` is
/// unchanged then.
template <class Function>
void when_done(CallHandle& call, Function function) {
  if constexpr (!Continuation::fits<Function>) {
    when_done(call, Boxed<Function>{std::make_unique<Function>(std::move(function))});
  } else {
    Core& core = call.core();
    Poller& poller = core.poller();
    if (!poller.expect()) {
      CallHandle mine = std::move(call);
      if (!core.forked()) core.wait(mine.call());
      return function(std::move(mine));
    }
    const CallId id = call.call();
    Continuation& continuation = poller.continuation_of(id);
    continuation.put(std::move(call), std::move(function));
    // Another call may reuse the continuation before the function is called, so take both first.
    continuation.deliver = [](Deliverable& ready) {
      auto [done, stored] = static_cast<Continuation&>(ready).take<Function>();
      stored(std::move(done));
    };
    poller.watch(id);
  }
}

/// Calls `function()` soon on the poller's thread. If the runtime has ended, and in a forked child, it
/// calls the function itself before returning. Allocates.
template <class Function>
void call_soon(Core& core, Function function) {
  struct Called : Deliverable {
    explicit Called(Function f) : function(std::move(f)) {}
    Function function;
  };
  auto called = std::make_unique<Called>(std::move(function));
  if (!core.poller().expect()) return called->function();
  called->deliver = [](Deliverable& ready) {
    const std::unique_ptr<Called> mine(static_cast<Called*>(&ready));
    mine->function();
  };
  core.poller().deliver(*called.release());
}

}  // namespace gyre::detail
