// gyre: the command-line tool. One file a subcommand.
#include "command_line.hpp"
#include "common_options.hpp"
#include "subcommands.hpp"

int main(int argc, char** argv) {
  using namespace gyre::tools;
  Program program("Gyre: actors that live on a GPU, and on CPU threads where there is none.", "gyre");
  std::function<int()> chosen;
  add_validate(program.command(), chosen);
  add_doctor(program.command(), chosen);
  add_inspect(program.command(), chosen);
  add_errors(program.command(), chosen);
  add_replay(program.command(), chosen);
  add_stat(program.command(), chosen);
  add_actors(program.command(), chosen);
  if (const auto exit_code = program.parse(argc, argv)) return *exit_code;
  return run_reporting_errors(chosen);
}
