// gyre-bench idle: what idle workers cost, in processor time and in watts.
#include <fmt/format.h>
#include <gyre/runtime/builtin_actors.hpp>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "common_options.hpp"
#include "machine.hpp"
#include "nvml.hpp"
#include "subcommands.hpp"

#if defined(GYRE_WITH_CUDA)
#include <gyre/bridge/cuda/driver.hpp>
#endif

namespace gyre::bench {

namespace {

struct IdleSettings {
  Options options;
  double seconds = 10;
  std::string json_file;
};

struct IdleRow {
  std::string name;
  double seconds = 0;
  double processors = 0;        // of this process and its engine process, on average
  std::optional<double> watts;  // of the GPU, on average; none where NVML does not tell
};

double seconds_used(clockid_t clock) {
  timespec used{};
  clock_gettime(clock, &used);
  return double(used.tv_sec) + double(used.tv_nsec) / 1e9;
}

double processor_seconds() {
  double seconds = seconds_used(CLOCK_PROCESS_CPUTIME_ID);
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(thread.path() / "children");
    pid_t child = 0;
    clockid_t clock{};
    while (children >> child)
      if (clock_getcpuclockid(child, &clock) == 0) seconds += seconds_used(clock);
  }
  return seconds;
}

// Sleeps; false where the user interrupted it.
bool idle_for(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    if (tools::interrupt_requested()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

IdleRow measure_idle(const std::string& name, double seconds, const std::string& pci_bus_id) {
  using Clock = std::chrono::steady_clock;
  IdleRow row{name, 0, 0, {}};
  const auto joules = [&] { return pci_bus_id.empty() ? std::nullopt : tools::gpu_joules(pci_bus_id); };
  idle_for(seconds / 10);  // clocks and power settle
  const std::optional<double> joules_before = joules();
  const double busy_before = processor_seconds();
  const auto begin = Clock::now();
  idle_for(seconds);
  row.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  row.processors = (processor_seconds() - busy_before) / row.seconds;
  const std::optional<double> joules_after = joules();
  if (joules_before && joules_after) row.watts = (*joules_after - *joules_before) / row.seconds;
  return row;
}

std::string pci_bus_id_of(EngineKind engine, int device) {
#if defined(GYRE_WITH_CUDA)
  if (engine == EngineKind::cuda) {
    const cuda::Driver driver = cuda::Driver::load();
    char text[32] = {};
    driver.check(driver.cuDeviceGetPCIBusId(text, int(sizeof text), cuda::find_device(driver, device)),
                 "reading the device's PCI bus id");
    return text;
  }
#endif
  (void)engine;
  (void)device;
  return {};
}

int idle(const IdleSettings& settings) {
  const Options& options = settings.options;
  if (const std::string problems = options.problems(); !problems.empty())
    throw BadOptions("measuring idle workers: these options are wrong:\n" + problems);
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Machine machine = machine_of(options);
  const std::string pci_bus_id = pci_bus_id_of(machine.engine, options.device);
  print(out, machine);
  fmt::print(out,
             "{} s a row after a tenth as long: {} workers that nobody asks, and none\n"
             "not measured: the rest of the machine; watts are the whole GPU's, by its own energy counter\n",
             settings.seconds, options.workers);
  std::vector<IdleRow> rows;
  rows.push_back(measure_idle("nothing launched", settings.seconds, pci_bus_id));
  if (!tools::interrupt_requested()) {
    Runtime runtime = Runtime::launch(builtin_actors(), options);
    rows.push_back(measure_idle("workers idle", settings.seconds, pci_bus_id));
    const Termination termination = runtime.terminate(options.timeout);
    if (termination.worker_stuck || !termination.books.balanced())
      throw Error("ending the idle workers: one is stuck, or the books do not balance; please report it");
  }
  fmt::print(out, "\n{:<18} {:>9} {:>12} {:>10}\n", "row", "seconds", "processors", "GPU watts");
  tools::Json json_rows = tools::Json::array();
  for (const IdleRow& row : rows) {
    fmt::print(out, "{:<18} {:>9.2f} {:>12.4f} {:>10}\n", row.name, row.seconds, row.processors,
               row.watts ? fmt::format("{:.1f}", *row.watts) : "-");
    json_rows.push_back({{"name", row.name}, {"seconds", row.seconds}, {"processors", row.processors}});
    if (row.watts) json_rows.back()["watts"] = *row.watts;
  }
  if (machine.engine == EngineKind::cuda && !rows.back().watts)
    fmt::print(out, "watts: NVML is not installed here, or does not tell this device's energy\n");
  tools::write_json(settings.json_file,
                    {{"benchmark", "idle"}, {"machine", to_json(machine)}, {"rows", json_rows}});
  if (tools::interrupt_requested()) {
    fmt::print(out, "interrupted: rows are shorter than asked for\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_idle(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<IdleSettings>();
  const tools::ProgramCommand command =
      app.add_subcommand("idle", "What workers that nobody asks cost: processor time, and the GPU's watts.");
  tools::add_common_options(command, settings->options, settings->json_file);
  command.add_option("--seconds", settings->seconds, "how long each row is")
      .range(0.01, 36000.0)
      .show_default();
  command.footer(
      "Rows: nothing launched (CUDA is initialised all the same), workers idle. processors: this process's "
      "time "
      "over the time that passed.\n"
      "Exit: 0 measured, 1 a worker is stuck, 2 bad usage, 3 engine not available here, 130 interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return idle(*settings); }; });
}

}  // namespace gyre::bench
