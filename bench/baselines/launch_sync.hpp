// What Gyre is there to avoid: a kernel launch a call.
#pragma once

#include "measure.hpp"

namespace gyre::bench {

/// Launches an empty kernel of one warp and synchronises its stream. Nothing comes back, so only the driver's
/// success is checked. No other kernel may live on the device. Throws EngineUnavailable, Error.
Row measure_launch_sync(const Plan& plan);

}  // namespace gyre::bench
