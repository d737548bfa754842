// gyre-bench throughput: messages a second, many in flight, beside the bare rings.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "affinity.hpp"
#include "baselines/boost_spsc.hpp"
#include "common_options.hpp"
#include "gyre_rows.hpp"
#include "gyre_run.hpp"
#include "machine.hpp"
#include "ping_stream.hpp"
#include "subcommands.hpp"
#include "threads.hpp"

#if defined(GYRE_WITH_CUDA)
#include "baselines/raw_stream.hpp"
#endif

namespace gyre::bench {

namespace {

struct ThroughputSettings {
  Options options;
  std::vector<uint32_t> workers;
  uint32_t threads = 0;  // 0: useful_threads
  uint32_t window = 0;
  uint32_t pollers = 1;
  uint64_t messages = 1'000'000;
  uint32_t rounds = 1;
  bool tells = false;
  bool slot_bytes_given = false;
  std::string json_file;
};

struct StreamRow {
  std::string name = {};
  std::string transport = {};
  uint32_t workers = 1, threads = 1;
  uint64_t messages = 0;
  uint64_t checksum = 0;
  std::string remark = {};
  std::vector<double> rounds = {};  // messages/s

  double messages_per_s() const {
    std::vector<double> sorted = rounds;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[(sorted.size() - 1) / 2];
  }
};

uint32_t useful_threads(const ThroughputSettings& settings, EngineKind engine, uint32_t workers,
                        uint32_t a_worker) {
  if (settings.threads != 0) return settings.threads;
  if (engine != EngineKind::cuda) return 1;  // the workers need processors too
  return std::min({a_worker * workers, 8u, std::max(1u, uint32_t(allowed_cpus().size()) / 2)});
}

StreamRow measure_gyre_asks(const Options& options, uint64_t messages, uint32_t threads, uint32_t window) {
  StreamRow row{.name = "gyre", .workers = options.workers, .threads = threads, .messages = messages};
  row.remark =
      "asks and their answers, typed client API, by ask_many, of an actor whose messages go side by side";
  run_on_gyre(ping_actors(), options, "gyre", [&](Runtime& runtime) {
    row.transport = name(runtime.transport());
    const auto shares = share_pings(messages, threads, options.workers, options.slots, window);
    std::vector<uint64_t> sums(threads);
    const double seconds = run_together(
        threads,
        [&](uint32_t t) {
          Client client = runtime.client();
          PingShare warm_up = shares[t];
          warm_up.messages = (warm_up.messages + 9) / 10;
          ask_pings(client, warm_up);
        },
        [&](uint32_t t) {
          Client client = runtime.client();
          sums[t] = ask_pings(client, shares[t]);
        });
    for (const uint64_t sum : sums) row.checksum += sum;
    row.rounds = {double(messages) / seconds};
  });
  return row;
}

StreamRow measure_gyre_tells(const Options& options, uint64_t messages, uint32_t threads) {
  StreamRow row{.name = "gyre tells", .workers = options.workers, .threads = threads, .messages = messages};
  row.remark =
      "one way, by tell_many, to actors whose messages go side by side; until every one has counted all";
  run_on_gyre(ping_actors(), options, "gyre tells", [&](Runtime& runtime) {
    row.transport = name(runtime.transport());
    const auto shares = share_pings(messages, threads, options.workers, options.slots, 0);
    std::vector<uint64_t> keys(options.workers), sums(threads), before(threads);
    for (uint32_t worker = 0; worker < options.workers; ++worker) keys[worker] = worker;
    const double sending = run_together(
        threads,
        [&](uint32_t t) {
          Client client = runtime.client();
          PingShare warm_up = shares[t];
          warm_up.messages = (warm_up.messages + 9) / 10;
          before[t] = tell_counts(client, warm_up);
        },
        [&](uint32_t t) {
          Client client = runtime.client();
          sums[t] = tell_counts(client, shares[t]);
        });
    const auto begin = std::chrono::steady_clock::now();
    Client client = runtime.client();
    const CountedInAll all = counted(client, keys);
    const double counting = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (tools::interrupt_requested()) return;
    uint64_t expected = 0, warm_ups = 0;
    for (uint32_t t = 0; t < threads; ++t) {
      expected += sums[t] + before[t];
      row.checksum += sums[t];
      warm_ups += (shares[t].messages + 9) / 10;
    }
    if (all.messages != messages + warm_ups || all.sum != expected) {
      throw Error(
          fmt::format("telling {} messages: the actors counted {} with a sum of 0x{:x}, not 0x{:x}: no "
                      "figure of this run counts; please report it",
                      messages + warm_ups, all.messages, all.sum, expected));
    }
    row.rounds = {double(messages) / (sending + counting)};
  });
  return row;
}

// The rows of one run, a round's figure added to the row it belongs to.
class StreamRows {
 public:
  void add(StreamRow row) {
    if (row.rounds.empty()) return;
    for (StreamRow& known : rows_) {
      if (known.name == row.name && known.workers == row.workers) {
        known.rounds.push_back(row.rounds[0]);
        return;
      }
    }
    rows_.push_back(std::move(row));
  }
  // Of the reference with as many workers, else of any.
  double ratio(const StreamRow& row, const std::string& reference) const {
    const StreamRow* found = nullptr;
    for (const StreamRow& candidate : rows_) {
      if (candidate.name != reference || (found != nullptr && candidate.workers != row.workers)) continue;
      found = &candidate;
    }
    return found == nullptr ? 0 : row.messages_per_s() / found->messages_per_s();
  }
  const std::vector<StreamRow>& all() const { return rows_; }

 private:
  std::vector<StreamRow> rows_;
};

void check_settings(const ThroughputSettings& settings) {
  std::string problems;
  for (const uint32_t workers : settings.workers) {
    Options options = settings.options;
    options.workers = workers;
    problems += options.problems();
  }
  if (settings.options.ring_shape().body_capacity() < ping_bytes) problems += "  --slot-bytes: too small\n";
  if (!problems.empty()) throw BadOptions("measuring throughput: these options are wrong:\n" + problems);
}

int throughput(ThroughputSettings& settings) {
  if (!settings.slot_bytes_given) settings.options.slot_bytes = slot_bytes_for(ping_bytes);
  check_settings(settings);
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Machine machine = machine_of(settings.options);
  const bool on_cuda = machine.engine == EngineKind::cuda;
  settings.options.engine = machine.engine;
  settings.options.transport = machine.transport;
  if (settings.workers.empty())
    settings.workers = on_cuda ? std::vector<uint32_t>{1, 16, 132} : std::vector{1u};
  const std::string reference = on_cuda ? "raw" : "boost-spsc";

  print(out, machine);
  fmt::print(
      out,
      "{} messages a row and round after a tenth as many uncounted, bodies of {} bytes in slots of {}; {} "
      "round{} of all rows in turn, each launched anew; the figure of a row is its median round's\n"
      "every answer (raw: every packet's stamp and content) is checked, within the time measured\n"
      "not measured: latency (see sweep), launching, other sizes of message\n",
      settings.messages, ping_bytes, settings.options.slot_bytes, settings.rounds,
      settings.rounds == 1 ? "" : "s");

  StreamRows rows;
  std::vector<std::function<StreamRow()>> cases;
  for (const uint32_t workers : settings.workers) {
    Options options = settings.options;
    options.workers = workers;
    // Threads that ask one worker complete each other's replies; raw has one that sends and one that takes.
    const uint32_t threads = useful_threads(settings, machine.engine, workers, 1);
    cases.push_back(
        [=, &settings] { return measure_gyre_asks(options, settings.messages, threads, settings.window); });
    if (settings.tells)
      cases.push_back([=, &settings] { return measure_gyre_tells(options, settings.messages, threads); });
#if defined(GYRE_WITH_CUDA)
    if (on_cuda) {
      const uint32_t raw_threads = useful_threads(settings, machine.engine, workers, 2);
      cases.push_back([=, &settings] {
        const StreamFigures figures = measure_raw_stream(options, ping_bytes, settings.messages, raw_threads,
                                                         settings.window, settings.pollers);
        StreamRow row{.name = "raw", .workers = workers, .threads = figures.threads};
        row.transport = name(options.transport);
        row.messages = figures.messages;
        row.checksum = figures.checksum;
        row.remark = fmt::format("{} bare warp{} a worker take all that a poll shows; every packet checked",
                                 settings.pollers, settings.pollers == 1 ? "" : "s");
        row.rounds = {double(figures.messages) / figures.seconds};
        return row;
      });
    }
#endif
  }
  if (!on_cuda) {
    cases.push_back([&settings] {
      StreamRow row{.name = "boost-spsc", .transport = "heap", .messages = settings.messages};
      row.remark = "one way; two threads, a queue";
      const double seconds =
          measure_boost_spsc_one_way(ping_bytes, settings.messages, settings.options.slots);
      row.rounds = {double(settings.messages) / seconds};
      return row;
    });
  }
  bool complete = true;
  for (uint32_t round = 0; round < settings.rounds && complete; ++round) {
    for (const auto& measure_case : cases) {
      StreamRow row = measure_case();
      complete = !tools::interrupt_requested();
      if (!complete) break;  // it was cut short
      rows.add(std::move(row));
    }
  }

  fmt::print(out, "\n{:<12} {:<9} {:>7} {:>7} {:>14} {:>11} {:>18} {:>16}\n", "row", "transport", "workers",
             "threads", "messages/s", "messages", "checksum", "rate/" + reference);
  tools::Json json_rows = tools::Json::array();
  for (const StreamRow& row : rows.all()) {
    const double ratio = rows.ratio(row, reference);
    fmt::print(out, "{:<12} {:<9} {:>7} {:>7} {:>14.0f} {:>11} {:>18x} {:>16}  {}\n", row.name, row.transport,
               row.workers, row.threads, row.messages_per_s(), row.messages, row.checksum,
               ratio == 0 ? "-" : fmt::format("{:.2f}", ratio), row.remark);
    json_rows.push_back({{"name", row.name},
                         {"transport", row.transport},
                         {"workers", row.workers},
                         {"threads", row.threads},
                         {"size", ping_bytes},
                         {"messages", row.messages},
                         {"messages_per_s", row.messages_per_s()},
                         {"checksum", row.checksum},
                         {"rate_ratio", ratio},
                         {"rounds", row.rounds},
                         {"remark", row.remark}});
  }
  tools::write_json(settings.json_file, {{"benchmark", "throughput"},
                                         {"machine", to_json(machine)},
                                         {"reference", reference},
                                         {"rows", json_rows}});
  if (!complete) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_throughput(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<ThroughputSettings>();
  settings->options.wait = WaitPolicy::spin;
  const tools::ProgramCommand command =
      app.add_subcommand("throughput", "Messages a second, many in flight, beside the bare rings.");
  tools::add_common_options(command, settings->options, settings->json_file);
  command.remove_option("--workers");
  command
      .add_option("--workers", settings->workers,
                  "numbers of workers, a set of rows each (default: 1 16 132 on CUDA, 1 on the CPU)")
      .range(1u, 65535u);
  const tools::CommandOption slot_bytes = command.option("--slot-bytes");
  command
      .add_option("--threads", settings->threads,
                  "host threads (default: on CUDA half the processors, 8 and one a worker at most, raw two a "
                  "worker; 1 on the CPU)")
      .range(1u, 256u);
  command
      .add_option(
          "--window", settings->window,
          "messages in flight a thread (default: 64 for each worker that it sends to, 128 for one that is "
          "alone, or what the rings take)")
      .range(1u, 32768u);
  command.add_option("--messages", settings->messages, "messages a row and round")
      .range(uint64_t(1000), uint64_t(10'000'000'000))
      .type_name("N")
      .show_default();
  command.add_option("--interleave", settings->rounds, "rounds of all rows in turn")
      .range(1u, 1000u)
      .type_name("R")
      .show_default();
  command.add_option("--pollers", settings->pollers, "warps that poll in raw's kernel, a worker: 1 or 2")
      .range(1u, 2u)
      .type_name("N")
      .show_default();
  command.add_flag("--tells", settings->tells, "measure messages one way besides");
  command.footer(
      "A message is a word in a 64-byte slot (--slot-bytes, here 64 by default) and its answer another.\n"
      "Rows on CUDA: gyre, raw (bare warps, as many workers; two host threads a ring at most: one sends, one "
      "takes). On the CPU: gyre, "
      "boost-spsc (a queue, one way).\n"
      "Exit: 0 every answer right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, slot_bytes, &chosen] {
    settings->slot_bytes_given = slot_bytes.count() != 0;
    chosen = [settings] { return throughput(*settings); };
  });
}

}  // namespace gyre::bench
