// gyre-bench savina: benchmarks of the Savina suite on the GPU, on the CPU engine and on CAF, in one run.
#include <fmt/format.h>
#include <bench/savina/hash.hpp>
#include <gyre/gyre.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "common_options.hpp"
#include "machine.hpp"
#include "savina/benchmark.hpp"
#include "subcommands.hpp"

#if defined(GYRE_BENCH_CAF)
#include "savina/caf/caf.hpp"
#endif

namespace gyre::bench {

namespace {

using namespace savina;

// Eight blocks a multiprocessor: as many as its registers are enough for.
constexpr uint32_t workers_of_h100 = 8 * 132;

struct SavinaSettings {
  Options options;
  std::vector<uint32_t> instances{1};
  std::vector<uint32_t> percents{100};
  std::vector<std::string> only;
  std::vector<uint32_t> under_way{1};
  uint32_t rounds = 1;
  std::optional<uint32_t> workers;
  uint32_t cpu_workers = 0, caf_threads = 0;  // 0: as many as CPUs
  std::string caf_policy = "stealing";
  bool one_core = false;
  std::string json_file;
};

// What benchmarks run on.
struct Contender {
  std::string name;     // in tables and JSON
  std::string details;  // how it runs
  bool one_core = false;
  std::function<Outcome(const Benchmark&, const Size&, uint32_t instances)> run = {};
};

// One contender's part of a row.
struct Cell {
  std::vector<double> seconds = {};  // a round each
  std::string refused = {};
  bool left_out = false;  // not to be run

  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

// A benchmark, of a size, with so many instances.
struct SavinaRow {
  const Benchmark* benchmark;
  uint32_t instances, percent;
  Size size;
  std::vector<Cell> cells;  // one a contender

  uint64_t messages() const { return benchmark->messages(size) * instances; }
  double rate(size_t contender) const { return double(messages()) / cells[contender].median(); }
};

std::string names_of_benchmarks() {
  std::string names;
  for (const Benchmark& benchmark : benchmarks())
    names += (names.empty() ? "" : " ") + std::string(benchmark.name);
  return names;
}

std::string contender_text(const char* what, uint32_t count, const char* unit) {
  return fmt::format("{} of {} {}{}", what, count, unit, count == 1 ? "" : "s");
}

std::vector<Contender> contenders_of(const SavinaSettings& settings) {
  std::vector<Contender> contenders;
  const auto add_engine = [&](const char* name, Options options, bool one_core) {
    contenders.push_back(
        {name,
         contender_text(options.engine == EngineKind::cuda ? "Gyre's CUDA engine" : "Gyre's CPU engine",
                        options.workers, "worker"),
         one_core, [options](const Benchmark& benchmark, const Size& size, uint32_t instances) {
           return run_on_engine(benchmark, size, instances, options);
         }});
  };
  if (settings.options.engine == EngineKind::cuda) add_engine("cuda", settings.options, false);
  Options cpu = settings.options;
  cpu.engine = EngineKind::cpu;
  cpu.transport = TransportKind::automatic;
  cpu.workers = settings.cpu_workers;
  add_engine("cpu", cpu, false);
  cpu.workers = 1;
  if (settings.one_core) add_engine("cpu, 1 worker", cpu, true);
#if defined(GYRE_BENCH_CAF)
  const auto add_caf = [&](const char* name, uint32_t threads, bool one_core) {
    const CafOptions options{settings.caf_policy, threads};
    contenders.push_back(
        {name,
         fmt::format("{}, scheduler: work {}", contender_text(caf_version().c_str(), threads, "thread"),
                     settings.caf_policy),
         one_core,
         [options, timeout = settings.options.timeout](const Benchmark& benchmark, const Size& size,
                                                       uint32_t instances) {
           return run_on_caf(benchmark, size, instances, options, timeout);
         }});
  };
  add_caf("caf", settings.caf_threads, false);
  if (settings.one_core) add_caf("caf, 1 thread", 1, true);
#endif
  return contenders;
}

// Runs all contenders on a row, one after the other.
void measure_row(SavinaRow& row, const std::vector<Contender>& contenders) {
  const std::vector<uint64_t> expected = expected_values(*row.benchmark, row.size, row.instances);
  for (size_t i = 0; i < contenders.size(); ++i) {
    if (tools::interrupt_requested()) throw Interrupted{};
    Cell& cell = row.cells[i];
    if (cell.left_out || !cell.refused.empty()) continue;
    const Outcome outcome = contenders[i].run(*row.benchmark, row.size, row.instances);
    if (!outcome.refused.empty()) {
      cell.refused = outcome.refused;
      continue;
    }
    check_values(*row.benchmark, contenders[i].name, expected, outcome.values);
    cell.seconds.push_back(outcome.seconds);
  }
}

std::vector<SavinaRow> rows_of(const SavinaSettings& settings, const std::vector<Contender>& contenders) {
  std::vector<SavinaRow> rows;
  const auto add = [&](const Benchmark& benchmark, const Size& full, size_t i) {
    const uint32_t percent = settings.percents[std::min(i, settings.percents.size() - 1)];
    std::vector<Cell> cells(contenders.size());
    for (size_t c = 0; c < contenders.size(); ++c) cells[c].left_out = contenders[c].one_core && i != 0;
    rows.push_back({&benchmark, settings.instances[i], percent, benchmark.scaled(full, percent), cells});
  };
  for (size_t i = 0; i < settings.instances.size(); ++i) {
    for (const Benchmark& benchmark : benchmarks()) {
      const auto& only = settings.only;
      if (!only.empty() && std::find(only.begin(), only.end(), benchmark.name) == only.end()) continue;
      Size full = benchmark.full;
      for (const uint32_t under_way :
           benchmark.has_window ? settings.under_way : std::vector{full.under_way}) {
        full.under_way = under_way;
        add(benchmark, full, i);
      }
    }
  }
  return rows;
}

std::string text_of(const SavinaRow& row) {
  const std::string text = row.benchmark->text(row.size);
  if (row.size.under_way <= 1 || !row.benchmark->has_window) return text;
  return fmt::format("{}, {} under way", text, row.size.under_way);
}

// The contender with the highest rate; contenders.size() where none was measured.
size_t fastest(const SavinaRow& row) {
  size_t best = row.cells.size();
  for (size_t i = 0; i < row.cells.size(); ++i) {
    if (row.cells[i].seconds.empty()) continue;
    if (best == row.cells.size() || row.rate(i) > row.rate(best)) best = i;
  }
  return best;
}

size_t find(const std::vector<Contender>& contenders, std::string_view name) {
  return size_t(std::find_if(contenders.begin(), contenders.end(),
                             [&](const Contender& contender) { return contender.name == name; }) -
                contenders.begin());
}

void print(std::FILE* out, const std::vector<SavinaRow>& rows, const std::vector<Contender>& contenders) {
  const size_t caf = find(contenders, "caf");
  fmt::print(out, "\nmillion messages between actors a second, medians of the rounds\n");
  fmt::print(out, "{:<21} {:>9}  {:<43} {:>11}", "benchmark", "instances", "an instance", "messages");
  for (const Contender& contender : contenders) fmt::print(out, " {:>13}", contender.name);
  for (size_t i = 0; i < caf && caf < contenders.size(); ++i) {
    if (!contenders[i].one_core) fmt::print(out, " {:>9}", contenders[i].name + "/caf");
  }
  fmt::print(out, "  fastest\n");
  for (const SavinaRow& row : rows) {
    fmt::print(out, "{:<21} {:>9}  {:<43} {:>11}", row.benchmark->name, row.instances, text_of(row),
               row.messages());
    for (size_t i = 0; i < contenders.size(); ++i) {
      const Cell& cell = row.cells[i];
      fmt::print(out, " {:>13}",
                 !cell.refused.empty()  ? "refused"
                 : cell.seconds.empty() ? "-"
                                        : fmt::format("{:.3f}", row.rate(i) * 1e-6));
    }
    for (size_t i = 0; i < caf && caf < contenders.size(); ++i) {
      if (contenders[i].one_core) continue;
      const bool both = !row.cells[i].seconds.empty() && !row.cells[caf].seconds.empty();
      fmt::print(out, " {:>9}", both ? fmt::format("{:.2f}", row.rate(i) / row.rate(caf)) : "-");
    }
    const size_t best = fastest(row);
    fmt::print(out, "  {}\n", best < contenders.size() ? contenders[best].name : "-");
  }
  for (const SavinaRow& row : rows) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      if (row.cells[i].refused.empty()) continue;
      fmt::print(out, "refused: {}, {} instance{}, on {}: {}\n", row.benchmark->name, row.instances,
                 row.instances == 1 ? "" : "s", contenders[i].name, row.cells[i].refused);
    }
  }
}

tools::Json to_json(const std::vector<SavinaRow>& rows, const std::vector<Contender>& contenders) {
  tools::Json json = tools::Json::array();
  const size_t caf = find(contenders, "caf");
  for (const SavinaRow& row : rows) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      const Cell& cell = row.cells[i];
      if (cell.seconds.empty() && cell.refused.empty()) continue;
      json.push_back({{"name", row.benchmark->name},
                      {"engine", contenders[i].name},
                      {"instances", row.instances},
                      {"size_percent", row.percent},
                      {"size", text_of(row)},
                      {"under_way", row.size.under_way},
                      {"messages", row.messages()},
                      {"checked", cell.refused.empty()}});
      if (!cell.refused.empty()) {
        json.back()["refused"] = cell.refused;
        continue;
      }
      json.back()["seconds"] = cell.seconds;
      json.back()["messages_per_s"] = row.rate(i);
      json.back()["fastest"] = fastest(row) == i;
      if (caf < contenders.size() && !row.cells[caf].seconds.empty())
        json.back()["rate_to_caf"] = row.rate(i) / row.rate(caf);
    }
  }
  return json;
}

int run_savina(SavinaSettings& settings) {
  Options& options = settings.options;
  if (const std::string problems = options.problems(); !problems.empty())
    throw BadOptions("measuring Savina's benchmarks: these options are wrong:\n" + problems);
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const uint32_t cpus = std::max(1u, std::thread::hardware_concurrency());
  if (settings.caf_threads == 0) settings.caf_threads = cpus;
  Machine machine = machine_of(options);
  const bool on_cuda = machine.engine == EngineKind::cuda;
  if (settings.cpu_workers == 0) settings.cpu_workers = on_cuda ? cpus : settings.workers.value_or(cpus);
  options.workers = on_cuda ? settings.workers.value_or(workers_of_h100) : settings.cpu_workers;
  machine.options.workers = options.workers;
  options.engine = machine.engine;
  options.transport = machine.transport;
  const std::vector<Contender> contenders = contenders_of(settings);
  std::vector<SavinaRow> rows = rows_of(settings, contenders);
  print(out, machine);
  for (const Contender& contender : contenders)
    fmt::print(out, "{}: {}\n", contender.name, contender.details);
  fmt::print(out,
             "{} round{}, engines interleaved; each run launches anew, and every result is checked\n"
             "not measured: launches; the end of actors, which stay until the launch ends on Gyre\n",
             settings.rounds, settings.rounds == 1 ? "" : "s");
  bool complete = true;
  try {
    for (uint32_t round = 0; round < settings.rounds; ++round) {
      for (SavinaRow& row : rows) measure_row(row, contenders);
    }
  } catch (const Interrupted&) {
    complete = false;
  }
  print(out, rows, contenders);
  tools::Json about = to_json(machine);
  about["rounds"] = settings.rounds;
  tools::Json engines = tools::Json::array();
  for (const Contender& contender : contenders)
    engines.push_back({{"name", contender.name}, {"details", contender.details}});
  tools::write_json(settings.json_file, {{"benchmark", "savina"},
                                         {"machine", about},
                                         {"engines", engines},
                                         {"rows", to_json(rows, contenders)}});
  if (!complete) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_savina(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<SavinaSettings>();
  Options& options = settings->options;
  options.slot_bytes = 64;
  options.timeout = std::chrono::minutes(10);
  const tools::ProgramCommand command = app.add_subcommand(
      "savina", "Benchmarks of the Savina suite on the GPU, on the CPU engine and on CAF, in one run.");
  tools::add_common_options(command, options, settings->json_file);
  command.remove_option("--actors-per-worker");  // each benchmark has what it needs
  command.remove_option("--workers");
  command
      .add_option("--workers", settings->workers,
                  fmt::format("workers of the CUDA engine (default: {}, eight a multiprocessor of an H100); "
                              "without a GPU as --cpu-workers",
                              workers_of_h100))
      .range(1u, 65535u)
      .type_name("N");
  command
      .add_option("--instances", settings->instances,
                  "instances of a benchmark side by side; several numbers are as many rows")
      .range(1u, gyre_savina::most_instances)
      .type_name("N")
      .show_default();
  command
      .add_option("--size-percent", settings->percents,
                  "size of an instance in percent of Savina's; one for each number of instances, or for all")
      .range(1u, 100u)
      .type_name("P")
      .show_default();
  command.add_option("--only", settings->only, "these benchmarks alone: " + names_of_benchmarks())
      .check([](const std::string& value) {
        for (const Benchmark& benchmark : benchmarks()) {
          if (benchmark.name == value) return std::string();
        }
        return value + " must be one of " + names_of_benchmarks();
      })
      .type_name("NAME");
  command
      .add_option("--interleave", settings->rounds, "rounds of all rows; in each one engine after the other")
      .range(1u, 1000u)
      .type_name("R")
      .show_default();
  command.add_option("--cpu-workers", settings->cpu_workers, "workers of the CPU engine; 0: as many as CPUs")
      .range(0u, 65535u)
      .type_name("N")
      .show_default();
  command
      .add_option("--under-way", settings->under_way,
                  "requests of each actor under way in big and concurrent-dictionary, on every engine; 1 is "
                  "Savina's; several numbers are as many rows")
      .range(1u, most_under_way)
      .type_name("N")
      .show_default();
  command.add_flag("--one-core", settings->one_core,
                   "also one worker of the CPU engine, and CAF with one thread; for the first number of "
                   "instances alone");
#if defined(GYRE_BENCH_CAF)
  command.add_option("--caf-threads", settings->caf_threads, "threads of CAF's scheduler; 0: as many as CPUs")
      .range(0u, 65535u)
      .type_name("N")
      .show_default();
  command
      .add_option("--caf-policy", settings->caf_policy,
                  "CAF's scheduler: work stealing, its default, or sharing")
      .one_of({"stealing", "sharing"})
      .show_default();
#endif
  command.footer(
      "Engines: cuda with --engine cuda, cpu, and caf where it was built with -DGYRE_BENCH_CAF=ON.\n"
      "Checked: the result of each instance, against a plain loop. A run that an engine has no room for is "
      "shown as refused, with the reason, and is no error.\n"
      "Exit: 0 every result right, 1 one wrong, 2 bad usage, 3 engine not available here, 130 interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return run_savina(*settings); }; });
}

}  // namespace gyre::bench
