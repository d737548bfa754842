#include "machine.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <gyre/runtime/builtin_actors.hpp>

#include <ctime>
#include <fstream>
#include <thread>

#include "patterns.hpp"

#if defined(GYRE_WITH_CUDA)
#include <gyre/bridge/cuda/driver.hpp>
#endif

namespace gyre::bench {

namespace {

constexpr const char* unknown = "unknown";

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return unknown;
}

std::string kernel_release() {
  utsname names{};
  return uname(&names) == 0 ? std::string(names.sysname) + " " + names.release : unknown;
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc))};
}

// Its words end with a zero byte each.
std::string own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words.empty() ? unknown : command_text(words);
}

#if defined(GYRE_WITH_CUDA)
// The first line reads "NVRM version: NVIDIA UNIX … Kernel Module  580.65.06  Sun …".
std::string nvidia_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  const tools::Found version = tools::search(line, "[0-9]+[.][0-9.]*[0-9]");
  return version.empty() ? unknown : version[0];
}

void describe_gpu(Machine& machine, const Runtime& runtime) {
  machine.gpu = runtime.device_name();
  machine.driver = nvidia_driver();
  const cuda::Driver driver = cuda::Driver::load();
  int version = 0;
  driver.check(driver.cuDriverGetVersion(&version), "reading the CUDA version that the driver supports");
  machine.cuda = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}
#else
void describe_gpu(Machine&, const Runtime&) {}
#endif

}  // namespace

std::string command_text(const std::vector<std::string>& words) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=+@%";
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (i == 0) word.erase(0, word.rfind('/') + 1);
    if (word.empty() || word.find_first_not_of(plain) != std::string::npos) {
      std::string quoted = "'";
      for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
      word = quoted + "'";
    }
    text += (i == 0 ? "" : " ") + word;
  }
  return text;
}

Machine describe_machine(const Runtime& runtime) {
  Machine machine;
  machine.cpu = cpu_model();
  machine.cpus = std::thread::hardware_concurrency();
  machine.kernel = kernel_release();
  machine.compiler = compiler();
  machine.build = GYRE_BENCH_BUILD;
  machine.commit = tools::build_commit();
  machine.command = own_command();
  machine.date = utc_now();
  machine.engine = runtime.engine();
  machine.transport = runtime.transport();
  machine.options = runtime.options();
  if (machine.engine == EngineKind::cuda) describe_gpu(machine, runtime);
  return machine;
}

Machine machine_of(const Options& options) {
  Runtime runtime = Runtime::launch(builtin_actors(), options);
  Machine machine = describe_machine(runtime);
  runtime.terminate(options.timeout);
  return machine;
}

void print(std::FILE* out, const Machine& machine) {
  const Options& options = machine.options;
  const std::string gpu = machine.gpu.empty() ? ""
                                              : fmt::format("; {}, driver {}, CUDA {}", machine.gpu,
                                                            machine.driver, machine.cuda);
  fmt::print(out, "machine: {}, {} CPUs, {}{}; {}, build {}, commit {}; {}\n", machine.cpu, machine.cpus,
             machine.kernel, gpu, machine.compiler, machine.build, machine.commit.text(), machine.date);
  fmt::print(out, "gyre: engine {}, transport {}, waiting {}, {} worker{}, block {}, {} slots of {} bytes\n",
             name(machine.engine), name(machine.transport), name(options.wait), options.workers,
             options.workers == 1 ? "" : "s", options.block, options.slots, options.slot_bytes);
}

tools::Json to_json(const Machine& machine) {
  const Options& options = machine.options;
  return {{"cpu", machine.cpu},
          {"cpus", machine.cpus},
          {"kernel", machine.kernel},
          {"gpu", machine.gpu},
          {"driver", machine.driver},
          {"cuda", machine.cuda},
          {"compiler", machine.compiler},
          {"build", machine.build},
          {"commit", machine.commit.id},
          {"dirty", machine.commit.dirty},
          {"command", machine.command},
          {"date", machine.date},
          {"engine", name(machine.engine)},
          {"transport", name(machine.transport)},
          {"isolation", name(options.isolation)},
          {"context", name(options.context)},
          {"wait", name(options.wait)},
          {"workers", options.workers},
          {"block", options.block},
          {"slots", options.slots},
          {"slot_bytes", options.slot_bytes}};
}

}  // namespace gyre::bench
