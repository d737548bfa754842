// Catch2, version 2 (Debian 12) or 3 (Ubuntu 24.04).
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace gyre_test {

/// Matches text that has `part` in it: what CHECK_THROWS_WITH and CHECK_THAT take.
inline auto containing(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Contains(part);
#endif
}

}  // namespace gyre_test
