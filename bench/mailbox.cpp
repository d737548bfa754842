// gyre-bench mailbox: what messages between workers on one GPU can cost at best, by bare kernels.
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <algorithm>
#include <vector>

#include "common_options.hpp"
#include "machine.hpp"
#include "measure.hpp"
#include "subcommands.hpp"

#if defined(GYRE_WITH_CUDA)
#include "baselines/mailbox.hpp"
#endif

namespace gyre::bench {

namespace {

struct MailboxSettings {
  Options options;
  uint32_t messages = 1 << 20;
  uint32_t round_trips = 100'000;
  uint32_t interleave = 5;
  std::vector<uint32_t> warps{1, 2, 4};
  std::vector<uint32_t> allowances{2};
  std::string json_file;
};

#if defined(GYRE_WITH_CUDA)

constexpr std::pair<MailboxLoad, const char*> loads[] = {
    {MailboxLoad::uniform, "uniform"}, {MailboxLoad::skewed, "skewed"}, {MailboxLoad::pairs, "pairs"}};

struct RateRow {
  MailboxLoad load;
  const char* name;
  uint32_t warps, allowance;
  std::vector<MailboxRates> rounds = {};

  static double rate(const MailboxRates& round) { return double(round.messages) / round.seconds; }
  std::vector<double> rates() const {
    std::vector<double> rates;
    for (const MailboxRates& round : rounds) rates.push_back(rate(round));
    std::sort(rates.begin(), rates.end());
    return rates;
  }
};

int mailbox(const MailboxSettings& settings) {
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  Options options = settings.options;
  options.engine = EngineKind::cuda;
  Runtime runtime = Runtime::launch(builtin_actors(), options);
  const Machine machine = describe_machine(runtime);
  runtime.terminate();
  std::vector<RateRow> rows;
  for (const uint32_t warps : settings.warps) {
    for (const uint32_t allowance : settings.allowances) {
      for (const auto& [load, name] : loads) rows.push_back({load, name, warps, allowance});
    }
  }
  std::vector<uint64_t> by_mailbox, by_reply_ring;
  for (uint32_t round = 0; round < settings.interleave; ++round) {
    for (RateRow& row : rows) {
      if (tools::interrupt_requested()) return tools::interrupted;
      row.rounds.push_back(
          measure_mailbox_rates(options.device, row.warps, row.allowance, settings.messages, row.load));
      if (row.rounds.back().wrong != 0) {
        throw Error(fmt::format(
            "running bare mailboxes: {} of {} messages were lost, duplicated or wrong; please report it",
            row.rounds.back().wrong, row.rounds.back().messages));
      }
    }
    for (const bool reply_ring : {false, true}) {
      auto& samples = reply_ring ? by_reply_ring : by_mailbox;
      const auto more = measure_mailbox_latency(options.device, settings.round_trips, reply_ring);
      // The first ones find cold caches.
      samples.insert(samples.end(), more.begin() + more.size() / 10, more.end());
    }
  }
  print(out, machine);
  fmt::print(
      out,
      "bare mailboxes: 64 bytes a message, every one checked; {} messages a worker, medians of {} rounds\n\n"
      "{:<10} {:>8} {:>10} {:>7} {:>10} {:>14} {:>10}\n",
      settings.messages, settings.interleave, "load", "workers", "allowance", "slots", "MiB", "M messages/s",
      "max/min");
  tools::Json json_rows = tools::Json::array();
  for (const RateRow& row : rows) {
    const auto rates = row.rates();
    const MailboxRates& last = row.rounds.back();
    const uint64_t workers = last.ring_bytes / (uint64_t(last.slots) * 4 * sizeof(Packet));
    fmt::print(out, "{:<10} {:>8} {:>10} {:>7} {:>10.1f} {:>14.0f} {:>10.2f}\n", row.name, workers,
               row.allowance, last.slots, double(last.ring_bytes) / (1 << 20), rates[rates.size() / 2] * 1e-6,
               rates.back() / rates.front());
    json_rows.push_back({{"load", row.name},
                         {"workers", workers},
                         {"allowance", row.allowance},
                         {"slots", last.slots},
                         {"ring_bytes", last.ring_bytes},
                         {"messages_per_s", rates[rates.size() / 2]},
                         {"least_messages_per_s", rates.front()},
                         {"most_messages_per_s", rates.back()},
                         {"messages", last.messages}});
  }
  fmt::print(out, "\n{:<34} {:>9} {:>9} {:>9}\n", "one way, ns (half a round trip)", "p50", "p99", "p99.9");
  tools::Json json_latency = tools::Json::array();
  for (const bool reply_ring : {false, true}) {
    const char* const name = reply_ring ? "mailbox there, reply ring back" : "mailbox there and back";
    const Summary summary = summarise(reply_ring ? std::move(by_reply_ring) : std::move(by_mailbox));
    fmt::print(out, "{:<34} {:>9.0f} {:>9.0f} {:>9.0f}\n", name, double(summary.p50_ns) / 2,
               double(summary.p99_ns) / 2, double(summary.p999_ns) / 2);
    json_latency.push_back({{"name", name},
                            {"one_way_p50_ns", double(summary.p50_ns) / 2},
                            {"one_way_p99_ns", double(summary.p99_ns) / 2},
                            {"one_way_p999_ns", double(summary.p999_ns) / 2},
                            {"round_trips", summary.messages}});
  }
  tools::write_json(settings.json_file, {{"benchmark", "mailbox"},
                                         {"machine", to_json(machine)},
                                         {"rates", json_rows},
                                         {"latency", json_latency}});
  return tools::all_passed;
}

#else

int mailbox(const MailboxSettings&) {
  throw EngineUnavailable(
      "measuring mailboxes: they are in a GPU's memory, and this program was built without CUDA");
}

#endif

}  // namespace

void add_mailbox(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<MailboxSettings>();
  const tools::ProgramCommand command = app.add_subcommand(
      "mailbox",
      "What messages between workers on one GPU can cost at best: bare kernels, every message checked.");
  tools::add_common_options(command, settings->options, settings->json_file);
  command.add_option("--messages", settings->messages, "messages of each worker")
      .range(32u, 1u << 24)
      .type_name("N")
      .show_default();
  command.add_option("--round-trips", settings->round_trips, "round trips between two workers")
      .range(10u, 10'000'000u)
      .type_name("N")
      .show_default();
  command.add_option("--interleave", settings->interleave, "rounds of all rows")
      .range(1u, 100u)
      .show_default();
  command.add_option("--warps", settings->warps, "workers of a multiprocessor: 1, 2, 4")
      .check([](const std::string& value) {
        return value == "1" || value == "2" || value == "4" ? std::string() : value + " is not 1, 2 or 4";
      })
      .show_default();
  command
      .add_option("--allowance", settings->allowances,
                  "messages that a producer may have on the way to one consumer")
      .range(1u, 16u)
      .show_default();
  command.footer(
      "Exit: 0 every message right, 1 one wrong, 2 bad usage, 3 engine not available here, 130 interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return mailbox(*settings); }; });
}

}  // namespace gyre::bench
