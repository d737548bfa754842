// Options for the engine that the tests of both engines were compiled for.
#pragma once

#include <gyre/runtime/options.hpp>

namespace gyre_test {

inline gyre::Options on_this_engine(gyre::Options options = {}) {
  options.engine = gyre::EngineKind::GYRE_TEST_ENGINE;
#if defined(GYRE_TEST_TRANSPORT)
  options.transport = gyre::TransportKind::GYRE_TEST_TRANSPORT;
#endif
  return options;
}

}  // namespace gyre_test
