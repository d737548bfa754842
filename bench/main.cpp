// gyre-bench: the measuring tool. One file a subcommand.
#include <CLI/CLI.hpp>

#include "common_options.hpp"
#include "subcommands.hpp"

int main(int argc, char** argv) {
  using namespace gyre::tools;
  CLI::App app{"Measures Gyre beside its alternatives, in one run.", "gyre-bench"};
  app.require_subcommand(1);
  std::function<int()> chosen;
  gyre::bench::add_rtt(app, chosen);
  gyre::bench::add_api(app, chosen);
  gyre::bench::add_frames(app, chosen);
  gyre::bench::add_idle(app, chosen);
  gyre::bench::add_launch(app, chosen);
  gyre::bench::add_launch_samples(app, chosen);
  gyre::bench::add_payload(app, chosen);
  gyre::bench::add_soak(app, chosen);
  gyre::bench::add_sweep(app, chosen);
  gyre::bench::add_throughput(app, chosen);
  gyre::bench::add_views(app, chosen);
  gyre::bench::add_workers(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? all_passed : bad_usage;
  }
  return run_reporting_errors(chosen);
}
