// Small numbers of threads, for what is kept one a thread and must not be shared by two.
#pragma once

#include <cstdint>

namespace gyre::detail {

/// How many threads of the process have a number at the same time. Later ones do without.
inline constexpr uint32_t thread_numbers = 64;

inline constexpr uint32_t thread_number_unknown = ~uint32_t(0);
extern constinit thread_local uint32_t known_thread_number;
uint32_t take_thread_number() noexcept;

/// Returns the calling thread's number, 0 to thread_numbers - 1. No other thread has it until this one ends.
/// Returns thread_numbers where all were taken at the thread's first call, or where the thread is ending. The
/// number's next owner sees all that was written under it before. Never blocks, allocates nothing.
inline uint32_t thread_number() noexcept {
  const uint32_t known = known_thread_number;
  return known != thread_number_unknown ? known : take_thread_number();
}

}  // namespace gyre::detail
