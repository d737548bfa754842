// Messages of any schema with random content, as gyre validate makes them.
#pragma once

#include "tools/gyre/random_message.hpp"

namespace gyre_test {
using gyre::tools::Random;
using gyre::tools::RandomMessage;
}  // namespace gyre_test
