// The subcommands of gyre: each adds itself to the command line, and sets `chosen` when it is the one called.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace gyre::tools {

void add_doctor(CLI::App& app, std::function<int()>& chosen);
void add_errors(CLI::App& app, std::function<int()>& chosen);
void add_inspect(CLI::App& app, std::function<int()>& chosen);
void add_stat(CLI::App& app, std::function<int()>& chosen);
void add_validate(CLI::App& app, std::function<int()>& chosen);

}  // namespace gyre::tools
