// The least type of coroutine: it starts at once, and nobody waits for it. What it throws passes through to
// who resumes it.
#pragma once

#include <coroutine>

namespace gyre_test {

struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }
  };
};

}  // namespace gyre_test
