// gyre-bench: the measuring tool. One file a subcommand.
#include "command_line.hpp"
#include "common_options.hpp"
#include "subcommands.hpp"

int main(int argc, char** argv) {
  using namespace gyre::tools;
  Program program("Measures Gyre beside its alternatives, in one run.", "gyre-bench");
  std::function<int()> chosen;
  gyre::bench::add_rtt(program.command(), chosen);
  gyre::bench::add_actors(program.command(), chosen);
  gyre::bench::add_api(program.command(), chosen);
  gyre::bench::add_counters(program.command(), chosen);
  gyre::bench::add_frames(program.command(), chosen);
  gyre::bench::add_idle(program.command(), chosen);
  gyre::bench::add_inference(program.command(), chosen);
  gyre::bench::add_launch(program.command(), chosen);
  gyre::bench::add_launch_samples(program.command(), chosen);
  gyre::bench::add_mailbox(program.command(), chosen);
  gyre::bench::add_payload(program.command(), chosen);
  gyre::bench::add_rollback(program.command(), chosen);
  gyre::bench::add_savina(program.command(), chosen);
  gyre::bench::add_soak(program.command(), chosen);
  gyre::bench::add_sparse(program.command(), chosen);
  gyre::bench::add_sweep(program.command(), chosen);
  gyre::bench::add_throughput(program.command(), chosen);
  gyre::bench::add_views(program.command(), chosen);
  gyre::bench::add_workers(program.command(), chosen);
  if (const auto exit_code = program.parse(argc, argv)) return *exit_code;
  return run_reporting_errors(chosen);
}
