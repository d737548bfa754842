// gyre-bench workers: what workers that are idle cost the one that is asked.
#include <fmt/format.h>

#include <memory>

#include "common_options.hpp"
#include "gyre_rows.hpp"
#include "machine.hpp"
#include "rows.hpp"
#include "subcommands.hpp"

#if defined(GYRE_WITH_CUDA)
#include "baselines/raw.hpp"
#endif

namespace gyre::bench {

namespace {

struct WorkersSettings {
  Plan plan;
  std::vector<uint32_t> workers;
  uint32_t size = 64;
  uint32_t rounds = 1;
  std::string json_file;
};

// The p50 of `row` over that of the same row with the fewest workers.
double to_alone(const Rows& rows, const Row& row) {
  const Row* alone = nullptr;
  for (const Row& candidate : rows.all()) {
    if (candidate.name == row.name && (alone == nullptr || candidate.workers < alone->workers))
      alone = &candidate;
  }
  return alone == nullptr || alone->summary.p50_ns == 0
             ? 0
             : double(row.summary.p50_ns) / double(alone->summary.p50_ns);
}

int workers(WorkersSettings& settings) {
  Plan& plan = settings.plan;
  for (const uint32_t workers : settings.workers) {
    plan.options.workers = workers;
    if (const std::string problems = plan.options.problems(); !problems.empty())
      throw BadOptions("measuring beside idle workers: these options are wrong:\n" + problems);
  }
  if (settings.size % 8 != 0 || settings.size < echo_overhead_bytes + 8 ||
      settings.size > plan.options.ring_shape().body_capacity()) {
    throw BadOptions(fmt::format("--size {}: must be a multiple of 8, 32 to {}", settings.size,
                                 plan.options.ring_shape().body_capacity() / 8 * 8));
  }
  plan.options.workers = 1;
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Machine machine = machine_of(plan.options);
  const bool on_cuda = machine.engine == EngineKind::cuda;
  plan.options.engine = machine.engine;
  plan.options.transport = machine.transport;
  if (settings.workers.empty())
    settings.workers = on_cuda ? std::vector<uint32_t>{1, 8, 32, 132} : std::vector{1u, 2u};

  print(out, machine);
  fmt::print(
      out,
      "{} messages a row and round after {} uncounted: worker 0 is asked, one message in flight, the others "
      "idle; {} round{} in turn\n"
      "not measured: several workers asked at once (see throughput)\n",
      plan.messages, plan.warm_up(), settings.rounds, settings.rounds == 1 ? "" : "s");
  std::vector<std::function<Row()>> cases;
  for (const uint32_t workers : settings.workers) {
    Plan with = plan;
    with.options.workers = workers;
    cases.push_back([with, size = settings.size] { return measure_gyre_echo(with, size).row; });
#if defined(GYRE_WITH_CUDA)
    if (on_cuda) cases.push_back([with, size = settings.size] { return measure_raw(with, size); });
#endif
  }
  Rows rows(on_cuda ? "raw" : "gyre");
  const bool complete = measure_interleaved(rows, settings.rounds, cases);
  rows.print(out);
  tools::Json json_rows = rows.to_json();
  fmt::print(out, "\n{:<8} {:>8} {:>14}\n", "row", "workers", "p50/alone");
  for (size_t i = 0; i < rows.all().size(); ++i) {
    const Row& row = rows.all()[i];
    const double ratio = to_alone(rows, row);
    json_rows[i]["p50_to_alone"] = ratio;
    fmt::print(out, "{:<8} {:>8} {:>14.2f}\n", row.name, row.workers, ratio);
  }
  tools::write_json(settings.json_file, {{"benchmark", "workers"},
                                         {"machine", to_json(machine)},
                                         {"reference", rows.reference()},
                                         {"rows", json_rows}});
  if (!complete) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_workers(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<WorkersSettings>();
  Options& options = settings->plan.options;
  options.wait = WaitPolicy::spin;
  const tools::ProgramCommand command =
      app.add_subcommand("workers", "Round-trip latency of one worker beside others that idle.");
  tools::add_common_options(command, options, settings->json_file);
  command.remove_option("--workers");
  command
      .add_option("--workers", settings->workers,
                  "numbers of workers, a set of rows each (default: 1 8 32 132 on CUDA, 1 2 on the CPU)")
      .range(1u, 65535u);
  command.add_option("--messages", settings->plan.messages, "messages a row and round")
      .range(uint64_t(1), uint64_t(100'000'000))
      .type_name("N")
      .show_default();
  command.add_option("--size", settings->size, "bytes of body, a multiple of 8, 32 or more")
      .type_name("BYTES")
      .show_default();
  command.add_option("--interleave", settings->rounds, "rounds of all rows in turn")
      .range(1u, 1000u)
      .type_name("R")
      .show_default();
  command.add_option("--pollers", settings->plan.pollers, "warps that poll in raw's kernel, a worker: 1 or 2")
      .range(1u, 2u)
      .type_name("N")
      .show_default();
  command.footer(
      "Rows: gyre, and on CUDA raw (bare warps that poll as many rings).\n"
      "Exit: 0 every reply right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return workers(*settings); }; });
}

}  // namespace gyre::bench
