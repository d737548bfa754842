// The subcommands of gyre-bench: each adds itself to the command line, and sets `chosen` when it is the one
// called.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace gyre::bench {

void add_rtt(CLI::App& app, std::function<int()>& chosen);
void add_views(CLI::App& app, std::function<int()>& chosen);

}  // namespace gyre::bench
