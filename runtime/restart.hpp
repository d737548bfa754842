// What a program hears of an engine that was launched again.
#pragma once

#include <cstdint>
#include <string>

namespace gyre {

/// Describes one relaunch after a failed engine. Actors' state began anew.
struct Restart {
  uint32_t number = 0;  ///< of the runtime's relaunches, from 1
  std::string cause;    ///< why the engine before failed: Runtime::failure() of then
  double down_ms = 0;   ///< from the beginning of the relaunch until messages were taken again
};

}  // namespace gyre
