// What is to be called when a call is done.
#pragma once

#include <gyre/runtime/calls/call_handle.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace gyre::detail {

/// A function object, in the place that its call slot has for one, and the call.
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
  /// Once for each put().
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

/// A function object that its continuation has no place for.
template <class Function>
struct Boxed {
  std::unique_ptr<Function> function;
  void operator()(CallHandle call) { (*function)(std::move(call)); }
};

/// Calls `function(CallHandle)` on the poller's thread once the call is done; here and now where the runtime
/// has ended, or in a forked child. Allocates nothing for functions of up to 48 bytes that move without
/// throwing. Throws what Poller::expect does; `call` is as it was then.
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
    // What the call and the function lay in may be somebody else's before the function is called.
    continuation.deliver = [](Deliverable& ready) {
      auto [done, stored] = static_cast<Continuation&>(ready).take<Function>();
      stored(std::move(done));
    };
    poller.watch(id);
  }
}

/// Calls `function()` on the poller's thread, soon; here and now where when_done would. Allocates.
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
