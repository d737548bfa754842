// The test kit: a runtime whose workers a test steps, message by message, in virtual time. It needs no test
// framework, and its programs link gyre::testing. docs/how-to/testing_actors.md shows it.
#pragma once

#include <gyre/runtime/testing/stepped_runtime.hpp>
