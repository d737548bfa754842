#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <gyre/runtime/system/futex.hpp>

#include <cerrno>

namespace gyre::detail {

// Errors are ignored: the caller reads again what it waits for, whatever ended its sleep. errno is kept.
void futex_wait(const uint32_t* word, uint32_t expected, int64_t until_ns) noexcept {
  constexpr int64_t second_ns = 1'000'000'000;
  const timespec until{time_t(until_ns / second_ns), long(until_ns % second_ns)};
  const int error = errno;
  // FUTEX_WAIT_BITSET takes an absolute time, of CLOCK_MONOTONIC.
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, &until, nullptr,
          FUTEX_BITSET_MATCH_ANY);
  errno = error;
}

void futex_wake(const uint32_t* word) noexcept {
  const int error = errno;
  syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
  errno = error;
}

}  // namespace gyre::detail
