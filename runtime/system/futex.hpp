// Sleeping until a word changes: futex(2).
#pragma once

#include <atomic>
#include <cstdint>

namespace gyre::detail {

/// Returns the low half of a word, as a futex has 32 bits. Little-endian.
inline const uint32_t* low_half(const std::atomic<uint64_t>& word) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof word == sizeof(uint64_t));
  return reinterpret_cast<const uint32_t*>(&word);
}
inline const uint32_t* whole(const std::atomic<uint32_t>& word) {
  static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof word == sizeof(uint32_t));
  return reinterpret_cast<const uint32_t*>(&word);
}

/// Sleeps while the word has the value `expected`, until futex_wake(), at most until `until_ns` of the steady
/// clock. May return early, for example after a signal. No cancellation point.
void futex_wait(const uint32_t* word, uint32_t expected, int64_t until_ns) noexcept;
/// Wakes at most `threads`. The word may have been freed.
void futex_wake(const uint32_t* word, int threads = 1) noexcept;

/// The same for a word in memory that several processes map.
void futex_wait_shared(const uint32_t* word, uint32_t expected, int64_t until_ns) noexcept;
void futex_wake_shared(const uint32_t* word, int threads = 1) noexcept;

}  // namespace gyre::detail
