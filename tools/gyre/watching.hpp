// What the programs' options --stats and --metrics ask for.
#pragma once

#include <gyre/gyre.hpp>

#include <memory>
#include <string>

namespace gyre::tools {

/// Where the programs serve metrics, address and port; empty: nowhere. Set by --metrics.
std::string& metrics_address();

/// Serves the stats of `runtime` as long as what it returns lives, where --metrics asks for that. Throws
/// Error.
std::shared_ptr<void> serve_metrics(const Runtime& runtime);

}  // namespace gyre::tools
