// How much random input a test tries.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace gyre_test {

/// How many rounds of random input a test runs: `usual` in the quick tier, and where GYRE_TEST_ROUNDS is set
/// that percentage of it. At least one.
inline int rounds(int usual) {
  const char* const percent = std::getenv("GYRE_TEST_ROUNDS");
  return percent == nullptr ? usual : std::max(1, usual * std::atoi(percent) / 100);
}

}  // namespace gyre_test
