// Test cases that cannot be run on this machine.
#pragma once

#include <string>

namespace gyre_test {

/// Counts the running test case as skipped; the case returns after the call, without an assertion. Prints
/// `skipped case: NAME: REASON`, which tools/test.sh and tools/gpu_test.sh count. An executable whose
/// selected cases were all skipped exits with 77.
void skip(const std::string& reason);

}  // namespace gyre_test
