#include "support/engine_under_test.hpp"

const gyre::EngineKind gyre_test::engine_under_test = gyre::EngineKind::cpu;
gyre::Isolation gyre_test::isolation_under_test = gyre::Isolation::in_process;
