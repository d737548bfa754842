// Messages of any schema with random content, as gyre validate makes them.
#pragma once

#include <cstdlib>

#include "tools/gyre/random_message.hpp"

namespace gyre_test {
using gyre::tools::Random;
using gyre::tools::RandomMessage;

/// How many a test makes: GYRE_TEST_MESSAGES, where that is set.
inline int random_messages(int otherwise = 10'000) {
  const char* const said = std::getenv("GYRE_TEST_MESSAGES");
  return said != nullptr ? std::atoi(said) : otherwise;
}
}  // namespace gyre_test
