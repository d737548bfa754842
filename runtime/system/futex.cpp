#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <gyre/runtime/system/futex.hpp>

#include <cerrno>

namespace gyre::detail {

namespace {

// Errors are ignored: the caller reads again what it waits for, whatever ended its sleep. errno is kept.
void wait(const uint32_t* word, uint32_t expected, int64_t until_ns, int flags) noexcept {
  constexpr int64_t second_ns = 1'000'000'000;
  const timespec until{time_t(until_ns / second_ns), long(until_ns % second_ns)};
  const int error = errno;
  // FUTEX_WAIT_BITSET takes an absolute time, of CLOCK_MONOTONIC.
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET | flags, expected, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
  errno = error;
}

void wake(const uint32_t* word, int threads, int flags) noexcept {
  const int error = errno;
  syscall(SYS_futex, word, FUTEX_WAKE | flags, threads, nullptr, nullptr, 0);
  errno = error;
}

}  // namespace

void futex_wait(const uint32_t* word, uint32_t expected, int64_t until_ns) noexcept {
  wait(word, expected, until_ns, FUTEX_PRIVATE_FLAG);
}
void futex_wake(const uint32_t* word, int threads) noexcept { wake(word, threads, FUTEX_PRIVATE_FLAG); }

void futex_wait_shared(const uint32_t* word, uint32_t expected, int64_t until_ns) noexcept {
  wait(word, expected, until_ns, 0);
}
void futex_wake_shared(const uint32_t* word, int threads) noexcept { wake(word, threads, 0); }

}  // namespace gyre::detail
