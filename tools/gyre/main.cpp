// gyre: the command-line tool. One file a subcommand.
#include <CLI/CLI.hpp>

#include "common_options.hpp"
#include "subcommands.hpp"

int main(int argc, char** argv) {
  using namespace gyre::tools;
  CLI::App app{"Gyre: actors that live on a GPU, and on CPU threads where there is none.", "gyre"};
  app.require_subcommand(1);
  std::function<int()> chosen;
  add_validate(app, chosen);
  add_doctor(app, chosen);
  add_inspect(app, chosen);
  add_errors(app, chosen);
  add_stat(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? all_passed : bad_usage;
  }
  return run_reporting_errors(chosen);
}
