// The subcommands of gyre: each adds itself to the command line, and sets `chosen` when it is the one called.
#pragma once

#include <functional>

#include "command_line.hpp"

namespace gyre::tools {

void add_actors(ProgramCommand app, std::function<int()>& chosen);
void add_doctor(ProgramCommand app, std::function<int()>& chosen);
void add_errors(ProgramCommand app, std::function<int()>& chosen);
void add_inspect(ProgramCommand app, std::function<int()>& chosen);
void add_replay(ProgramCommand app, std::function<int()>& chosen);
void add_stat(ProgramCommand app, std::function<int()>& chosen);
void add_validate(ProgramCommand app, std::function<int()>& chosen);

}  // namespace gyre::tools
