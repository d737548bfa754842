// gyre-bench sweep: latency against offered load, messages sent whether answers come or not.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "common_options.hpp"
#include "gyre_rows.hpp"
#include "gyre_run.hpp"
#include "machine.hpp"
#include "ping_stream.hpp"
#include "subcommands.hpp"

namespace gyre::bench {

namespace {

struct SweepSettings {
  Options options;
  std::vector<double> loads = {0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95};
  double seconds = 1;
  uint64_t messages = 200'000;
  bool slot_bytes_given = false;
  std::string json_file;
};

int sweep(SweepSettings& settings) {
  if (!settings.slot_bytes_given) settings.options.slot_bytes = slot_bytes_for(ping_bytes);
  if (const std::string problems = settings.options.problems(); !problems.empty())
    throw BadOptions("sweeping the load: these options are wrong:\n" + problems);
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Options& options = settings.options;
  tools::Json json_rows = tools::Json::array();
  tools::Json about;
  run_on_gyre(ping_actors(), options, "sweep", [&](Runtime& runtime) {
    const Machine machine = describe_machine(runtime);
    about = to_json(machine);
    print(out, machine);
    Client client = runtime.client();
    PingShare share = share_pings(settings.messages, 1, options.workers, options.slots, 0)[0];
    share.batch = 1;  // as the loads are offered
    ask_pings(client, share);
    const auto begin = std::chrono::steady_clock::now();
    ask_pings(client, share);
    const double capacity = double(share.messages) /
                            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    about["capacity_per_s"] = capacity;
    fmt::print(
        out,
        "one thread, bodies of {} bytes in slots of {}; one by one, with {} always in flight, it asks {:.0f} "
        "a second: loads are parts of that\n"
        "messages are meant for random moments (a Poisson process), about {} s a row; latency is from that "
        "moment to the checked answer, sent late or not (corrected for coordinated omission)\n"
        "not measured: several senders, other sizes\n\n"
        "{:>6} {:>12} {:>12} {:>10} {:>9} {:>9} {:>9} {:>10} {:>10}\n",
        ping_bytes, options.slot_bytes, share.window, capacity, settings.seconds, "load", "offered/s",
        "answered/s", "messages", "p50 ns", "p99 ns", "p99.9 ns", "max ns", "sent late");
    for (const double load : settings.loads) {
      const double per_s = load * capacity;
      PingShare offered = share;
      offered.messages = std::max<uint64_t>(1, uint64_t(per_s * settings.seconds));
      PingShare warm_up = offered;
      warm_up.messages = (offered.messages + 9) / 10;
      offer_pings(client, warm_up, per_s);
      const OfferedLoad found = offer_pings(client, offered, per_s);
      if (tools::interrupt_requested()) return;
      const Histogram& latency = found.latency_ns;
      const double answered = double(latency.count()) / found.seconds;
      fmt::print(out, "{:>6.2f} {:>12.0f} {:>12.0f} {:>10} {:>9} {:>9} {:>9} {:>10} {:>10}\n", load, per_s,
                 answered, latency.count(), latency.percentile(500), latency.percentile(990),
                 latency.percentile(999), latency.max(), found.sent_late);
      json_rows.push_back({{"name", "gyre"},
                           {"load", load},
                           {"offered_per_s", per_s},
                           {"answered_per_s", answered},
                           {"messages", latency.count()},
                           {"p50_ns", latency.percentile(500)},
                           {"p99_ns", latency.percentile(990)},
                           {"p999_ns", latency.percentile(999)},
                           {"max_ns", latency.max()},
                           {"sent_late", found.sent_late},
                           {"histogram_ns", latency.text()}});
    }
  });
  tools::write_json(settings.json_file, {{"benchmark", "sweep"}, {"machine", about}, {"rows", json_rows}});
  if (tools::interrupt_requested()) {
    fmt::print(out, "interrupted: not all loads were measured\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_sweep(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<SweepSettings>();
  settings->options.wait = WaitPolicy::spin;
  const tools::ProgramCommand command = app.add_subcommand(
      "sweep", "Latency against offered load: an open loop, corrected for coordinated omission.");
  tools::add_common_options(command, settings->options, settings->json_file);
  const tools::CommandOption slot_bytes = command.option("--slot-bytes");
  command.add_option("--loads", settings->loads, "parts of the measured capacity to offer, ascending")
      .range(0.001, 2.0)
      .show_default();
  command.add_option("--seconds", settings->seconds, "how long each load is offered, about")
      .range(0.001, 3600.0)
      .show_default();
  command.add_option("--messages", settings->messages, "messages by which the capacity is measured")
      .range(uint64_t(100), uint64_t(1'000'000'000))
      .type_name("N")
      .show_default();
  command.footer(
      "Loads near 1 and above make queues grow for as long as they last: their latency depends on "
      "--seconds.\n"
      "Exit: 0 every answer right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, slot_bytes, &chosen] {
    settings->slot_bytes_given = slot_bytes.count() != 0;
    chosen = [settings] { return sweep(*settings); };
  });
}

}  // namespace gyre::bench
