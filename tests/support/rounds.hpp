// How much of what a test could try it tries.
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

/// Whether a test that makes one call or allocation fail at a time tries each of them. The quick tier tries a
/// part of them, and the slow tier sets GYRE_TEST_EVERY_PLACE.
inline bool every_place() { return std::getenv("GYRE_TEST_EVERY_PLACE") != nullptr; }

}  // namespace gyre_test
