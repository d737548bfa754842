#include "support/engine_under_test.hpp"

const gyre::EngineKind gyre_test::engine_under_test = gyre::EngineKind::cpu;
