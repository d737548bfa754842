// gyre-bench rtt: the time from a request to its checked reply, one message in flight, beside the
// alternatives.
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <memory>
#include <utility>

#include "affinity.hpp"
#include "baselines/boost_spsc.hpp"
#include "baselines/floor.hpp"
#include "common_options.hpp"
#include "echo_message.hpp"
#include "machine.hpp"
#include "measure.hpp"
#include "subcommands.hpp"

#if defined(GYRE_WITH_CUDA)
#include "baselines/launch_sync.hpp"
#include "baselines/raw.hpp"
#endif

namespace gyre::bench {

namespace {

using messages::EchoRequest;

// An EchoRequest's body without its payload: root pointer, sequence, list pointer. The response has the same.
constexpr uint32_t overhead_bytes = 24;
constexpr uint32_t word_bytes = sizeof(uint64_t);

struct Settings {
  Plan plan;
  std::vector<uint32_t> sizes = {64};
  bool pin = false;
  std::string json_file;
};

// Slots that carry bodies of `size` bytes, the smallest.
uint32_t slot_bytes_for(uint32_t size) {
  return (packets_for(size) * uint32_t(sizeof(Packet)) + 63) / 64 * 64;
}

void check_settings(const Settings& settings) {
  const Options& options = settings.plan.options;
  std::string problems = options.problems();
  if (problems.empty()) {
    const uint32_t capacity = options.ring_shape().body_capacity();
    for (const uint32_t size : settings.sizes) {
      if (size % word_bytes != 0 || size < overhead_bytes + word_bytes) {
        problems += fmt::format(
            "  --size {}: must be a multiple of 8, and at least 32 (24 bytes of Cap'n Proto, and one word)\n",
            size);
      } else if (size > capacity) {
        problems +=
            fmt::format("  --size {}: slots of {} bytes carry bodies of at most {}; give --slot-bytes {}\n",
                        size, options.slot_bytes, capacity / word_bytes * word_bytes, slot_bytes_for(size));
      }
    }
  }
  if (!problems.empty()) throw BadOptions("measuring round trips: these options are wrong:\n" + problems);
}

void pin_to_two_cpus(Plan& plan) {
  const std::vector<int> cpus = allowed_cpus();
  if (cpus.size() < 2) {
    throw BadOptions(
        fmt::format("pinning two threads: this process may run on {} CPU; run without --pin", cpus.size()));
  }
  plan.own_cpu = cpus[0];
  plan.baseline_cpu = cpus[1];
}

// One round trip by the whole client API.
void ask_echo(Client& client, const EchoMessage& message) {
  const auto words = message.words();
  const auto fill = [words](EchoRequest::Builder request) {
    request.setSequence(words[0]);
    auto payload = request.initPayload(uint32_t(words.size() - 1));
    for (uint32_t i = 0; i < payload.size(); ++i) payload.set(i, words[i + 1]);
  };
  const auto reply = client.ask<EchoRequest>(Address<actors::Echo>{}, fill).get();
  if (!reply) throw Error(message.name() + ": " + reply.error().message(), reply.error().status);
  const auto& response = *reply.value();
  message.expect(0, response.getSequence());
  const auto payload = response.getPayload();
  if (payload.size() != words.size() - 1) {
    throw Error(fmt::format("{}: {} payload words came back, not {}; please report it", message.name(),
                            payload.size(), words.size() - 1));
  }
  for (uint32_t i = 0; i < payload.size(); ++i) message.expect(i + 1, payload[i]);
}

// Launches, measures, and ends the runtime: nothing of it is left for the next row to wait for.
std::pair<Row, Machine> measure_gyre(const Plan& plan, uint32_t size) {
  Row row{.name = "gyre", .size = size, .wait = std::string(name(plan.options.wait))};
  Runtime runtime = Runtime::launch(builtin_actors(), plan.options);
  const Machine machine = describe_machine(runtime);
  row.transport = name(runtime.transport());
  {
    Client client = runtime.client();
    EchoMessage message(fmt::format("gyre at {} bytes", size), 1 + (size - overhead_bytes) / word_bytes);
    const Pinned here(pthread_self(), plan.own_cpu);
    try {
      row.summary = summarise(measure(
          plan, [&] { message.next(); }, [&] { ask_echo(client, message); }));
    } catch (const Error& error) {
      if (const std::string cause = runtime.failure(); !cause.empty())
        throw Error(std::string(error.what()) + "\n" + cause);
      throw;
    }
  }
  const Termination termination = runtime.terminate(plan.options.timeout);
  const Books& books = termination.books;
  if (termination.worker_stuck) {
    throw Error("ending the gyre row: a worker did not stop, and the next row would wait for it for ever; " +
                runtime.failure());
  }
  if (!books.balanced() || books.asks.answered != books.asks.accepted) {
    throw Error(fmt::format("ending the gyre row: {} asks accepted, {} answered, books {}; please report it",
                            books.asks.accepted, books.asks.answered,
                            books.balanced() ? "balanced" : "not balanced"));
  }
  return {row, machine};
}

// The alternative that a row is compared with: the one of its size, else the first.
const Row* reference_of(const std::vector<Row>& rows, const std::string& reference, const Row& row) {
  const Row* found = nullptr;
  for (const Row& candidate : rows) {
    if (candidate.name != reference) continue;
    if (candidate.size == row.size) return &candidate;
    if (found == nullptr) found = &candidate;
  }
  return found;
}

double ratio_to(const Row* reference, const Row& row) {
  if (reference == nullptr || reference->summary.p50_ns == 0) return 0;
  return double(row.summary.p50_ns) / double(reference->summary.p50_ns);
}

void print_rows(std::FILE* out, const std::vector<Row>& rows, const std::string& reference) {
  fmt::print(out, "\n{:<12} {:<9} {:>6} {:>9} {:>9} {:>9} {:>11} {:>12} {:>10} {:<7} {:>13}\n", "row",
             "transport", "bytes", "p50 ns", "p99 ns", "p99.9 ns", "max ns", "messages/s", "messages", "wait",
             "p50/" + reference);
  for (const Row& row : rows) {
    const Summary& summary = row.summary;
    const Row* const against = reference_of(rows, reference, row);
    fmt::print(out, "{:<12} {:<9} {:>6} {:>9} {:>9} {:>9} {:>11} {:>12.0f} {:>10} {:<7} {:>13}{}\n", row.name,
               row.transport, row.size, summary.p50_ns, summary.p99_ns, summary.p999_ns, summary.max_ns,
               summary.messages_per_s(), summary.messages, row.wait,
               against == nullptr ? "-" : fmt::format("{:.2f}", ratio_to(against, row)),
               row.remark.empty() ? "" : "  " + row.remark);
  }
}

nlohmann::json to_json(const std::vector<Row>& rows, const std::string& reference) {
  nlohmann::json document = nlohmann::json::array();
  for (const Row& row : rows) {
    const Row* const against = reference_of(rows, reference, row);
    nlohmann::json entry = {{"name", row.name},
                            {"transport", row.transport},
                            {"size", row.size},
                            {"p50_ns", row.summary.p50_ns},
                            {"p99_ns", row.summary.p99_ns},
                            {"p999_ns", row.summary.p999_ns},
                            {"max_ns", row.summary.max_ns},
                            {"mean_ns", row.summary.mean_ns},
                            {"messages_per_s", row.summary.messages_per_s()},
                            {"messages", row.summary.messages},
                            {"wait", row.wait},
                            {"checked", row.checked}};
    if (against != nullptr) entry["p50_ratio"] = ratio_to(against, row);
    if (!row.remark.empty()) entry["remark"] = row.remark;
    document.push_back(entry);
  }
  return document;
}

int rtt(Settings& settings) {
  check_settings(settings);
  Plan& plan = settings.plan;
  if (settings.pin) pin_to_two_cpus(plan);
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const double clock_ns = clock_cost_ns();

  std::vector<Row> rows;
  Machine machine;
  std::string reference;
  const auto measured = [&rows](Row row) {
    if (row.summary.messages != 0) rows.push_back(std::move(row));
    return !tools::interrupt_requested();
  };
  const auto measure_baselines = [&](uint32_t size, bool first) {
#if defined(GYRE_WITH_CUDA)
    if (machine.engine == EngineKind::cuda)
      return measured(measure_raw(plan, size)) && (!first || measured(measure_launch_sync(plan)));
#endif
    return measured(measure_boost_spsc(plan, size)) && (!first || measured(measure_floor(plan)));
  };
  for (const uint32_t size : settings.sizes) {
    const bool first = reference.empty();
    auto [row, described] = measure_gyre(plan, size);
    if (first) {
      machine = described;
      reference = machine.engine == EngineKind::cuda ? "raw" : "boost-spsc";
      print(out, machine);
      fmt::print(
          out,
          "{} messages a row after {} uncounted, one in flight, from one thread{}: from before the request "
          "is "
          "written until every word of its reply is checked\n"
          "not measured: queueing (the loop is closed), several threads, first touch of memory, launching; "
          "each sample holds one clock reading, {:.0f} ns\n",
          plan.messages, plan.warm_up(),
          plan.own_cpu ? fmt::format(" on CPU {}, baselines' second thread on CPU {}, Gyre's own not pinned",
                                     *plan.own_cpu, *plan.baseline_cpu)
                       : ", threads not pinned",
          clock_ns);
    }
    if (!measured(std::move(row)) || !measure_baselines(size, first)) break;
  }

  print_rows(out, rows, reference);
  nlohmann::json about = to_json(machine);
  about["clock_ns"] = clock_ns;
  about["pinned"] = settings.pin;
  tools::write_json(settings.json_file,
                    {{"machine", about}, {"reference", reference}, {"rows", to_json(rows, reference)}});
  if (tools::interrupt_requested()) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_rtt(CLI::App& app, std::function<int()>& chosen) {
  auto settings = std::make_shared<Settings>();
  Options& options = settings->plan.options;
  options.wait = WaitPolicy::spin;
  CLI::App* const command = app.add_subcommand(
      "rtt", "Round-trip latency: one message in flight, every reply checked, beside the alternatives.");
  tools::add_common_options(*command, options, settings->json_file);
  command->get_option("--wait")->description(
      "spin (default here: a core each, lowest latency) or polite (spin a little, then sleep)");
  command
      ->add_option("--messages", settings->plan.messages, "messages a row; a tenth more warm up, uncounted")
      ->check(CLI::Range(uint64_t(1), uint64_t(100'000'000)))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option(
          "--size", settings->sizes,
          "bytes of request and of response body, a multiple of 8, 32 or more; may be given many times")
      ->type_name("BYTES")
      ->capture_default_str();
  command->add_flag("--pin", settings->pin,
                    "pin the measuring thread to the first CPU, a baseline's second thread to the second");
  command->footer(
      "Rows on CUDA: gyre, raw (a bare kernel that echoes the same packets), launch-sync (an empty kernel a "
      "call).\n"
      "Rows on the CPU: gyre, boost-spsc (a pair of queues, two threads), floor (two threads, a word each "
      "way).\n"
      "Exit: 0 every reply right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command->callback([settings, &chosen] { chosen = [settings] { return rtt(*settings); }; });
}

}  // namespace gyre::bench
