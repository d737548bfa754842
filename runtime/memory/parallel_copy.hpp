// A copy within host memory by two threads: one alone does not reach the memory's speed.
#pragma once

#include <gyre/runtime/system/signals_blocked.hpp>

#include <cstddef>
#include <cstring>
#include <future>
#include <system_error>

namespace gyre::detail {

/// Copies as std::memcpy does; large blocks by another thread too. Any thread.
inline void parallel_copy(void* to, const void* from, size_t bytes) {
  constexpr size_t worth_a_thread = size_t(1) << 20;  // takes longer to copy than a thread to start
  const size_t first = bytes < worth_a_thread ? bytes : bytes / 2 / 64 * 64;
  std::future<void> second;
  if (first != bytes) {
    const auto copy_second = [=] {
      std::memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first, bytes - first);
    };
    try {
      const SignalsBlocked blocked;
      second = std::async(std::launch::async, copy_second);
    } catch (const std::system_error&) {
      copy_second();
    }
  }
  std::memcpy(to, from, first);
  if (second.valid()) second.get();
}

}  // namespace gyre::detail
