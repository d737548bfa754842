// What the program gyre-engine does: runs one CUDA engine for the program that started it.
#pragma once

namespace gyre::process {

/// Serves the program at socket_descriptor until it asks to end, or is gone. Call it once, first in main().
/// @returns the exit code
int serve_engine(int count, char** arguments);

}  // namespace gyre::process
