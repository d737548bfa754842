// gyre-bench inference: a small neural network asked by actor, beside a CUDA graph of the same layers.
#include <fmt/format.h>
#include <inference_sources.hpp>

#include <algorithm>
#include <barrier>
#include <exception>
#include <functional>
#include <memory>

#include <inference/mlp.official.hpp>

#include "affinity.hpp"
#include "common_options.hpp"
#include "gyre_run.hpp"
#include "machine.hpp"
#include "measure.hpp"
#include "network.hpp"
#include "rows.hpp"
#include "subcommands.hpp"
#include "threads.hpp"

#if defined(GYRE_WITH_CUDA)
#include "baselines/network_graph.hpp"
#endif

namespace gyre::bench {

namespace {

using ::inference::InferRequest;
using ::inference::Mlp;
using ::inference::UseWeights;

struct InferenceSettings {
  Plan plan;
  std::vector<uint32_t> rows = {1, 4, 16};
  std::vector<uint32_t> threads = {1, 16};
  uint32_t rounds = 1;
  std::string json_file;
};

Row row_of(const char* name, const Plan& plan, uint32_t rows, uint32_t threads) {
  Row row{.name = name, .size = rows * Mlp::features * uint32_t(sizeof(float)), .workers = threads};
  row.work = Work::inference;
  row.wait = gyre::name(plan.options.wait);
  return row;
}

// Measures round trips in `threads` threads at once. `make(t)` is called in thread t and returns what runs
// one round trip of a NetworkMessage there.
template <class Make>
void measure_together(const Plan& plan, Row& row, uint32_t rows, std::span<const float> parameters,
                      Make&& make) {
  Plan part = plan;
  part.messages = (plan.messages + row.workers - 1) / row.workers;
  std::vector<std::vector<uint64_t>> samples(row.workers);
  std::vector<decltype(make(0u))> made(row.workers);
  // Unloading a kernel waits for those of other threads, so it follows when all have measured.
  std::barrier measured{std::ptrdiff_t(row.workers)};
  (void)run_together(
      row.workers,
      [&](uint32_t t) {
        try {
          made[t] = make(t);
        } catch (...) {
          measured.arrive_and_drop();
          throw;
        }
      },
      [&](uint32_t t) {
        std::exception_ptr failure;
        try {
          const Pinned here(pthread_self(), row.workers == 1 ? part.own_cpu : std::nullopt);
          NetworkMessage message(row.name, parameters, rows);
          samples[t] = measure(
              part, [&] { message.next(); }, [&] { made[t](message); });
        } catch (...) {
          failure = std::current_exception();
        }
        measured.arrive_and_wait();
        made[t] = nullptr;  // in the thread that made it: a context is current there
        if (failure) std::rethrow_exception(failure);
      });
  std::vector<uint64_t> all;
  for (const auto& some : samples) all.insert(all.end(), some.begin(), some.end());
  row.record(std::move(all));
}

template <class Reply>
void expect_reply(const NetworkMessage& message, const Reply& reply) {
  if (!reply) throw Error("gyre: " + reply.error().message(), reply.error().status);
  message.expect(reply.value()->getScores());
}

Row measure_gyre(const Plan& plan, std::span<const float> parameters, uint32_t rows, uint32_t threads) {
  Row row = row_of("gyre", plan, rows, threads);
  row.remark = "typed client API";
  Plan with = plan;
  with.options.workers = threads;
  run_on_gyre(ActorSet::of<Mlp>(::inference::sources), with.options, row.name, [&](Runtime& runtime) {
    row.transport = gyre::name(runtime.transport());
    auto weights = runtime.allocate<float>(MemoryKind::device, parameters.size());
    weights.write(parameters);
    measure_together(
        with, row, rows, parameters, [&](uint32_t t) -> std::function<void(const NetworkMessage&)> {
          Client client = runtime.client();
          const Address<Mlp> network{.key = t};
          const auto used =
              client
                  .ask<UseWeights>(network,
                                   [&](UseWeights::Builder request) { weights.set(request.initWeights()); })
                  .get();
          if (!used) throw Error("gyre: " + used.error().message(), used.error().status);
          // A reply that fits a slot needs no block of the arena.
          AskOptions reply_room;
          reply_room.max_reply_bytes = 16 + rows * Mlp::scores * uint32_t(sizeof(float));
          return [client, network, reply_room](const NetworkMessage& message) mutable {
            const std::span<const float> features = message.features();
            const auto fill = [features](InferRequest::Builder request) {
              auto list = request.initFeatures(uint32_t(features.size()));
              for (uint32_t i = 0; i < features.size(); ++i) list.set(i, features[i]);
            };
            expect_reply(message, client.ask<InferRequest>(network, fill, reply_room).get());
          };
        });
  });
  return row;
}

#if defined(GYRE_WITH_CUDA)
Row measure_graph(const Plan& plan, std::span<const float> parameters, uint32_t rows, uint32_t threads) {
  Row row = row_of("graph-copies-sync", plan, rows, threads);
  row.transport = "none";
  row.wait = "driver";
  row.remark = "a graph of a copy in, one kernel, a copy out";
  measure_together(plan, row, rows, parameters, [&](uint32_t) -> std::function<void(const NetworkMessage&)> {
    auto graph = std::make_shared<NetworkGraph>(plan.options.device, parameters, rows, plan.options.block);
    return [graph](const NetworkMessage& message) { graph->round_trip(message); };
  });
  return row;
}
#endif

int inference(InferenceSettings& settings) {
  Plan& plan = settings.plan;
  if (const std::string problems = plan.options.problems(); !problems.empty())
    throw BadOptions("measuring inference: these options are wrong:\n" + problems);
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Machine machine = machine_of(plan.options);
  const bool on_cuda = machine.engine == EngineKind::cuda;
  plan.options.engine = machine.engine;
  plan.options.transport = machine.transport;
  const std::vector<float> parameters = network_parameters();

  print(out, machine);
  fmt::print(
      out,
      "a network of {}-{}-{}-{} units, {} parameters in Float32; blocks of {} threads; a worker, or a "
      "stream, for each thread that asks\n"
      "{} requests a row and round after {} uncounted, one in flight a thread: from before the request "
      "is written until each score has been checked\n"
      "not measured: loading the parameters, networks of other sizes\n",
      Mlp::features, Mlp::first_units, Mlp::second_units, Mlp::scores, parameters.size(), plan.options.block,
      plan.messages, plan.warm_up());
  std::vector<std::function<Row()>> cases;
  for (const uint32_t threads : settings.threads) {
    for (const uint32_t rows : settings.rows) {
      cases.push_back([&, rows, threads] { return measure_gyre(plan, parameters, rows, threads); });
#if defined(GYRE_WITH_CUDA)
      if (on_cuda)
        cases.push_back([&, rows, threads] { return measure_graph(plan, parameters, rows, threads); });
#endif
    }
  }
  Rows rows(on_cuda ? "graph-copies-sync" : "gyre");
  const bool complete = measure_interleaved(rows, settings.rounds, cases);
  rows.print(out);
  tools::Json json_rows = rows.to_json();
  fmt::print(out, "\n{:<19} {:>6} {:>7} {:>14}\n", "row", "bytes", "threads", "requests/s");
  for (size_t i = 0; i < rows.all().size(); ++i) {
    const Row& row = rows.all()[i];
    const double per_s = row.workers * row.summary.messages_per_s();
    json_rows[i]["requests_per_s"] = per_s;
    fmt::print(out, "{:<19} {:>6} {:>7} {:>14.0f}\n", row.name, row.size, row.workers, per_s);
  }
  tools::Json about = to_json(machine);
  about["rounds"] = settings.rounds;
  tools::write_json(
      settings.json_file,
      {{"benchmark", "inference"}, {"machine", about}, {"reference", rows.reference()}, {"rows", json_rows}});
  if (!complete) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_inference(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<InferenceSettings>();
  Options& options = settings->plan.options;
  options.wait = WaitPolicy::spin;
  options.block = 256;
  options.max_reply_bytes = 1024;
  const tools::ProgramCommand command = app.add_subcommand(
      "inference", "A small neural network as an actor, beside a CUDA graph of its layers.");
  tools::add_common_options(command, options, settings->json_file);
  command.remove_option("--workers");
  command.add_option("--batch", settings->rows, "rows of a request, 1 to 16; a row of the table for each")
      .range(1u, Mlp::most_rows)
      .show_default();
  command.add_option("--threads", settings->threads, "threads that ask, each a worker of its own")
      .range(1u, 256u)
      .show_default();
  command.add_option("--messages", settings->plan.messages, "requests a row and round; a tenth more warm up")
      .range(uint64_t(1), uint64_t(100'000'000))
      .type_name("N")
      .show_default();
  command.add_option("--interleave", settings->rounds, "rounds of all rows in turn")
      .range(1u, 1000u)
      .type_name("R")
      .show_default();
  command.footer(
      "Exit: 0 every score right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, "
      "130 interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return inference(*settings); }; });
}

}  // namespace gyre::bench
