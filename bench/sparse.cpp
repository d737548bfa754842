// gyre-bench sparse: asks with pauses between them, asks whose handler takes long, and workers that idle:
// where waiting politely costs time, and where it costs a processor.
#include <fmt/format.h>
#include <time.h>
#include <bench/actors/ping.hpp>
#include <bench/actors/ping.official.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre_bench_actors_sources.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include "affinity.hpp"
#include "baselines/futex.hpp"
#include "common_options.hpp"
#include "echo_asks.hpp"
#include "gyre_rows.hpp"
#include "gyre_run.hpp"
#include "machine.hpp"
#include "rows.hpp"
#include "subcommands.hpp"

namespace gyre::bench {

namespace {

using std::chrono::microseconds;

struct SparseSettings {
  Plan plan;
  std::vector<uint32_t> times_us = {100, 1000, 5000};
  uint32_t size = 64;
  uint32_t rounds = 3;
  uint32_t idle_workers = 2;
  double idle_seconds = 2;
  std::string json_file;
};

// Where the two threads of a row after a pause run. A system's scheduler puts them on one CPU or on two as it
// likes, and waking another CPU takes several times as long, so rows are measured with pinned threads too.
struct Placement {
  std::string kind;
  std::optional<int> asker, worker;
};
constexpr const char* slow_handler = "slow handler";
constexpr const char* after_pause = "after a pause";  // and what such a kind begins with

bool is_after_pause(const std::string& kind) { return kind.starts_with(after_pause); }

std::vector<Placement> placements(EngineKind engine) {
  std::vector<Placement> all = {{after_pause, {}, {}}};
  if (engine != EngineKind::cpu) return all;
  const std::vector<int> cpus = allowed_cpus();
  all.push_back({fmt::format("{}, one CPU", after_pause), cpus[0], cpus[0]});
  if (cpus.size() > 1) all.push_back({fmt::format("{}, two CPUs", after_pause), cpus[0], cpus[1]});
  return all;
}

// One round's samples, and what they cost: the measuring thread while it waited for them, and the whole
// process, pauses too.
struct SparseRow {
  std::string kind;  // one of after_pause, slow_handler
  uint32_t time_us = 0;
  Row row;
  double caller_ns = 0;   // a message; 0: not measured
  double process_ns = 0;  // a message; 0: not measured
};

double processor_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return double(time.tv_sec) * 1e9 + double(time.tv_nsec);
}

// `prepare()` comes before each message, `round_trip()` is timed.
template <class Prepare, class RoundTrip>
void measure_costs(const Plan& plan, SparseRow& into, Prepare&& prepare, RoundTrip&& round_trip) {
  double caller_ns = 0, begin_ns = 0;
  const double process_begin_ns = processor_ns(CLOCK_PROCESS_CPUTIME_ID);
  uint64_t messages = 0;
  into.row.record(measure(
      plan,
      [&] {
        if (messages != 0) caller_ns += processor_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
        ++messages;
        prepare();
        begin_ns = processor_ns(CLOCK_THREAD_CPUTIME_ID);
      },
      round_trip));
  caller_ns += processor_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
  into.caller_ns = caller_ns / double(messages);
  into.process_ns = (processor_ns(CLOCK_PROCESS_CPUTIME_ID) - process_begin_ns) / double(messages);
}

Row gyre_row(const Plan& plan, uint32_t size) {
  return Row{.name = fmt::format("gyre {}", name(plan.options.wait)),
             .size = size,
             .wait = std::string(name(plan.options.wait)),
             .workers = plan.options.workers};
}

SparseRow measure_gyre_after_pause(Plan plan, const Placement& placement, WaitPolicy wait, uint32_t size,
                                   uint32_t pause_us) {
  plan.options.wait = wait;
  if (placement.worker) plan.options.pin_workers = {*placement.worker};
  SparseRow result{placement.kind, pause_us, gyre_row(plan, size)};
  EchoMessage message(fmt::format("{} after {} us", result.row.name, pause_us),
                      1 + (size - echo_overhead_bytes) / sizeof(uint64_t));
  run_on_gyre(builtin_actors(), plan.options, result.row.name, [&](Runtime& runtime) {
    result.row.transport = name(runtime.transport());
    Client client = runtime.client();
    const Pinned here(pthread_self(), placement.asker);
    measure_costs(
        plan, result,
        [&] {
          message.next();
          std::this_thread::sleep_for(microseconds(pause_us));
        },
        [&] {
          expect_echo(message,
                      client.ask<messages::EchoRequest>(Address<actors::Echo>{}, filling(message)).get());
        });
  });
  return result;
}

SparseRow measure_gyre_slow(Plan plan, WaitPolicy wait, uint32_t work_us) {
  plan.options.wait = wait;
  SparseRow result{slow_handler, work_us, gyre_row(plan, 16)};
  uint64_t value = 0;
  const ActorSet actors = ActorSet::of<gyre_bench::SlowPinger>(gyre_bench_actors::sources);
  run_on_gyre(actors, plan.options, result.row.name, [&](Runtime& runtime) {
    result.row.transport = name(runtime.transport());
    Client client = runtime.client();
    measure_costs(
        plan, result, [&] { ++value; },
        [&] {
          const auto reply = client
                                 .ask<gyre_bench::SlowPing>(Address<gyre_bench::SlowPinger>{},
                                                            [&](gyre_bench::SlowPing::Builder request) {
                                                              request.setValue(value);
                                                              request.setNs(uint64_t(work_us) * 1000);
                                                            })
                                 .get();
          if (!reply)
            throw Error(fmt::format("asking for {} us of work: {}", work_us, reply.error().message()),
                        reply.error().status);
          if (const uint64_t got = reply.value()->getValue(); got != gyre_bench::ping_answer(value))
            throw Error(fmt::format("asking for {} us of work: the answer is 0x{:x}, not 0x{:x}", work_us,
                                    got, gyre_bench::ping_answer(value)));
        });
  });
  return result;
}

SparseRow measure_bare_futex(Plan plan, const Placement& placement, uint32_t size, uint32_t pause_us) {
  plan.own_cpu = placement.asker;
  plan.baseline_cpu = placement.worker;
  SparseRow result{placement.kind, pause_us, {}};
  result.row = measure_futex(plan, size, microseconds(pause_us));
  return result;
}

// What idle polite workers take, each, of a processor: the process's time without the measuring thread's.
double measure_idle_worker(Options options, uint32_t workers, double seconds) {
  using Clock = std::chrono::steady_clock;
  options.wait = WaitPolicy::polite;
  options.workers = workers;
  double processors = 0;
  run_on_gyre(builtin_actors(), options, "idle", [&](Runtime&) {
    const auto busy_ns = [] {
      return processor_ns(CLOCK_PROCESS_CPUTIME_ID) - processor_ns(CLOCK_THREAD_CPUTIME_ID);
    };
    const auto idle_for = [](double s) {
      const auto end = Clock::now() + std::chrono::duration<double>(s);
      while (Clock::now() < end && !tools::interrupt_requested())
        std::this_thread::sleep_for(
            std::min<std::chrono::duration<double>>(end - Clock::now(), std::chrono::milliseconds(100)));
    };
    idle_for(seconds / 10);
    const double before_ns = busy_ns();
    const auto begin = Clock::now();
    idle_for(seconds);
    processors =
        (busy_ns() - before_ns) / std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  });
  return processors / workers;
}

// The rows of all rounds, by kind, time and name.
class SparseRows {
 public:
  void add(SparseRow row) {
    if (row.row.summary.messages == 0) return;  // interrupted
    for (auto& [kind, time_us, rows, caller_ns, process_ns] : groups_) {
      if (kind != row.kind || time_us != row.time_us) continue;
      for (size_t i = 0; i < rows.all().size(); ++i) {
        if (rows.all()[i].name != row.row.name) continue;
        caller_ns[i].push_back(row.caller_ns);
        process_ns[i].push_back(row.process_ns);
        return rows.add(std::move(row.row));
      }
      caller_ns.push_back({row.caller_ns});
      process_ns.push_back({row.process_ns});
      return rows.add(std::move(row.row));
    }
    groups_.push_back(
        {row.kind, row.time_us, Rows(is_after_pause(row.kind) ? "futex" : "gyre spin"), {}, {}});
    add(std::move(row));
  }

  void print(std::FILE* out) const {
    fmt::print(out, "\n{:<23} {:>7} {:<12} {:>9} {:>9} {:>9} {:>10} {:>9} {:>10} {:>12}\n", "kind", "us",
               "row", "p50 ns", "p99 ns", "p99.9 ns", "p50/futex", "over", "caller ns", "process ns");
    for_each([&](const Group& group, size_t i) {
      const Row& row = group.rows.all()[i];
      const Row* const reference = group.rows.find(group.rows.reference(), row);
      const bool pause = is_after_pause(group.kind);
      const double ratio = reference == nullptr || reference->summary.p50_ns == 0
                               ? 0
                               : double(row.summary.p50_ns) / double(reference->summary.p50_ns);
      fmt::print(out, "{:<23} {:>7} {:<12} {:>9} {:>9} {:>9} {:>10} {:>9} {:>10} {:>12}\n", group.kind,
                 group.time_us, row.name, row.summary.p50_ns, row.summary.p99_ns, row.summary.p999_ns,
                 pause && ratio != 0 ? fmt::format("{:.2f}", ratio) : "-",
                 !pause && ratio != 0 ? fmt::format("{:+.1f} %", (ratio - 1) * 100) : "-",
                 text_of(median(group.caller_ns[i])), text_of(median(group.process_ns[i])));
    });
  }
  tools::Json to_json() const {
    tools::Json document = tools::Json::array();
    for (const Group& group : groups_) {
      const tools::Json rows = group.rows.to_json();
      for (size_t i = 0; i < rows.elements().size(); ++i) {
        tools::Json row = rows[i];
        row["kind"] = group.kind;
        row[is_after_pause(group.kind) ? "pause_us" : "work_us"] = group.time_us;
        row["reference"] = group.rows.reference();
        if (const double process_ns = median(group.process_ns[i]); process_ns != 0) {
          row["caller_processor_ns"] = median(group.caller_ns[i]);
          row["process_processor_ns"] = process_ns;
        }
        document.push_back(std::move(row));
      }
    }
    return document;
  }

 private:
  struct Group {
    std::string kind;
    uint32_t time_us;
    Rows rows;
    std::vector<std::vector<double>> caller_ns, process_ns;  // by row and round
  };
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Group& group : groups_) {
      for (size_t i = 0; i < group.rows.all().size(); ++i) visit(group, i);
    }
  }
  static std::string text_of(double ns) { return ns == 0 ? "-" : fmt::format("{:.0f}", ns); }
  static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  std::vector<Group> groups_;
};

int sparse(SparseSettings& settings) {
  Plan& plan = settings.plan;
  if (const std::string problems = plan.options.problems(); !problems.empty())
    throw BadOptions("measuring sparse asks: these options are wrong:\n" + problems);
  if (settings.size % 8 != 0 || settings.size < echo_overhead_bytes + 8 ||
      settings.size > plan.options.ring_shape().body_capacity()) {
    throw BadOptions(fmt::format("--size {}: must be a multiple of 8, 32 to {}", settings.size,
                                 plan.options.ring_shape().body_capacity() / 8 * 8));
  }
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Machine machine = machine_of(plan.options);
  plan.options.engine = machine.engine;
  plan.options.transport = machine.transport;
  print(out, machine);
  fmt::print(
      out,
      "{} asks a row and round after {} uncounted, one in flight: after a pause in which the asker sleeps "
      "and the worker has nothing to do, and of handlers that take as long. futex: two threads after the same "
      "pause, of which each sleeps on a futex at once and is woken by the other. Threads run where the "
      "system puts them, but for rows of one CPU and of two. {} round{} interleaved, then {} idle workers "
      "for {} s\n"
      "not measured: several askers; what else the machine does\n",
      plan.messages, plan.warm_up(), settings.rounds, settings.rounds == 1 ? "" : "s", settings.idle_workers,
      settings.idle_seconds);
  const std::vector<Placement> where = placements(machine.engine);
  SparseRows rows;
  std::vector<double> idle;
  for (uint32_t round = 0; round < settings.rounds && !tools::interrupt_requested(); ++round) {
    for (const uint32_t time_us : settings.times_us) {
      for (const Placement& placement : where) {
        rows.add(measure_gyre_after_pause(plan, placement, WaitPolicy::polite, settings.size, time_us));
        rows.add(measure_bare_futex(plan, placement, settings.size, time_us));
        if (!placement.asker)
          rows.add(measure_gyre_after_pause(plan, placement, WaitPolicy::spin, settings.size, time_us));
        if (tools::interrupt_requested()) break;
      }
      rows.add(measure_gyre_slow(plan, WaitPolicy::polite, time_us));
      rows.add(measure_gyre_slow(plan, WaitPolicy::spin, time_us));
      if (tools::interrupt_requested()) break;
    }
    if (!tools::interrupt_requested())
      idle.push_back(measure_idle_worker(plan.options, settings.idle_workers, settings.idle_seconds));
  }
  rows.print(out);
  tools::Json json_rows = rows.to_json();
  if (!idle.empty()) {
    std::sort(idle.begin(), idle.end());
    const double worker = idle[idle.size() / 2];
    fmt::print(out, "\nidle: {:.4f} of a processor a worker, {} of them\n", worker, settings.idle_workers);
    json_rows.push_back({{"kind", "idle"},
                         {"name", "gyre polite"},
                         {"workers", settings.idle_workers},
                         {"seconds", settings.idle_seconds},
                         {"processors_a_worker", worker},
                         {"rounds", idle}});
  }
  tools::Json about = to_json(machine);
  about["rounds"] = settings.rounds;
  about["wait"] = {name(WaitPolicy::polite), name(WaitPolicy::spin)};
  tools::write_json(settings.json_file, {{"benchmark", "sparse"}, {"machine", about}, {"rows", json_rows}});
  if (tools::interrupt_requested()) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_sparse(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<SparseSettings>();
  Options& options = settings->plan.options;
  settings->plan.messages = 300;
  const tools::ProgramCommand command = app.add_subcommand(
      "sparse", "Asks after pauses and to slow handlers, and idle workers: latency and processor time.");
  tools::add_common_options(command, options, settings->json_file);
  command.remove_option("--wait");
  command.add_option("--times", settings->times_us, "pauses, and handlers' times, in us: rows of each")
      .range(1u, 1'000'000u)
      .type_name("US")
      .show_default();
  command.add_option("--messages", settings->plan.messages, "asks a row and round; a tenth more warm up")
      .range(uint64_t(1), uint64_t(1'000'000))
      .type_name("N")
      .show_default();
  command.add_option("--size", settings->size, "bytes of body after a pause, a multiple of 8, 32 or more")
      .type_name("BYTES")
      .show_default();
  command.add_option("--interleave", settings->rounds, "rounds of all rows, interleaved")
      .range(1u, 1000u)
      .type_name("R")
      .show_default();
  command.add_option("--idle-workers", settings->idle_workers, "workers that nobody asks, for the idle row")
      .range(1u, 65535u)
      .type_name("N")
      .show_default();
  command.add_option("--idle-seconds", settings->idle_seconds, "how long they idle, a round")
      .range(0.01, 3600.0)
      .show_default();
  command.footer(
      "Rows after a pause: gyre polite, gyre spin, futex (two threads, no Gyre: each sleeps at once and is "
      "woken by the other). On the CPU engine polite and futex also with both threads pinned to one CPU, and "
      "to two: waking another CPU takes several times as long. Rows of a slow handler: gyre polite, gyre "
      "spin; over: how much longer p50 is than spinning. caller ns: processor time of the "
      "asking "
      "thread while it waits, an ask; process ns: of the whole process, pauses and workers too.\n"
      "Exit: 0 every reply right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return sparse(*settings); }; });
}

}  // namespace gyre::bench
