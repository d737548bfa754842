// The transport that the whole run of the GPU tests is to be over.
#pragma once

#include <gyre/runtime/options.hpp>

#include <optional>

namespace gyre_test {

/// What GYRE_TEST_TRANSPORT says, if it is set. Ends the process where that is no transport of CUDA's.
std::optional<gyre::TransportKind> transport_of_environment();

}  // namespace gyre_test
