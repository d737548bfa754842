// The subcommands of gyre-bench: each adds itself to the command line, and sets `chosen` when it is the one
// called.
#pragma once

#include <functional>

#include "command_line.hpp"

namespace gyre::bench {

void add_rtt(tools::ProgramCommand app, std::function<int()>& chosen);
void add_actors(tools::ProgramCommand app, std::function<int()>& chosen);
void add_api(tools::ProgramCommand app, std::function<int()>& chosen);
void add_counters(tools::ProgramCommand app, std::function<int()>& chosen);
void add_frames(tools::ProgramCommand app, std::function<int()>& chosen);
void add_idle(tools::ProgramCommand app, std::function<int()>& chosen);
void add_inference(tools::ProgramCommand app, std::function<int()>& chosen);
void add_launch(tools::ProgramCommand app, std::function<int()>& chosen);
/// The processes that launch starts; not shown by --help.
void add_launch_samples(tools::ProgramCommand app, std::function<int()>& chosen);
void add_mailbox(tools::ProgramCommand app, std::function<int()>& chosen);
void add_payload(tools::ProgramCommand app, std::function<int()>& chosen);
void add_rollback(tools::ProgramCommand app, std::function<int()>& chosen);
void add_savina(tools::ProgramCommand app, std::function<int()>& chosen);
void add_soak(tools::ProgramCommand app, std::function<int()>& chosen);
void add_sparse(tools::ProgramCommand app, std::function<int()>& chosen);
void add_sweep(tools::ProgramCommand app, std::function<int()>& chosen);
void add_throughput(tools::ProgramCommand app, std::function<int()>& chosen);
void add_views(tools::ProgramCommand app, std::function<int()>& chosen);
void add_workers(tools::ProgramCommand app, std::function<int()>& chosen);

}  // namespace gyre::bench
