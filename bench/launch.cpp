// gyre-bench launch: from a process's start to its first checked reply, beside a bare process that does as
// much without Gyre.
#include <fmt/format.h>
#include <gyre/device/builtin/echo.hpp>
#include <gyre/device/builtin/vector_add.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre_builtin_actors_sources.hpp>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <thread>

#include "common_options.hpp"
#include "gyre_run.hpp"
#include "machine.hpp"
#include "measure.hpp"
#include "programs.hpp"
#include "subcommands.hpp"
#include "temporary_folder.hpp"

#if defined(GYRE_WITH_CUDA)
#include "baselines/bare_run.hpp"
#include "baselines/raw.hpp"
#include "baselines/raw_memory.hpp"
#endif

namespace gyre::bench {

namespace {

constexpr uint32_t echo_bytes = 64;

struct LaunchSettings {
  Options options;
  uint32_t runs = 20;
  bool cold = false;
  std::string json_file;
};

// What one process reports of itself.
struct Sample {
  uint64_t first_reply_ns = 0;  // from its start
  uint64_t launch_ns = 0;       // Runtime::launch alone; 0 of a bare process
  uint64_t terminate_ns = 0;
};

// All processes share the clock.
uint64_t ns_of(std::chrono::steady_clock::time_point time) {
  return uint64_t(std::chrono::nanoseconds(time.time_since_epoch()).count());
}
uint64_t now_ns() { return ns_of(std::chrono::steady_clock::now()); }

// A process's part: it prints the moment of its first reply and how long its other steps took.
void print_sample(uint64_t first_reply_at_ns, uint64_t launch_ns, uint64_t terminate_ns) {
  std::cout << tools::Json{{"first_reply_at_ns", first_reply_at_ns},
                           {"launch_ns", launch_ns},
                           {"terminate_ns", terminate_ns}}
                   .text()
            << std::endl;
}

// The built-in actors as if they were not compiled ahead: what is measured is a launch that looks for them in
// the cache, or compiles them.
ActorSet actors_to_compile() {
  ActorSources sources = gyre_builtin_actors::sources;
  sources.ahead = {};
  return ActorSet::of<actors::Echo, actors::VectorAdd>(sources);
}

int gyre_sample(const Options& options) {
  const uint64_t begin = now_ns();
  Runtime runtime = Runtime::launch(actors_to_compile(), options);
  const uint64_t launched = now_ns();
  Client client = runtime.client();
  constexpr uint64_t sequence = 0x123456789abcdef0u;
  const auto fill = [](messages::EchoRequest::Builder request) {
    request.setSequence(sequence);
    request.initPayload(5).set(4, ~sequence);
  };
  {
    const auto reply = client.ask<messages::EchoRequest>(Address<actors::Echo>{}, fill).get();
    if (!reply) throw Error("asking for the first time: " + reply.error().message(), reply.error().status);
    const auto& response = *reply.value();
    if (response.getSequence() != sequence || response.getPayload().size() != 5 ||
        response.getPayload()[4] != ~sequence)
      throw Error("asking for the first time: the reply is another message; please report it");
  }
  const uint64_t replied = now_ns();
  const Termination termination = runtime.terminate(options.timeout);
  const uint64_t ended = now_ns();
  if (termination.worker_stuck || !termination.books.balanced() || termination.books.asks.answered != 1)
    throw Error("ending the first launch: its books do not balance, or a worker is stuck; please report it");
  print_sample(replied, launched - begin, ended - replied);
  return tools::all_passed;
}

// On the CPU: a thread that echoes a word.
int bare_cpu_sample() {
  std::atomic<uint64_t> request{0}, response{0};
  std::thread echo([&] {
    uint64_t value;
    while ((value = request.load(std::memory_order_acquire)) == 0) std::this_thread::yield();
    response.store(value, std::memory_order_release);
  });
  request.store(7, std::memory_order_release);
  while (response.load(std::memory_order_acquire) != 7) std::this_thread::yield();
  const uint64_t replied = now_ns();
  echo.join();
  print_sample(replied, 0, now_ns() - replied);
  return tools::all_passed;
}

#if defined(GYRE_WITH_CUDA)
std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty()) throw Error("reading the compiled kernel " + path + ": it cannot be read");
  return text;
}

// Initialises CUDA, loads a kernel compiled before, makes the rings, launches, and has one message echoed.
int bare_cuda_sample(const Options& options, const std::string& cubin, const std::string& kernel_name) {
  CudaKernel kernel(options.device, [&](int) {
    cuda::CompiledKernel compiled;
    compiled.cubin = read_file(cubin);
    compiled.lowered_name = kernel_name;
    return compiled;
  });
  uint32_t packets = packets_for(echo_bytes);
  RawMemory memory(kernel.context(), options.transport, options.workers, options.ring_shape(), packets);
  RawRings rings = memory.on_device();
  void* arguments[] = {&rings, &packets};
  kernel.launch(32, arguments, options.workers);
  BareEnd end(
      kernel, "bare", [&] { memory.command_stop(); }, [&] { memory.leak(); });
  BareWait wait(kernel, options.timeout);
  std::vector<uint64_t> sent((sizeof(Envelope) + echo_bytes) / 8 + 1), got(sent.size() + 1);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = (i + 1) * 0x9e3779b97f4a7c15u;
  memory.send(0, 0, sent.data());
  while (!memory.try_receive(0, 0, got.data())) wait.poll([] { return std::string("the first message"); });
  const uint64_t replied = now_ns();
  for (size_t i = 0; i + 1 < sent.size(); ++i) {
    if (got[i] != sent[i]) throw Error("echoing the first message: another came back; please report it");
  }
  end.end();
  print_sample(replied, 0, now_ns() - replied);
  return tools::all_passed;
}
#endif

struct LaunchRow {
  std::string name;
  std::vector<uint64_t> first_reply_ns, launch_ns, terminate_ns;

  void add(const Sample& sample) {
    first_reply_ns.push_back(sample.first_reply_ns);
    launch_ns.push_back(sample.launch_ns);
    terminate_ns.push_back(sample.terminate_ns);
  }
};

// Runs this very program.
Sample sample_of(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  tools::ProgramRun run{.command = {"/proc/self/exe"}, .environment = environment, .keeps_errors = false};
  run.command.insert(run.command.end(), arguments.begin(), arguments.end());
  const tools::ProgramResult result = tools::run_program(run);
  if (result.exit_code != 0) {
    throw Error(
        fmt::format("a process started to be measured (gyre-bench {}) ended with {} {}; its own message, if "
                    "any, is above",
                    arguments.front(), result.signal == 0 ? "exit code" : "signal",
                    result.signal == 0 ? result.exit_code : result.signal));
  }
  const auto json = tools::Json::parse(result.output);
  if (!json.has("first_reply_at_ns"))
    throw Error("a process started to be measured printed no figures, but: " + result.output);
  return {json["first_reply_at_ns"].as_uint64() - ns_of(result.started), json["launch_ns"].as_uint64(),
          json["terminate_ns"].as_uint64()};
}

std::vector<std::string> sample_arguments(const char* subcommand, const Options& options) {
  std::vector<std::string> arguments = arguments_of(options);
  arguments.insert(arguments.begin(), subcommand);
  return arguments;
}

int launch(LaunchSettings& settings) {
  Options& options = settings.options;
  if (const std::string problems = options.problems(); !problems.empty())
    throw BadOptions("measuring launches: these options are wrong:\n" + problems);
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Machine machine = machine_of(options);
  options.engine = machine.engine;
  options.transport = machine.transport;
  const tools::TemporaryFolder warm, cold, bare_folder;
  std::vector<std::string> bare = sample_arguments("bare-sample", options);
#if defined(GYRE_WITH_CUDA)
  if (machine.engine == EngineKind::cuda) {
    const cuda::Driver driver = cuda::Driver::load();
    const cuda::Context context(driver, options.device);
    const int architecture = 10 * context.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                             context.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    const cuda::CompiledKernel kernel = compile_raw_kernel(architecture, echo_bytes, 1);
    const std::string path = bare_folder.path() + "/bare.cubin";
    std::ofstream(path, std::ios::binary) << kernel.cubin;
    bare.insert(bare.end(), {"--cubin", path, "--kernel", kernel.lowered_name});
  }
#endif
  print(out, machine);
  fmt::print(
      out,
      "{} processes a row, in turn: from before each is started to its first checked reply; arena {} bytes\n"
      "not measured: the machine's first use of the GPU (this process has used it before)\n",
      settings.runs, options.arena_bytes);
  const std::vector<std::string> gyre = sample_arguments("launch-sample", options);
  std::vector<LaunchRow> rows = {{"gyre", {}, {}, {}}, {"bare", {}, {}, {}}};
  if (settings.cold) rows.push_back({"gyre cold", {}, {}, {}});
  // Uncounted: what is compiled is kept there, and files are read for the first time.
  sample_of(gyre, {"GYRE_CACHE_DIR=" + warm.path()});
  sample_of(bare, {});
  for (uint32_t run = 0; run < settings.runs && !tools::interrupt_requested(); ++run) {
    try {
      rows[0].add(sample_of(gyre, {"GYRE_CACHE_DIR=" + warm.path()}));
      rows[1].add(sample_of(bare, {}));
      if (!settings.cold) continue;
      cold.empty();
      rows[2].add(sample_of(gyre, {"GYRE_CACHE_DIR=" + cold.path()}));
    } catch (const Error&) {
      if (!tools::interrupt_requested()) throw;  // a terminal interrupts the processes too
    }
  }

  fmt::print(out, "\n{:<10} {:>6} {:>15} {:>9} {:>9} {:>15} {:>18} {:>9} {:>10}\n", "row", "runs",
             "first reply ms", "p99", "max", "launch ms", "terminate ms", "max", "p50/bare");
  tools::Json json_rows = tools::Json::array();
  const Summary reference = summarise(rows[1].first_reply_ns);
  const auto ms = [](uint64_t ns) { return double(ns) / 1e6; };
  for (const LaunchRow& row : rows) {
    const Summary first = summarise(row.first_reply_ns), launched = summarise(row.launch_ns),
                  ended = summarise(row.terminate_ns);
    const double ratio = reference.p50_ns == 0 ? 0 : double(first.p50_ns) / double(reference.p50_ns);
    fmt::print(out, "{:<10} {:>6} {:>15.2f} {:>9.2f} {:>9.2f} {:>15.2f} {:>18.2f} {:>9.2f} {:>10.2f}\n",
               row.name, first.messages, ms(first.p50_ns), ms(first.p99_ns), ms(first.max_ns),
               ms(launched.p50_ns), ms(ended.p50_ns), ms(ended.max_ns), ratio);
    json_rows.push_back({{"name", row.name},
                         {"runs", first.messages},
                         {"p50_ns", first.p50_ns},
                         {"p99_ns", first.p99_ns},
                         {"max_ns", first.max_ns},
                         {"launch_p50_ns", launched.p50_ns},
                         {"launch_p99_ns", launched.p99_ns},
                         {"terminate_p50_ns", ended.p50_ns},
                         {"terminate_max_ns", ended.max_ns},
                         {"p50_ratio", ratio},
                         {"samples_ns", row.first_reply_ns}});
  }
  tools::Json about = to_json(machine);
  about["arena_bytes"] = options.arena_bytes;
  tools::write_json(
      settings.json_file,
      {{"benchmark", "launch"}, {"machine", about}, {"reference", "bare"}, {"rows", json_rows}});
  if (tools::interrupt_requested()) {
    fmt::print(out, "interrupted: not all runs were made\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_launch(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<LaunchSettings>();
  const tools::ProgramCommand command = app.add_subcommand(
      "launch", "From a process's start to its first checked reply, and terminating, beside a bare process.");
  tools::add_common_options(command, settings->options, settings->json_file);
  command.add_option("--runs", settings->runs, "processes a row")
      .range(1u, 100'000u)
      .type_name("N")
      .show_default();
  command.add_flag(
      "--cold", settings->cold,
      "measure besides with nothing found compiled: a row that begins with an empty cache each time");
  command.footer(
      "Rows: gyre (actors found compiled, in a cache of this run's own, not compiled ahead), bare (CUDA: "
      "initialise, context, "
      "load a "
      "kernel compiled before, rings on the same transport, launch, echo; CPU: a thread that echoes a word), "
      "gyre "
      "cold. first reply: from before the process is started; launch: Runtime::launch; terminate: of a bare "
      "process, ending its kernel.\n"
      "Exit: 0 every reply right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return launch(*settings); }; });
}

void add_launch_samples(tools::ProgramCommand app, std::function<int()>& chosen) {
  struct SampleSettings {
    Options options;
    std::string cubin, kernel, json_file;
  };
  auto settings = std::make_shared<SampleSettings>();
  const tools::ProgramCommand gyre = app.add_subcommand("launch-sample", "One process of gyre-bench launch.");
  gyre.hide();
  tools::add_common_options(gyre, settings->options, settings->json_file);
  gyre.when_chosen([settings, &chosen] { chosen = [settings] { return gyre_sample(settings->options); }; });
  const tools::ProgramCommand bare =
      app.add_subcommand("bare-sample", "One bare process of gyre-bench launch.");
  bare.hide();
  tools::add_common_options(bare, settings->options, settings->json_file);
  bare.add_option("--cubin", settings->cubin);
  bare.add_option("--kernel", settings->kernel);
  bare.when_chosen([settings, &chosen] {
    chosen = [settings] {
#if defined(GYRE_WITH_CUDA)
      if (!settings->cubin.empty())
        return bare_cuda_sample(settings->options, settings->cubin, settings->kernel);
#endif
      return bare_cpu_sample();
    };
  });
}

}  // namespace gyre::bench
