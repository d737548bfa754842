// gyre-bench actors: messages between actors, and what the host's round trip costs where actors send.
#include <fmt/format.h>
#include <bench/actors/ping.official.hpp>
#include <bench/actors/talk.official.hpp>
#include <gyre/gyre.hpp>
#include <gyre_bench_actors_sources.hpp>

#include <algorithm>
#include <memory>
#include <vector>

#include "actors/talk.hpp"
#include "affinity.hpp"
#include "common_options.hpp"
#include "machine.hpp"
#include "rows.hpp"
#include "subcommands.hpp"

namespace gyre::bench {

namespace {

using namespace gyre_bench;

struct ActorsSettings {
  Plan plan;
  uint32_t rounds = 1;
  uint32_t passes = 100'000;
  uint32_t floods = 100'000;
  uint32_t counters = 1024;
  std::string json_file;
};

ActorSet actors_that_do_not_send() { return ActorSet::of<Ping, Counter>(gyre_bench_actors::sources); }
ActorSet actors_that_send() {
  return ActorSet::of<Ping, Counter, Talker, Sender>(gyre_bench_actors::sources);
}

[[noreturn]] void wrong(std::string_view what) {
  throw Error(fmt::format("measuring messages between actors: {}; please report it", what));
}
void end(Runtime& runtime, const Plan& plan) {
  const Termination end = runtime.terminate(plan.options.timeout);
  if (!end.books.balanced() || end.worker_stuck || end.books.mail.lost != 0) {
    wrong("the books do not balance, or a worker is stuck");
  }
}

// The host's round trips; each reply is checked.
Row measure_host(const Plan& plan, const ActorSet& actors, const char* name) {
  Row row{.name = name, .size = 64};
  row.wait = gyre::name(plan.options.wait);
  Runtime runtime = Runtime::launch(actors, plan.options);
  row.transport = gyre::name(runtime.transport());
  Client client = runtime.client();
  const Pinned here(pthread_self(), plan.own_cpu);
  uint64_t value = 0;
  row.record(measure(
      plan, [&] { ++value; },
      [&] {
        const auto reply =
            client.ask<PingRequest>(Address<Ping>{}, [&](PingRequest::Builder ping) { ping.setValue(value); })
                .get();
        if (!reply || reply.value()->getValue() != ping_answer(value)) wrong("a reply is wrong");
      }));
  end(runtime, plan);
  return row;
}

// Nanoseconds from one handler to the next, to and fro between two workers, or within one.
double measure_passes(const ActorsSettings& settings, bool within_one) {
  const Options& options = settings.plan.options;
  Runtime runtime = Runtime::launch(actors_that_send(), options);
  Client client = runtime.client();
  const Address<Talker> first{0}, second{within_one ? options.workers : uint64_t(1)};
  const uint32_t passes = settings.passes / 2 * 2;  // the last one comes to the first talker
  uint64_t expected = 1;
  for (uint32_t n = 0; n < passes; ++n) expected = passed_value(expected);
  const auto told = client.tell<Pass>(first, [&](Pass::Builder pass) {
    pass.setOther(second.key);
    pass.setLeft(passes);
    pass.setValue(1);
  });
  if (!told) wrong("the first message was refused");
  const auto deadline = std::chrono::steady_clock::now() + options.timeout;
  for (;;) {
    const auto reply = client.ask<PassedRequest>(first, [](PassedRequest::Builder) {}).get();
    if (!reply) wrong("an ask failed");
    if (reply.value()->getValue() != 0) {
      if (reply.value()->getValue() != expected) wrong("a message between actors is wrong");
      const double ns = double(reply.value()->getNs()) / passes;
      end(runtime, settings.plan);
      return ns;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      throw Error(fmt::format("passing {} messages: they took longer than --timeout {} ms, or one is lost",
                              passes, options.timeout.count()));
    }
  }
}

struct FloodRate {
  uint64_t messages;
  double seconds;
};
// Messages a second of as many senders as workers; every counter's number and sum are checked.
FloodRate measure_floods(const ActorsSettings& settings) {
  const Options& options = settings.plan.options;
  Runtime runtime = Runtime::launch(actors_that_send(), options);
  Client client = runtime.client();
  std::vector<uint64_t> messages(settings.counters), sums(settings.counters);
  const auto number_of = [&](uint32_t sender, uint32_t n) { return (uint64_t(sender) << 32) + n; };
  for (uint32_t sender = 0; sender < options.workers; ++sender) {
    for (uint32_t n = 0; n < settings.floods; ++n) {
      const uint64_t number = number_of(sender, n), counter = counter_of(number, settings.counters);
      ++messages[counter];
      sums[counter] += number;
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t sender = 0; sender < options.workers; ++sender) {
    const auto told = client.tell<Flood>(Address<Sender>{sender}, [&](Flood::Builder flood) {
      flood.setLeft(settings.floods - 1);
      flood.setNumber(number_of(sender, 0));
      flood.setCounters(settings.counters);
    });
    if (!told) wrong("a first message was refused");
  }
  const auto asked = [&](uint64_t counter, bool sum) {
    const auto reply = client
                           .ask<CountedRequest>(Address<Counter>{counter},
                                                [&](CountedRequest::Builder request) { request.setSum(sum); })
                           .get();
    if (!reply) wrong("an ask failed");
    return reply.value()->getValue();
  };
  const auto deadline = begin + options.timeout;
  for (uint64_t counter = 0; counter < settings.counters;) {
    const uint64_t have = asked(counter, false);
    if (have == messages[counter]) {
      ++counter;
    } else if (have > messages[counter]) {
      wrong("a message came twice");
    } else if (std::chrono::steady_clock::now() > deadline) {
      throw Error(
          fmt::format("sending {} messages a worker: they took longer than --timeout {} ms, or some are lost",
                      settings.floods, options.timeout.count()));
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (uint64_t counter = 0; counter < settings.counters; ++counter) {
    if (asked(counter, true) != sums[counter]) wrong("a counter's sum is wrong");
  }
  end(runtime, settings.plan);
  // Each sender's messages to itself count as well.
  return {(2 * uint64_t(settings.floods) - 1) * options.workers, seconds};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run_actors(ActorsSettings& settings) {
  Plan& plan = settings.plan;
  if (std::string problems = plan.options.problems(); !problems.empty() || plan.options.workers < 2) {
    if (problems.empty()) problems = "  --workers 1: two workers are needed to send from one to the other\n";
    throw BadOptions("measuring messages between actors: these options are wrong:\n" + problems);
  }
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Machine machine = machine_of(plan.options);
  plan.options.engine = machine.engine;
  plan.options.transport = machine.transport;
  print(out, machine);
  fmt::print(out,
             "the host's round trips: {} messages a row and round after {} uncounted, one in flight\n"
             "{} round{} of all rows interleaved, each launched anew; ratios are to the first row\n"
             "not measured: bare mailboxes, which gyre-bench mailbox has\n",
             plan.messages, plan.warm_up(), settings.rounds, settings.rounds == 1 ? "" : "s");
  std::vector<double> between, within, rates;
  uint64_t messages = 0;
  const std::vector<std::function<Row()>> cases = {
      [&] { return measure_host(plan, actors_that_do_not_send(), "no actor sends"); },
      [&] { return measure_host(plan, actors_that_send(), "actors send"); },
  };
  Rows rows("no actor sends");
  const bool complete = measure_interleaved(rows, settings.rounds, cases);
  for (uint32_t round = 0; complete && round < settings.rounds && !tools::interrupt_requested(); ++round) {
    between.push_back(measure_passes(settings, false));
    within.push_back(measure_passes(settings, true));
    const FloodRate flood = measure_floods(settings);
    messages = flood.messages;
    rates.push_back(double(messages) / flood.seconds);
  }
  rows.print(out);
  if (rates.size() != settings.rounds) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  fmt::print(out,
             "\nmessages between actors, each checked; medians of the rounds\n"
             "{:<44} {:>12.0f} ns\n{:<44} {:>12.0f} ns\n{:<44} {:>12.3f} million a second\n",
             "from one worker to another, handler to handler", median(between),
             "to an actor of the same worker", median(within), "one send a handler, and one to itself",
             median(rates) * 1e-6);
  tools::Json about = to_json(machine);
  about["clock_ns"] = clock_cost_ns();
  about["rounds"] = settings.rounds;
  tools::write_json(settings.json_file, {{"benchmark", "actors"},
                                         {"machine", about},
                                         {"reference", rows.reference()},
                                         {"rows", rows.to_json()},
                                         {"passes", settings.passes / 2 * 2},
                                         {"between_workers_ns", between},
                                         {"within_a_worker_ns", within},
                                         {"messages", messages},
                                         {"messages_per_s", rates}});
  return tools::all_passed;
}

}  // namespace

void add_actors(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<ActorsSettings>();
  Options& options = settings->plan.options;
  options.wait = WaitPolicy::spin;
  options.workers = 2;
  options.timeout = std::chrono::minutes(1);
  const tools::ProgramCommand command =
      app.add_subcommand("actors", "Messages between actors, and the host's round trip where actors send.");
  tools::add_common_options(command, options, settings->json_file);
  command
      .add_option("--messages", settings->plan.messages,
                  "round trips of the host, a row and round; a tenth more warm up")
      .range(uint64_t(1), uint64_t(100'000'000))
      .type_name("N")
      .show_default();
  command.add_option("--passes", settings->passes, "messages to and fro between two actors")
      .range(2u, 1'000'000'000u)
      .type_name("N")
      .show_default();
  command.add_option("--floods", settings->floods, "messages of each worker's sender to counters")
      .range(1u, 1'000'000'000u)
      .type_name("N")
      .show_default();
  command.add_option("--counters", settings->counters, "actors that they are sent to")
      .range(1u, 1'000'000u)
      .type_name("N")
      .show_default();
  command.add_option("--interleave", settings->rounds, "rounds of all rows, interleaved")
      .range(1u, 1000u)
      .type_name("R")
      .show_default();
  command.footer(
      "Checked: every reply; the last message to and fro, which all before it determine; each counter's "
      "number "
      "and sum. The asks for the counters' numbers are part of the time: let floods be many.\n"
      "Exit: 0 every message right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return run_actors(*settings); }; });
}

}  // namespace gyre::bench
