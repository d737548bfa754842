// Sleeping until a word changes: futex(2), within the process.
#pragma once

#include <atomic>
#include <cstdint>

namespace gyre::detail {

/// The half of a word that a futex can be: the low one, on a little-endian machine.
inline const uint32_t* low_half(const std::atomic<uint64_t>& word) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof word == sizeof(uint64_t));
  return reinterpret_cast<const uint32_t*>(&word);
}
inline const uint32_t* whole(const std::atomic<uint32_t>& word) {
  static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof word == sizeof(uint32_t));
  return reinterpret_cast<const uint32_t*>(&word);
}

/// Sleeps while the word has the value `expected`, until futex_wake(), at `until_ns` of the steady clock the
/// latest. May return early: a signal ends it too. No cancellation point.
void futex_wait(const uint32_t* word, uint32_t expected, int64_t until_ns) noexcept;
/// Ends the sleep of one thread. The word need not be there any more.
void futex_wake(const uint32_t* word) noexcept;

}  // namespace gyre::detail
