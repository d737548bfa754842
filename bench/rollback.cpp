// gyre-bench rollback: what rollback_on_error costs, beside the same actor without it.
#include <fmt/format.h>
#include <bench/actors/ping.official.hpp>
#include <gyre/gyre.hpp>
#include <gyre_bench_actors_sources.hpp>

#include <memory>

#include "actors/kept.hpp"
#include "affinity.hpp"
#include "common_options.hpp"
#include "machine.hpp"
#include "rows.hpp"
#include "subcommands.hpp"

namespace gyre::bench {

namespace {

using gyre_bench::Kept;
using gyre_bench::PingRequest;

struct RollbackSettings {
  Plan plan;
  uint32_t rounds = 1;
  std::string json_file;
};

// Round trips of messages that are well, or that all fail; each reply is held against what the state has to
// be.
template <class Actor, bool rolls_back>
Row measure_kept(const Plan& plan, const char* name, bool fails) {
  Row row{.name = name, .size = 16, .remark = fails ? "every message ends in an error" : ""};
  row.wait = gyre::name(plan.options.wait);
  Runtime runtime = Runtime::launch(ActorSet::of<Actor>(gyre_bench_actors::sources), plan.options);
  row.transport = gyre::name(runtime.transport());
  Client client = runtime.client();
  const Pinned here(pthread_self(), plan.own_cpu);
  uint64_t value = 0, sum = 0;
  const auto ask = [&](uint64_t number) {
    return client
        .ask<PingRequest>(Address<Actor>{}, [&](PingRequest::Builder ping) { ping.setValue(number); })
        .get();
  };
  const auto expect = [&](bool as_it_should_be) {
    if (!as_it_should_be) throw Error(fmt::format("{}: a wrong reply to {}; please report it", name, value));
  };
  row.record(measure(
      plan, [&] { value += 2; },
      [&] {
        const auto reply = ask(fails ? value + 1 : value);
        if (fails) {
          expect(!reply && reply.error().status == Status::handler_failed);
          sum += rolls_back ? 0 : value + 1;
        } else {
          expect(reply && reply.value()->getValue() == (sum += value));
        }
      }));
  const auto last = ask(0);
  expect(last && last.value()->getValue() == sum);
  const Termination end = runtime.terminate(plan.options.timeout);
  if (!end.books.balanced() || end.worker_stuck) {
    throw Error(fmt::format(
        "ending the {} row: the books do not balance, or a worker is stuck; please report it", name));
  }
  return row;
}

int rollback(RollbackSettings& settings) {
  Plan& plan = settings.plan;
  if (const std::string problems = plan.options.problems(); !problems.empty())
    throw BadOptions("measuring rollback: these options are wrong:\n" + problems);
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Machine machine = machine_of(plan.options);
  plan.options.engine = machine.engine;
  plan.options.transport = machine.transport;
  print(out, machine);
  fmt::print(
      out,
      "{} messages a row and round after {} uncounted, one in flight, to one actor with 64 or 1,024 bytes "
      "of state; undone: it says rollback_on_error\n"
      "{} round{} of all rows interleaved, each launched anew; ratios are to the first row\n"
      "not measured: streams, actors that take turns\n",
      plan.messages, plan.warm_up(), settings.rounds, settings.rounds == 1 ? "" : "s");
  const std::vector<std::function<Row()>> cases = {
      [&] { return measure_kept<gyre_bench::Kept64, false>(plan, "64", false); },
      [&] { return measure_kept<gyre_bench::Undone64, true>(plan, "64 undone", false); },
      [&] { return measure_kept<gyre_bench::Kept1024, false>(plan, "1024", false); },
      [&] { return measure_kept<gyre_bench::Undone1024, true>(plan, "1024 undone", false); },
      [&] { return measure_kept<gyre_bench::Kept64, false>(plan, "64 fails", true); },
      [&] { return measure_kept<gyre_bench::Undone64, true>(plan, "64 undone, fails", true); },
      [&] { return measure_kept<gyre_bench::Kept1024, false>(plan, "1024 fails", true); },
      [&] { return measure_kept<gyre_bench::Undone1024, true>(plan, "1024 undone, fails", true); },
  };
  Rows rows("64");
  const bool complete = measure_interleaved(rows, settings.rounds, cases);
  rows.print(out);
  tools::Json about = to_json(machine);
  about["clock_ns"] = clock_cost_ns();
  about["rounds"] = settings.rounds;
  tools::write_json(settings.json_file, {{"benchmark", "rollback"},
                                         {"machine", about},
                                         {"reference", rows.reference()},
                                         {"rows", rows.to_json()}});
  if (!complete) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_rollback(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<RollbackSettings>();
  Options& options = settings->plan.options;
  options.wait = WaitPolicy::spin;
  const tools::ProgramCommand command =
      app.add_subcommand("rollback", "What rollback_on_error costs, beside the same actor without it.");
  tools::add_common_options(command, options, settings->json_file);
  command
      .add_option("--messages", settings->plan.messages, "messages a row and round; a tenth more warm up")
      .range(uint64_t(1), uint64_t(100'000'000))
      .type_name("N")
      .show_default();
  command.add_option("--interleave", settings->rounds, "rounds of all rows, interleaved")
      .range(1u, 1000u)
      .type_name("R")
      .show_default();
  command.footer(
      "Rows: states of 64 and 1,024 bytes, each without and with a copy before every message; and the same "
      "where every message fails.\n"
      "Exit: 0 every reply right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return rollback(*settings); }; });
}

}  // namespace gyre::bench
