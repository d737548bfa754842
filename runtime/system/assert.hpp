// Assertions of debug builds, for host code: kernels have none.
#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the program with the condition's text if the condition is false. With NDEBUG the condition is parsed
/// but not evaluated.
#if defined(NDEBUG)
#define GYRE_ASSERT(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#else
#define GYRE_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::gyre::detail::assertion_failed(#condition, __FILE__, __LINE__))

namespace gyre::detail {

[[noreturn, gnu::cold]] inline void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "gyre: %s:%d: assertion failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace gyre::detail
#endif
