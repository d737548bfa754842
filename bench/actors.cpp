// gyre-bench actors: messages between actors, and what the host's round trip costs where actors send.
#include <fmt/format.h>
#include <bench/actors/ping.official.hpp>
#include <bench/actors/talk.official.hpp>
#include <gyre/gyre.hpp>
#include <gyre_bench_actors_sources.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "actors/ping.hpp"
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
  uint32_t floods = 100'000, mass_floods = 1'000'000;
  uint32_t tallies = 8192;
  std::string json_file;
};

ActorSet actors_that_do_not_send() { return ActorSet::of<Ping, Tally>(gyre_bench_actors::sources); }
ActorSet actors_that_send() { return ActorSet::of<Ping, Tally, Talker, Sender>(gyre_bench_actors::sources); }
ActorSet actors_that_ask() { return ActorSet::of<Ping, Inquirer>(gyre_bench_actors::sources); }
ActorSet actors_that_tell_the_host() { return ActorSet::of<Reporter>(gyre_bench_actors::sources); }
ActorSet actors_that_send_many() { return ActorSet::of<Tally, MassSender>(gyre_bench_actors::sources); }

// Between two asks for what actors do meanwhile: asks are handled by the workers that are measured.
constexpr auto between_asks = std::chrono::milliseconds(2);

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

// Tells an actor to begin messages to and fro, and waits until it has the last of them, whose value must be
// `expected`. Returns the nanoseconds that it measured.
template <class First>
double measure_to_and_fro(Client& client, std::chrono::nanoseconds timeout, Address<First> first,
                          uint64_t other, uint32_t passes, uint64_t expected) {
  const auto asked = [&](bool time) {
    const auto reply =
        client.ask<PassedRequest>(first, [&](PassedRequest::Builder request) { request.setTime(time); })
            .get();
    if (!reply) wrong("an ask failed: " + reply.error().message());
    return reply.value()->getValue();
  };
  const auto told = client.tell<Talk>(first, [&](Talk::Builder talk) {
    talk.setOther(uint32_t(other));
    talk.setPasses(passes);
  });
  if (!told) wrong("a first message was refused: " + told.error().message());
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  uint64_t value = 0;
  while ((value = asked(false)) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw Error(
          fmt::format("sending {} messages to and fro: they took longer than --timeout {} ms, or one is lost",
                      passes, std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count()));
    }
    std::this_thread::sleep_for(between_asks);
  }
  if (value != expected) wrong("a message between actors is wrong");
  return double(asked(true));
}
// Nanoseconds from one handler to the next, to and fro between two workers, or within one.
double measure_passes(const ActorsSettings& settings, bool within_one) {
  const Options& options = settings.plan.options;
  Runtime runtime = Runtime::launch(actors_that_send(), options);
  Client client = runtime.client();
  const Address<Talker> first{0}, second{within_one ? options.workers : uint64_t(1)};
  const uint32_t passes = settings.passes / 2 * 2;  // the last one comes to the first talker
  uint32_t expected = 1;
  for (uint32_t n = 0; n < passes; ++n) expected = passed_value(expected);
  const auto told =
      client.tell<Talk>(second, [&](Talk::Builder talk) { talk.setOther(uint32_t(first.key)); });
  // Once it answers it knows the other.
  if (!told || !client.ask<PassedRequest>(second, [](PassedRequest::Builder) {}).get())
    wrong("a first message was refused");
  const double ns = measure_to_and_fro(client, options.timeout, first, second.key, passes, expected) / passes;
  end(runtime, settings.plan);
  return ns;
}
// Nanoseconds of an ask to an actor of another worker: from its handler to the next, when it is answered.
double measure_asks(const ActorsSettings& settings) {
  const Options& options = settings.plan.options;
  Runtime runtime = Runtime::launch(actors_that_ask(), options);
  Client client = runtime.client();
  const uint32_t asks = settings.passes / 2;
  uint64_t expected = 1;
  for (uint32_t n = 0; n < asks; ++n) expected = ping_answer(expected);
  const double ns =
      measure_to_and_fro(client, options.timeout, Address<Inquirer>{0}, 1, asks, expected) / asks;
  end(runtime, settings.plan);
  return ns;
}

// An actor tells the host, and the host tells it the answer, again and again.
struct HostPasses {
  double ns;                    // from handler to handler, by the engine's clock: the mean
  std::vector<double> gaps_ns;  // from one message at the host to the next, by the host's clock
};
HostPasses measure_host_passes(const ActorsSettings& settings) {
  const Options& options = settings.plan.options;
  Runtime runtime = Runtime::launch(actors_that_tell_the_host(), options);
  Client client = runtime.client();
  const uint32_t passes = settings.passes / 2;
  HostPasses measured{0, {}};
  measured.gaps_ns.reserve(passes);
  std::chrono::steady_clock::time_point last{};
  runtime.on<Pass>([&](const FromActor& from, Pass::Reader in) {
    const auto now = std::chrono::steady_clock::now();
    if (last != std::chrono::steady_clock::time_point{})
      measured.gaps_ns.push_back(std::chrono::duration<double, std::nano>(now - last).count());
    last = now;
    // One that is refused is missed: the last does not come.
    (void)client.tell<Pass>(from.address<Reporter>(), [&](Pass::Builder answer) {
      answer.setLeft(in.getLeft());
      answer.setValue(passed_value(in.getValue()));
    });
  });
  uint32_t expected = 1;
  for (uint32_t n = 0; n < passes; ++n) expected = passed_value(expected);
  measured.ns =
      measure_to_and_fro(client, options.timeout, Address<Reporter>{0}, 0, passes, expected) / passes;
  end(runtime, settings.plan);
  return measured;
}

// As many senders as workers, each telling tallies numbers.
struct Flooding {
  const char* name;
  uint32_t floods;            // messages of each sender to tallies
  uint32_t at_once;           // of them by each call of the handler, which tells itself to go on
  std::vector<double> rates;  // messages a second, one a round

  // Each sender's messages to itself count as well.
  uint64_t messages(uint32_t workers) const { return (floods + uint64_t(floods - 1) / at_once) * workers; }
};
// Messages a second; every tally's number and sum are checked.
template <class From>
double measure_floods(const ActorsSettings& settings, const ActorSet& actors, const Flooding& flooding) {
  const Options& options = settings.plan.options;
  Runtime runtime = Runtime::launch(actors, options);
  Client client = runtime.client();
  std::vector<uint64_t> messages(settings.tallies), sums(settings.tallies);
  const auto number_of = [&](uint32_t sender, uint32_t n) { return (uint64_t(sender) << 32) + n; };
  for (uint32_t sender = 0; sender < options.workers; ++sender) {
    for (uint32_t n = 0; n < flooding.floods; ++n) {
      const uint64_t number = number_of(sender, n), tally = tally_of(number, settings.tallies);
      ++messages[tally];
      sums[tally] += number;
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t sender = 0; sender < options.workers; ++sender) {
    const auto told = client.tell<Flood>(Address<From>{sender}, [&](Flood::Builder flood) {
      flood.setNumbers(flooding.floods);
      flood.setTallies(settings.tallies);
    });
    if (!told) wrong("a first message was refused: " + told.error().message());
  }
  const auto asked = [&](bool sum) {
    constexpr size_t at_once = 1024;
    std::vector<uint64_t> values;
    std::vector<Future<Reply<Counted>>> futures;
    while (values.size() < settings.tallies) {
      futures.resize(std::min(at_once, settings.tallies - values.size()));
      client.ask_many<CountedRequest>([&](size_t i) { return Address<Tally>{values.size() + i}; }, futures,
                                      [&](size_t, CountedRequest::Builder request) { request.setSum(sum); });
      for (auto& future : futures) {
        const auto reply = std::move(future).get();
        if (!reply) wrong("an ask failed: " + reply.error().message());
        values.push_back(reply.value()->getValue());
      }
    }
    return values;
  };
  const auto deadline = begin + options.timeout;
  for (std::vector<uint64_t> have; (have = asked(false)) != messages;) {
    for (uint64_t n = 0; n < settings.tallies; ++n) {
      if (have[n] > messages[n]) wrong("a message came twice");
    }
    if (std::chrono::steady_clock::now() > deadline) {
      throw Error(
          fmt::format("sending {} messages a worker: they took longer than --timeout {} ms, or some are lost",
                      flooding.floods, options.timeout.count()));
    }
    std::this_thread::sleep_for(between_asks);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (asked(true) != sums) wrong("a tally's sum is wrong");
  end(runtime, settings.plan);
  return double(flooding.messages(options.workers)) / seconds;
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
  std::vector<double> between, within, asks, host_passes, gaps;
  Flooding one{"one message a call of the handler", settings.floods, 1, {}};
  Flooding many{"31 messages a call", settings.mass_floods, 31, {}};
  const std::vector<std::function<Row()>> cases = {
      [&] { return measure_host(plan, actors_that_do_not_send(), "no actor sends"); },
      [&] { return measure_host(plan, actors_that_send(), "actors send"); },
  };
  Rows rows("no actor sends");
  const bool complete = measure_interleaved(rows, settings.rounds, cases);
  for (uint32_t round = 0; complete && round < settings.rounds && !tools::interrupt_requested(); ++round) {
    between.push_back(measure_passes(settings, false));
    within.push_back(measure_passes(settings, true));
    asks.push_back(measure_asks(settings));
    const HostPasses passes = measure_host_passes(settings);
    host_passes.push_back(passes.ns);
    gaps.insert(gaps.end(), passes.gaps_ns.begin(), passes.gaps_ns.end());
    one.rates.push_back(measure_floods<Sender>(settings, actors_that_send(), one));
    many.rates.push_back(measure_floods<MassSender>(settings, actors_that_send_many(), many));
  }
  rows.print(out);
  if (many.rates.size() != settings.rounds) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  fmt::print(out, "\nmessages between actors, each checked; medians of the rounds\n");
  std::sort(gaps.begin(), gaps.end());
  const auto quantile = [&](double part) {
    return gaps.empty() ? 0.0 : gaps[size_t(part * double(gaps.size() - 1))];
  };
  fmt::print(out, "{:<46} {:>10.0f} ns\n{:<46} {:>10.0f} ns\n{:<46} {:>10.0f} ns\n",
             "from one worker to another, handler to handler", median(between),
             "to an actor of the same worker", median(within), "an ask to another worker, and its reply",
             median(asks));
  fmt::print(out, "{:<46} {:>10.0f} ns; at the host p50 {:.0f}, p99 {:.0f}, p99.9 {:.0f} ns\n",
             "a message to the host, and its answer", median(host_passes), quantile(0.5), quantile(0.99),
             quantile(0.999));
  tools::Json rates = tools::Json::array();
  for (const Flooding& each : {one, many}) {
    fmt::print(out, "{:<46} {:>10.3f} million a second\n", each.name, median(each.rates) * 1e-6);
    rates.push_back({{"name", each.name},
                     {"at_once", each.at_once},
                     {"messages", each.messages(plan.options.workers)},
                     {"messages_per_s", each.rates}});
  }
  tools::Json about = to_json(machine);
  about["clock_ns"] = clock_cost_ns();
  about["rounds"] = settings.rounds;
  tools::write_json(
      settings.json_file,
      {{"benchmark", "actors"},
       {"machine", about},
       {"reference", rows.reference()},
       {"rows", rows.to_json()},
       {"passes", settings.passes / 2 * 2},
       {"between_workers_ns", between},
       {"within_a_worker_ns", within},
       {"asks_ns", asks},
       {"host_passes_ns", host_passes},
       {"host_gaps_ns", {{"p50", quantile(0.5)}, {"p99", quantile(0.99)}, {"p99_9", quantile(0.999)}}},
       {"tallies", settings.tallies},
       {"rates", rates}});
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
  command
      .add_option(
          "--passes", settings->passes,
          "messages to and fro between two actors; half as many asks, and messages to the host and back")
      .range(2u, 1'000'000'000u)
      .type_name("N")
      .show_default();
  command
      .add_option("--floods", settings->floods, "messages of each worker's sender to tallies, one at a time")
      .range(1u, 1'000'000'000u)
      .type_name("N")
      .show_default();
  command.add_option("--mass-floods", settings->mass_floods, "the same, 31 at a time")
      .range(1u, 1'000'000'000u)
      .type_name("N")
      .show_default();
  command.add_option("--tallies", settings->tallies, "actors that are told numbers")
      .range(1u, 1'000'000u)
      .type_name("N")
      .show_default();
  command.add_option("--interleave", settings->rounds, "rounds of all rows, interleaved")
      .range(1u, 1000u)
      .type_name("R")
      .show_default();
  command.footer(
      "Checked: every reply; the last message or reply to and fro, which all before it determine; each "
      "tally's number "
      "and sum. The asks for the tallies' numbers are part of the time: let floods be many.\n"
      "Exit: 0 every message right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return run_actors(*settings); }; });
}

}  // namespace gyre::bench
