// gyre-bench rtt: the time from a request to its checked reply, one message in flight, beside the
// alternatives.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "affinity.hpp"
#include "baselines/boost_spsc.hpp"
#include "baselines/floor.hpp"
#include "common_options.hpp"
#include "gyre_rows.hpp"
#include "machine.hpp"
#include "measure.hpp"
#include "rows.hpp"
#include "subcommands.hpp"

#if defined(GYRE_WITH_CUDA)
#include "baselines/launches.hpp"
#include "baselines/naive_ring.hpp"
#include "baselines/raw.hpp"
#endif
#if defined(GYRE_BENCH_CAF)
#include "baselines/caf.hpp"
#endif

namespace gyre::bench {

namespace {

constexpr uint32_t word_bytes = sizeof(uint64_t);

struct RttSettings {
  Plan plan;
  std::vector<uint32_t> sizes = {64};
  std::string gaps = "none";
  uint32_t rounds = 1;
  bool pin = false;
  bool pin_quickest = false;
  bool brief = false;
  bool unchecked = false;
  std::string json_file;
};

void check_settings(const RttSettings& settings) {
  const Options& options = settings.plan.options;
  std::string problems = options.problems();
  if (problems.empty()) {
    const uint32_t capacity = options.ring_shape().body_capacity();
    for (const uint32_t size : settings.sizes) {
      if (size % word_bytes != 0 || size < echo_overhead_bytes + word_bytes) {
        problems += fmt::format(
            "  --size {}: must be a multiple of 8, and at least 32 (24 bytes of Cap'n Proto, and one word)\n",
            size);
      } else if (size > capacity) {
        problems +=
            fmt::format("  --size {}: slots of {} bytes carry bodies of at most {}; give --slot-bytes {}\n",
                        size, options.slot_bytes, capacity / word_bytes * word_bytes, slot_bytes_for(size));
      }
    }
  }
  if (!problems.empty()) throw BadOptions("measuring round trips: these options are wrong:\n" + problems);
}

void require_two_cpus() {
  if (const size_t cpus = allowed_cpus().size(); cpus < 2) {
    throw BadOptions(
        fmt::format("pinning two threads: this process may run on {} CPU; run without --pin and "
                    "--pin-quickest",
                    cpus));
  }
}

// Measures on the CPU that is quickest now, a baseline's second thread on the next of another core, and notes
// whether the first still is as quick afterwards.
template <class Measure>
Row measure_on_quickest(Plan plan, Measure& measure) {
  const std::vector<CpuSpeed> speeds = cpus_by_speed();
  auto second = std::find_if(speeds.begin() + 1, speeds.end(),
                             [&](const CpuSpeed& speed) { return !share_a_core(speed.cpu, speeds[0].cpu); });
  if (second == speeds.end()) second = speeds.begin() + 1;
  plan.own_cpu = speeds[0].cpu;
  plan.baseline_cpu = second->cpu;
  RoundCpu cpu{.cpu = speeds[0].cpu, .baseline_cpu = second->cpu};
  cpu.arithmetic_before_ns = speeds[0].arithmetic_ns;
  Row row = measure(plan);
  const Pinned there(pthread_self(), cpu.cpu);
  cpu.arithmetic_after_ns = arithmetic_ns();
  row.cpus.push_back(cpu);
  return row;
}

// Adds a case of `measure(plan)`, whose row says how its gaps were.
class Cases {
 public:
  Cases(const Plan& plan, bool on_quickest_cpus) : plan_(plan), on_quickest_cpus_(on_quickest_cpus) {}
  template <class Measure>
  void add(Measure&& measure) {
    cases_.push_back([plan = plan_, on_quickest_cpus = on_quickest_cpus_, measure] {
      Row row = on_quickest_cpus ? measure_on_quickest(plan, measure) : measure(plan);
      row.random_gaps = plan.random_gaps;
      return row;
    });
  }
  const std::vector<std::function<Row()>>& all() const { return cases_; }
  Plan& plan() { return plan_; }

 private:
  Plan plan_;
  bool on_quickest_cpus_;
  std::vector<std::function<Row()>> cases_;
};

// The rows of every size, and those that have none once.
void add_cases(Cases& cases, const RttSettings& settings, bool on_cuda) {
  const bool brief = settings.brief;
  [[maybe_unused]] const Plan& plan = cases.plan();
  for (const uint32_t size : settings.sizes) {
    cases.add([size](const Plan& plan) { return measure_gyre_echo(plan, size).row; });
    if (settings.unchecked)
      cases.add([size](const Plan& plan) { return measure_gyre_echo(plan, size, false).row; });
#if defined(GYRE_WITH_CUDA)
    if (on_cuda) {
      cases.add([size](const Plan& plan) { return measure_raw(plan, size); });
      if (plan.options.transport == TransportKind::bar && SlotPages::pages(plan.options.ring_shape()) != 0)
        cases.add([size](const Plan& plan) { return measure_raw_near_pages(plan, size); });
      if (size <= NaiveRing::most_bytes && !brief)
        cases.add([size](const Plan& plan) { return measure_naive_ring(plan, size); });
    }
#endif
    if (!on_cuda) cases.add([size](const Plan& plan) { return measure_boost_spsc(plan, size); });
  }
  if (brief) return;
  cases.add([](const Plan& plan) { return measure_gyre_vector_add(plan).row; });
#if defined(GYRE_WITH_CUDA)
  if (on_cuda) {
    cases.add(measure_launch_sync);
    cases.add(measure_graph_sync);
    cases.add(measure_launch_pinned);
    cases.add(measure_copies_launch_sync);
    cases.add(measure_graph_copies_sync);
  }
#endif
  if (!on_cuda) {
#if defined(GYRE_BENCH_CAF)
    for (const bool aggressive : {false, true})
      cases.add([aggressive](const Plan& plan) { return measure_caf(plan, aggressive); });
#endif
    cases.add(measure_floor);
  }
}

int rtt(RttSettings& settings) {
  check_settings(settings);
  Plan& plan = settings.plan;
  if (settings.pin || settings.pin_quickest) require_two_cpus();
  if (settings.pin) {
    plan.own_cpu = allowed_cpus()[0];
    plan.baseline_cpu = allowed_cpus()[1];
  }
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const double clock_ns = clock_cost_ns();

  const Machine machine = machine_of(plan.options);
  const bool on_cuda = machine.engine == EngineKind::cuda;
  plan.options.engine = machine.engine;
  plan.options.transport = machine.transport;  // the baselines' too
  Rows rows(on_cuda ? "raw" : "boost-spsc");
  Cases cases(plan, settings.pin_quickest);
  for (const char* gaps : {"none", "random"}) {
    if (settings.gaps != gaps && settings.gaps != "both") continue;
    cases.plan().random_gaps = gaps == std::string("random");
    add_cases(cases, settings, on_cuda);
  }

  print(out, machine);
  fmt::print(
      out,
      "{} messages a row and round after {} uncounted, one in flight, from one thread{}: from before "
      "the request is written until every word of its reply is checked{}\n"
      "{} round{} of all rows in turn, each launched anew; a row's figures are its median round's by "
      "p50{}\n"
      "not measured: queueing (the loop is closed), several threads, first touch of memory, launching; "
      "each sample holds one clock reading, {:.0f} ns\n",
      plan.messages, plan.warm_up(),
      settings.pin_quickest
          ? " on the CPU that is quickest as a row's round begins, baselines' second thread on the next of "
            "another core, Gyre's own not pinned"
      : plan.own_cpu ? fmt::format(" on CPU {}, baselines' second thread on CPU {}, Gyre's own not pinned",
                                   *plan.own_cpu, *plan.baseline_cpu)
                     : ", threads not pinned",
      settings.unchecked ? ", but for gyre unchecked" : "", settings.rounds, settings.rounds == 1 ? "" : "s",
      settings.gaps == "none" ? ""
                              : "; random gaps: a pause of 0 to 3 us before each message, not in the "
                                "sample",
      clock_ns);
  const bool complete = measure_interleaved(rows, settings.rounds, cases.all());
  rows.print(out);
  if (settings.pin_quickest) fmt::print(out, "{}\n", rows.speed_of_cpus());
  tools::Json about = to_json(machine);
  about["clock_ns"] = clock_ns;
  about["pinned"] = settings.pin || settings.pin_quickest;
  about["pinned_to_quickest"] = settings.pin_quickest;
  about["pollers"] = plan.pollers;
  about["rounds"] = settings.rounds;
  tools::write_json(
      settings.json_file,
      {{"benchmark", "rtt"}, {"machine", about}, {"reference", rows.reference()}, {"rows", rows.to_json()}});
  if (!complete) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_rtt(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<RttSettings>();
  Options& options = settings->plan.options;
  options.wait = WaitPolicy::spin;
  const tools::ProgramCommand command = app.add_subcommand(
      "rtt", "Round-trip latency: one message in flight, every reply checked, beside the alternatives.");
  tools::add_common_options(command, options, settings->json_file);
  command.option("--wait").describe(
      "spin (default here: a core each, lowest latency) or polite (spin a little, then sleep)");
  command
      .add_option("--messages", settings->plan.messages,
                  "messages a row and round; a tenth more warm up, uncounted")
      .range(uint64_t(1), uint64_t(100'000'000))
      .type_name("N")
      .show_default();
  command
      .add_option(
          "--size", settings->sizes,
          "bytes of request and of response body, a multiple of 8, 32 or more; may be given many times")
      .type_name("BYTES")
      .show_default();
  command
      .add_option("--gaps", settings->gaps,
                  "none (back to back), random (a pause of 0 to 3 us before each message, so that it meets "
                  "the polls at any moment) or both, as rows of their own")
      .one_of({"none", "random", "both"})
      .type_name("NAME")
      .show_default();
  command
      .add_option("--interleave", settings->rounds,
                  "rounds of all rows in turn; a row's figures are its median round's")
      .range(1u, 1000u)
      .type_name("R")
      .show_default();
  command
      .add_option("--pollers", settings->plan.pollers,
                  "warps that poll in raw's kernel, half a poll apart: 1 or 2")
      .range(1u, 2u)
      .type_name("N")
      .show_default();
  command.add_flag("--brief", settings->brief,
                   "measure Gyre's rows and the bare ones that they are compared with, and no alternatives");
  command.add_flag("--unchecked", settings->unchecked,
                   "beside Gyre's row one of which nobody reads the replies: what checking costs");
  const tools::CommandOption pin =
      command.add_flag("--pin", settings->pin,
                       "pin the measuring thread to the first CPU, a baseline's second thread to the second");
  command
      .add_flag("--pin-quickest", settings->pin_quickest,
                "pin it, before each row's round, to the CPU that is quickest then at a piece of arithmetic: "
                "that takes longer, as the host's part of a round trip does, where another thread, or a "
                "neighbour of a virtual machine, works on the same core")
      .excludes(pin);
  command.footer(
      "Rows on CUDA, of --size bytes: gyre; raw (a bare kernel that echoes the same packets, on the same "
      "transport); over BAR raw near pages (the same with its slots in the pages of memory that are near to "
      "its worker, as Gyre's are); naive-ring (a payload, then a number that announces it). Of two vectors "
      "of 25 floats: gyre vector-add, launch-pinned (a launch on mapped memory), copies-launch-sync, "
      "graph-copies-sync (the same copies and launch as one CUDA graph). Without a message: "
      "launch-sync, graph-sync (an empty kernel a call).\n"
      "Rows on the CPU: gyre, boost-spsc (a pair of queues, two threads), gyre vector-add, caf and "
      "caf-aggressive (vector-add by the C++ Actor Framework, where built with GYRE_BENCH_CAF), floor (two "
      "threads, a word each way).\n"
      "p50/gyre compares with Gyre's row of the same work. JSON: histogram_ns is 'lowest:count ...' of the "
      "samples of all rounds; with --pin-quickest arithmetic_ns, of a round, is what the arithmetic took "
      "before and after it.\n"
      "Exit: 0 every reply right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return rtt(*settings); }; });
}

}  // namespace gyre::bench
