// Catch2's part of a test executable's main.
#pragma once

namespace gyre_test {

/// Runs the tests that the arguments select, all without one. What it returns is the exit status.
int run_tests(int argc, char** argv);

}  // namespace gyre_test
