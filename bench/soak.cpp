// gyre-bench soak: very many messages through Gyre's own rings, every packet of each checked.
#include "soak_echo.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <gyre/bridge/heap.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <csignal>
#include <ctime>
#include <memory>
#include <thread>

#include "common_options.hpp"
#include "gaps.hpp"
#include "machine.hpp"
#include "soak_host.hpp"
#include "subcommands.hpp"

#if defined(GYRE_WITH_CUDA)
#include "baselines/bare_run.hpp"
#include "baselines/raw_memory.hpp"
#include "baselines/soak_kernel_host.hpp"
#endif

namespace gyre::bench {

namespace {

struct SoakSettings {
  Options options;
  SoakPlan plan;
  double messages = 1e6;
  std::string packets = "4";
  bool preempt = false;
  std::string json_file;
};

// Interrupts the producers at random moments, wherever they are, for some 50 µs each time.
class Preempter {
 public:
  explicit Preempter(const SoakHost& host) : host_(host) {
    struct sigaction action {};
    action.sa_handler = [](int) {
      const int before = errno;
      const timespec nap{0, 50'000};
      nanosleep(&nap, nullptr);
      errno = before;
    };
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, &before_);
  }
  ~Preempter() { sigaction(SIGUSR1, &before_, nullptr); }
  Preempter(const Preempter&) = delete;
  Preempter& operator=(const Preempter&) = delete;

  /// Interrupts one of them. The producers must not be joined meanwhile.
  void preempt() {
    const std::vector<pthread_t> producers = host_.producers();
    if (producers.empty()) return;
    pthread_kill(producers[random_.below(uint32_t(producers.size()))], SIGUSR1);
    ++times_;
  }
  uint64_t times() const { return times_; }

 private:
  const SoakHost& host_;
  struct sigaction before_ {};
  Xorshift random_;
  uint64_t times_ = 0;
};

class Progress {
 public:
  Progress(const SoakHost& host, uint64_t messages)
      : host_(host), messages_(messages), shown_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_ && looks_ >= looks_a_line) fmt::print(stderr, "\n");
  }
  void look() {
    if (!shown_ || ++looks_ % looks_a_line != 0) return;
    fmt::print(stderr, "\r{} of {} messages came back", host_.received(), messages_);
    std::fflush(stderr);
  }

 private:
  static constexpr uint32_t looks_a_line = 250;  // about half a second
  const SoakHost& host_;
  const uint64_t messages_;
  const bool shown_;
  uint32_t looks_ = 0;
};

struct Soaked {
  SoakFigures figures;
  uint64_t preemptions = 0;
};

// `look()` throws where the workers have ended.
Soaked run(const SoakSettings& settings, const std::vector<Bridge>& bridges,
           const std::function<void()>& look, const std::vector<BarBridge>& bar = {}) {
  SoakHost host(bridges, settings.plan, bar);
  Preempter preempter(host);
  Progress progress(host, settings.plan.messages);
  Soaked soaked;
  soaked.figures = host.run([&] {
    look();
    progress.look();
    if (settings.preempt) preempter.preempt();
  });
  soaked.preemptions = preempter.times();
  return soaked;
}

// Workers that are threads of this process.
class EchoThreads {
 public:
  explicit EchoThreads(const std::vector<Bridge>& bridges) {
    for (const Bridge& bridge : bridges) {
      threads_.emplace_back([this, bridge] {
        uint32_t payload[most_soak_words];
        soak_echo<Memory>(SingleThread{}, bridge.h2d, bridge.d2h, bridge.worker_line->h2d_credit,
                          bridge.shape, payload, [&](uint32_t empty_polls) {
                            if (empty_polls % 1024 == 0) std::this_thread::yield();
                            return stopping_.load(std::memory_order_relaxed);
                          });
      });
    }
  }
  ~EchoThreads() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  EchoThreads(const EchoThreads&) = delete;
  EchoThreads& operator=(const EchoThreads&) = delete;

 private:
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

Soaked soak_on_cpu(const SoakSettings& settings) {
  const RegionLayout layout{settings.options.workers, settings.options.ring_shape()};
  const HeapRegion region(layout.region_bytes(), layout.region_bytes());
  std::vector<Bridge> bridges;
  for (uint32_t worker = 0; worker < layout.workers; ++worker)
    bridges.push_back(Bridge::of(region.address(), layout, worker));
  const EchoThreads threads(bridges);
  return run(settings, bridges, [] {});
}

#if defined(GYRE_WITH_CUDA)
Soaked soak_on_cuda(const SoakSettings& settings) {
  const Options& options = settings.options;
  CudaKernel kernel(options.device, compile_soak_kernel);
  RawMemory memory(kernel.context(), options.transport, options.workers, options.ring_shape(),
                   settings.plan.most_packets);
  std::vector<Bridge> bridges;
  std::vector<BarBridge> bar;
  for (uint32_t worker = 0; worker < options.workers; ++worker) {
    bridges.push_back(memory.bridge(worker));
    bar.push_back(memory.bar_bridge(worker));
  }
  RawRings rings = memory.on_device();
  void* arguments[] = {&rings};
  kernel.launch(32, arguments, options.workers);
  BareEnd end(
      kernel, "soak", [&] { memory.command_stop(); }, [&] { memory.leak(); });
  const auto look = [&] {
    if (!kernel.ended()) return;
    kernel.check_ended();
    throw Error(
        "soaking: the kernel ended by itself: a slot it read was corrupt, or half a minute passed without "
        "a message");
  };
  const Soaked soaked = run(settings, bridges, look, bar);
  end.end();
  return soaked;
}
#endif

// "4" or "3-32".
void read_packets(SoakSettings& settings) {
  SoakPlan& plan = settings.plan;
  const int read = std::sscanf(settings.packets.c_str(), "%u-%u", &plan.least_packets, &plan.most_packets);
  if (read == 1) plan.most_packets = plan.least_packets;
  const uint32_t most = most_soak_slot_bytes / uint32_t(sizeof(Packet));
  if (read < 1 || plan.least_packets < 3 || plan.most_packets > most ||
      plan.least_packets > plan.most_packets) {
    throw BadOptions(
        fmt::format("--packets {}: must be a number or a range, 3 to {}: an envelope alone takes 3",
                    settings.packets, most));
  }
}

int soak(SoakSettings& settings) {
  read_packets(settings);
  Options& options = settings.options;
  SoakPlan& plan = settings.plan;
  plan.messages = uint64_t(settings.messages);
  plan.timeout = options.timeout;
  options.slot_bytes = (plan.most_packets * uint32_t(sizeof(Packet)) + 63) / 64 * 64;
  if (const std::string problems = options.problems(); !problems.empty())
    throw BadOptions("soaking: these options are wrong:\n" + problems);
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Machine machine = machine_of(options);
  options.engine = machine.engine;
  options.transport = machine.transport;
  print(out, machine);
  fmt::print(
      out,
      "{} messages of {} packets from {} producers to {} workers that echo them, through the rings of "
      "bridge/ring.hpp and the host bridges of the runtime{}\n"
      "checked: every stamp and every word of every message both ways, the order of each producer's messages "
      "at each worker, the number of all and the sum of their words\n"
      "not measured: latency; actors and the client API have no part in it\n",
      plan.messages, settings.packets, plan.threads, options.workers,
      settings.preempt ? "; producers are interrupted at random moments" : "");
  std::fflush(out);
  Soaked soaked;
#if defined(GYRE_WITH_CUDA)
  if (machine.engine == EngineKind::cuda) {
    soaked = soak_on_cuda(settings);
  } else
#endif
  {
    soaked = soak_on_cpu(settings);
  }
  const SoakFigures& figures = soaked.figures;
  if (tools::interrupt_requested()) {
    fmt::print(out, "interrupted after {} messages, of which none was wrong\n", figures.messages);
    return tools::interrupted;
  }
  fmt::print(
      out,
      "{} messages ({} packets each way) in {:.1f} s, {:.0f} a second; checksum {:016x}; {} interruptions\n"
      "none lost, none doubled, none torn, none out of order\n",
      figures.messages, figures.packets, figures.seconds, double(figures.messages) / figures.seconds,
      figures.checksum, soaked.preemptions);
  tools::write_json(settings.json_file,
                    {{"benchmark", "soak"},
                     {"machine", to_json(machine)},
                     {"rows",
                      {{{"name", "soak"},
                        {"transport", name(options.transport)},
                        {"workers", options.workers},
                        {"threads", plan.threads},
                        {"least_packets", plan.least_packets},
                        {"most_packets", plan.most_packets},
                        {"messages", figures.messages},
                        {"packets", figures.packets},
                        {"checksum", figures.checksum},
                        {"preemptions", soaked.preemptions},
                        {"seconds", figures.seconds},
                        {"messages_per_s", double(figures.messages) / figures.seconds}}}}});
  return tools::all_passed;
}

}  // namespace

void add_soak(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<SoakSettings>();
  settings->options.wait = WaitPolicy::spin;
  const tools::ProgramCommand command =
      app.add_subcommand("soak", "Very many messages through Gyre's rings, every packet of each checked.");
  tools::add_common_options(command, settings->options, settings->json_file);
  command.remove_option("--slot-bytes");
  command.add_option("--messages", settings->messages, "messages in all, 1e9 for one")
      .range(1.0, 1e15)
      .type_name("N")
      .show_default();
  command
      .add_option(
          "--packets", settings->packets,
          "packets of a message, a number or a range to choose from at random: 4 (a 64-byte slot), 3-32")
      .type_name("N|N-N")
      .show_default();
  command.add_option("--threads", settings->plan.threads, "producing threads, each to every worker")
      .range(1u, 64u)
      .show_default();
  command.add_flag("--preempt", settings->preempt,
                   "interrupt the producers at random moments, between the packets of a message too");
  command.footer(
      "Ends with an error where nothing comes back for --timeout milliseconds.\n"
      "Exit: 0 every message right, 1 one lost, doubled, torn or out of order, 2 bad usage, 3 engine not "
      "available "
      "here, 130 interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return soak(*settings); }; });
}

}  // namespace gyre::bench
