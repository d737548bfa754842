// gyre-bench-nats: asks through the gateway to NATS, beside a bare NATS request and reply, a futex and the
// local ask. A program of its own, since it needs the NATS library.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>

#include "affinity.hpp"
#include "baselines/futex.hpp"
#include "common_options.hpp"
#include "gyre_rows.hpp"
#include "machine.hpp"
#include "nats/processes.hpp"
#include "nats/requests.hpp"
#include "programs.hpp"
#include "rows.hpp"

namespace gyre::bench {

namespace {

constexpr int skipped = 77;
// What a server takes by default, and what headers may take of it.
constexpr uint64_t default_max_payload = 1 << 20, header_room = 4096, large_max_payload = 8 << 20;

// Returns `count` of the CPUs that this process may run on, on different cores if there are enough; all if
// there are fewer.
std::vector<int> choose_cpus(size_t count) {
  const std::vector<int> allowed = allowed_cpus();
  std::vector<int> chosen;
  for (const bool any : {false, true}) {
    for (const int cpu : allowed) {
      if (chosen.size() == count) return chosen;
      const auto shares = [cpu](int other) { return cpu == other || share_a_core(cpu, other); };
      const bool taken = any ? std::count(chosen.begin(), chosen.end(), cpu) != 0
                             : std::any_of(chosen.begin(), chosen.end(), shares);
      if (!taken) chosen.push_back(cpu);
    }
  }
  return chosen;
}

struct NatsSettings {
  Plan plan;
  std::vector<uint32_t> sizes = {64, 1'000'000, 4 << 20};
  uint64_t rate_messages = 50'000;
  uint32_t in_flight = 64;
  uint32_t rounds = 5;
  uint32_t cpus = 0;            // 0: all
  std::vector<int> futex_cpus;  // one for each thread of the futex, the same where there is only one
  std::string node_program, echo_url, json_file;

  bool needs_large_payload(uint32_t size) const { return size + header_room > default_max_payload; }
  // Large messages are few: a run shall not take minutes.
  Plan plan_of(uint32_t size) const {
    Plan few = plan;
    if (size > 4096) few.messages = std::max<uint64_t>(1, few.messages / 50);
    return few;
  }
  Plan futex_plan() const {
    Plan apart = plan;
    apart.own_cpu = futex_cpus.front();
    apart.baseline_cpu = futex_cpus.back();
    return apart;
  }
};

// Requests that were answered a second, of every round.
struct RateRow {
  Answerer answerer;
  std::vector<double> rounds = {};
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

constexpr Answerer answerers[] = {Answerer::echo, Answerer::echo_with_headers, Answerer::node};

class NatsRun {
 public:
  explicit NatsRun(const NatsSettings& settings) : settings_(settings) {
    for (const Answerer answerer : answerers) rates_.push_back({answerer});
  }

  // False: interrupted.
  bool measure_round() {
    rows_.add(measure_futex(settings_.futex_plan(), 64, std::chrono::microseconds(0)));
    for (const bool large : {false, true}) {
      std::vector<uint32_t> sizes;
      for (const uint32_t size : settings_.sizes) {
        if (settings_.needs_large_payload(size) == large) sizes.push_back(size);
      }
      if (!sizes.empty()) measure_on_server(large, sizes);
    }
    // Not beside the node: on a GPU two runtimes take turns.
    for (const uint32_t size : settings_.sizes)
      rows_.add(measure_gyre_echo(settings_.plan_of(size), size).row);
    return !tools::interrupt_requested();
  }
  void print(std::FILE* out) const {
    rows_.print(out);
    fmt::print(out, "\n{:<19} {:>12} {:>12}\n", "row", "requests/s", "/ bare");
    for (const RateRow& row : rates_)
      fmt::print(out, "{:<19} {:>12.0f} {:>12.2f}\n", name(row.answerer), median(row.rounds),
                 rate_ratio(row));
    fmt::print(out, "\nat {} bytes, p50: the gateway takes {:.1f} us more than bare; futex {:.1f} us\n",
               settings_.sizes[0], over_bare_ns(settings_.sizes[0]) / 1000, futex_ns() / 1000);
  }
  tools::Json to_json() const {
    tools::Json document = tools::Json::array();
    const tools::Json round_trips = rows_.to_json();
    for (tools::Json row : round_trips.elements()) {
      row["kind"] = "round trip";
      if (row["name"] == name(Answerer::node))
        row["over_bare_ns"] = over_bare_ns(uint32_t(row["size"].as_uint64()));
      document.push_back(std::move(row));
    }
    for (const RateRow& row : rates_) {
      document.push_back({{"kind", "rate"},
                          {"name", name(row.answerer)},
                          {"size", settings_.sizes[0]},
                          {"in_flight", settings_.in_flight},
                          {"messages", settings_.rate_messages},
                          {"messages_per_s", median(row.rounds)},
                          {"rate_ratio", rate_ratio(row)},
                          {"rounds", row.rounds}});
    }
    return document;
  }

 private:
  void measure_on_server(bool large, const std::vector<uint32_t>& sizes) {
    const NatsServer server(large ? large_max_payload : 0);
    const tools::TemporaryFolder folder;
    Child echo({std::filesystem::read_symlink("/proc/self/exe"), "--echo", server.url()},
               folder.path() + "/echo.log");
    NatsNode node(settings_.node_program, server.url(), settings_.plan.options);
    {
      const NatsConnection connection = connect_to_nats(server.url());
      wait_until_answered(connection.get(), Answerer::echo, 0,
                          [&] { echo.expect_running("waiting for the bare echo"); });
      for (uint32_t key = 0; key < settings_.in_flight; ++key)
        wait_until_answered(connection.get(), Answerer::node, key, [&] { node.expect_running(); });
      for (const uint32_t size : sizes) {
        for (const Answerer answerer : answerers) {
          if (tools::interrupt_requested()) return;
          rows_.add(measure_requests(settings_.plan_of(size), connection.get(), answerer, size));
        }
      }
      for (RateRow& row : rates_) {
        if (large || settings_.rate_messages == 0 || tools::interrupt_requested()) break;
        row.rounds.push_back(measure_rate(connection.get(), row.answerer, sizes[0], settings_.in_flight,
                                          settings_.rate_messages));
      }
    }
    node.end();
  }
  const Row* find(const char* name, uint32_t size) const {
    for (const Row& row : rows_.all()) {
      if (row.name == name && row.size == size) return &row;
    }
    return nullptr;
  }
  // The median of the rounds' differences: each round compares what was measured at about one time.
  double over_bare_ns(uint32_t size) const {
    const Row *const bare = find(name(Answerer::echo), size), *const gateway =
                                                                  find(name(Answerer::node), size);
    if (bare == nullptr || gateway == nullptr) return 0;
    std::vector<double> differences;
    for (size_t i = 0; i < std::min(bare->rounds.size(), gateway->rounds.size()); ++i)
      differences.push_back(double(gateway->rounds[i].p50_ns) - double(bare->rounds[i].p50_ns));
    return median(differences);
  }
  double futex_ns() const {
    const Row* const futex = find("futex", 64);
    return futex == nullptr ? 0 : double(futex->summary.p50_ns);
  }
  double rate_ratio(const RateRow& row) const {
    std::vector<double> ratios;
    for (size_t i = 0; i < row.rounds.size(); ++i) ratios.push_back(row.rounds[i] / rates_[0].rounds[i]);
    return median(ratios);
  }

  const NatsSettings& settings_;
  Rows rows_{name(Answerer::echo)};
  std::vector<RateRow> rates_;
};

// Keeps this process, and those that it starts, on so many CPUs, on different cores if there are enough.
void use_cpus(uint32_t count) {
  const std::vector<int> chosen = choose_cpus(count);
  if (chosen.size() < count) {
    throw BadOptions(fmt::format("--cpus {}: this process may run on {} CPUs", count, chosen.size()));
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : chosen) CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) throw Error("--cpus: the CPUs cannot be chosen");
}

void check_settings(NatsSettings& settings) {
  std::string problems = settings.plan.options.problems();
  for (const uint32_t size : settings.sizes) {
    if (size % 8 != 0 || size < echo_overhead_bytes + 8 || size + header_room > large_max_payload) {
      problems += fmt::format("  --size {}: must be a multiple of 8, 32 to {}\n", size,
                              large_max_payload - header_room);
    }
  }
  if (!problems.empty()) throw BadOptions("measuring asks over NATS: these options are wrong:\n" + problems);
  if (settings.node_program.empty()) settings.node_program = tools::find_program("gyre-nats");
  if (settings.node_program.empty()) {
    throw BadOptions("measuring asks over NATS: there is no gyre-nats beside this program; give --node FILE");
  }
}

int measure_nats(NatsSettings& settings) {
  if (!settings.echo_url.empty()) echo_on_nats(settings.echo_url);
  check_settings(settings);
  if (find_nats_server().empty()) {
    fmt::print(stderr,
               "gyre-bench-nats: there is no nats-server; install it (Debian: nats-server), or give its path "
               "as $NATS_SERVER\n");
    return skipped;
  }
  if (settings.cpus != 0) use_cpus(settings.cpus);
  // On one CPU the threads would take turns without an interrupt, some ten times as fast.
  settings.futex_cpus = choose_cpus(2);
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  Plan& plan = settings.plan;
  const Machine machine = machine_of(plan.options);
  plan.options.engine = machine.engine;
  plan.options.transport = machine.transport;
  print(out, machine);
  fmt::print(
      out,
      "{} messages a row and round after a tenth as many uncounted, of more than 4096 bytes a fiftieth, "
      "one in flight: from before the request is made until its reply is checked byte by byte. Rates: {} "
      "requests, {} in flight over one connection. bare: a NATS request to an echo in C; gateway: to a node; "
      "gyre: the local ask; futex: two threads, on CPUs {}, that wake each other. {} round{} interleaved, "
      "each with a server and a node of its own\n"
      "not measured: a network; several clients; nodes that come and go\n",
      plan.messages, settings.rate_messages, settings.in_flight, fmt::join(settings.futex_cpus, " and "),
      settings.rounds, settings.rounds == 1 ? "" : "s");
  NatsRun run(settings);
  bool complete = true;
  for (uint32_t round = 0; round < settings.rounds && complete; ++round) complete = run.measure_round();
  run.print(out);
  tools::Json about = to_json(machine);
  about["clock_ns"] = clock_cost_ns();
  about["rounds"] = settings.rounds;
  about["futex_cpus"] = settings.futex_cpus;
  about["nats_library"] = nats_GetVersion();
  tools::write_json(
      settings.json_file,
      {{"benchmark", "nats"}, {"machine", about}, {"reference", "bare"}, {"rows", run.to_json()}});
  if (!complete) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

void add_options(tools::ProgramCommand command, NatsSettings& settings) {
  settings.plan.messages = 5000;
  tools::add_common_options(command, settings.plan.options, settings.json_file);
  command.add_option("--messages", settings.plan.messages, "messages a row and round; a tenth more warm up")
      .range(uint64_t(1), uint64_t(100'000'000))
      .type_name("N")
      .show_default();
  command
      .add_option(
          "--size", settings.sizes,
          "bytes of request and of response body, a multiple of 8, 32 or more; the first one also for "
          "rates")
      .type_name("BYTES")
      .show_default();
  command.add_option("--rate-messages", settings.rate_messages, "requests of a rate and round; 0: no rates")
      .range(uint64_t(0), uint64_t(100'000'000))
      .type_name("N")
      .show_default();
  command.add_option("--in-flight", settings.in_flight, "requests in flight, for rates")
      .range(1u, 256u)
      .type_name("N")
      .show_default();
  command.add_option("--interleave", settings.rounds, "rounds of all rows, interleaved")
      .range(1u, 1000u)
      .type_name("R")
      .show_default();
  command.add_option("--cpus", settings.cpus, "CPUs that all processes share, of several cores; 0: all")
      .type_name("N")
      .show_default();
  command.add_option("--node", settings.node_program, "gyre-nats (default: the one beside this program)")
      .type_name("FILE");
  command.add_option("--echo", settings.echo_url).group("");  // the process of the row bare
  command.footer(
      "Rows: futex, bare (the request without headers), bare, headers (with those that a node wants), "
      "gateway, "
      "gyre. A size that does not fit the server's default max_payload has a server with 8 MiB.\n"
      "Exit: 0 every reply right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 77 no "
      "nats-server here, 130 interrupted.");
}

}  // namespace

}  // namespace gyre::bench

int main(int argc, char** argv) {
  using namespace gyre::bench;
  gyre::tools::Program program("Measures asks over NATS beside a bare NATS request and reply.",
                               "gyre-bench-nats", gyre::tools::Program::Subcommands::none);
  NatsSettings settings;
  add_options(program.command(), settings);
  if (const auto exit_code = program.parse(argc, argv)) return *exit_code;
  return gyre::tools::run_reporting_errors([&settings] { return measure_nats(settings); });
}
