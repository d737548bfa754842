// The subcommands of gyre-bench: each adds itself to the command line, and sets `chosen` when it is the one
// called.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace gyre::bench {

void add_rtt(CLI::App& app, std::function<int()>& chosen);
void add_api(CLI::App& app, std::function<int()>& chosen);
void add_frames(CLI::App& app, std::function<int()>& chosen);
void add_idle(CLI::App& app, std::function<int()>& chosen);
void add_launch(CLI::App& app, std::function<int()>& chosen);
/// The processes that launch starts; not shown by --help.
void add_launch_samples(CLI::App& app, std::function<int()>& chosen);
void add_payload(CLI::App& app, std::function<int()>& chosen);
void add_soak(CLI::App& app, std::function<int()>& chosen);
void add_sweep(CLI::App& app, std::function<int()>& chosen);
void add_throughput(CLI::App& app, std::function<int()>& chosen);
void add_views(CLI::App& app, std::function<int()>& chosen);
void add_workers(CLI::App& app, std::function<int()>& chosen);

}  // namespace gyre::bench
