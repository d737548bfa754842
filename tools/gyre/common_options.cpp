#include "common_options.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>

#include "patterns.hpp"
#include "watching.hpp"

namespace gyre::tools {

namespace {
std::atomic<bool> interrupt_seen{false};

template <class Kind>
std::map<std::string, Kind> values_by_name() {
  std::map<std::string, Kind> values;
  for (const std::string_view name : gyre::detail::names_of<Kind>) {
    values.emplace(name, Kind(values.size()));
  }
  return values;
}
}  // namespace

void add_common_options(ProgramCommand command, Options& options, std::string& json_file) {
  command.add_choice("--engine", options.engine, values_by_name<EngineKind>(),
                     "auto (default: cuda where there is a GPU, else cpu), cuda, cpu");
  command.add_option("--device", options.device, "CUDA device number").show_default();
  command.add_choice(
      "--transport", options.transport, values_by_name<TransportKind>(),
      "auto (default: bar where it works, else pinned; heap on the CPU), bar, pinned or unified (CUDA; "
      "unified in_process only), heap");
  command.add_choice(
      "--isolation", options.isolation, values_by_name<Isolation>(),
      "where the CUDA engine runs: process (default), a gyre-engine of its own, or in_process");
  command.add_choice(
      "--context", options.context, values_by_name<CudaContext>(),
      "the CUDA context of an engine in process: own (default), or primary; given is for programs");
  command
      .add_option(
          "--heartbeat-timeout",
          [&options](int64_t ms) { options.heartbeat_timeout = std::chrono::milliseconds(ms); },
          "milliseconds without a sign after which an engine process is killed; 0: never (default " +
              std::to_string(options.heartbeat_timeout.count()) + ")")
      .type_name("MS");
  command
      .add_option(
          "--stall-after", [&options](int64_t ms) { options.stall_after = std::chrono::milliseconds(ms); },
          "milliseconds in one handler after which an engine process is killed; 0: never (default)")
      .type_name("MS");
  command
      .add_option("--restarts", options.restart.times,
                  "times a minute that a failed engine is launched again by itself")
      .show_default();
  command
      .add_option(
          "--multiprocessors",
          [&options](const std::string& value) {
            options.multiprocessors = value == "all" ? all_multiprocessors : uint32_t(std::stoul(value));
          },
          "multiprocessors that the workers of an engine process may occupy under MPS, or all (default: one "
          "a block, at most a quarter)")
      .check([](const std::string& value) {
        const bool fits = value == "all" || (is_number(value) && value.size() < 10);
        return fits ? std::string() : value + " must be a number, or all";
      })
      .type_name("NUMBER");
  command.add_option("--workers", options.workers, "workers: blocks on CUDA, threads on the CPU")
      .show_default();
  command.add_option("--block", options.block, "CUDA threads a worker, a multiple of 32").show_default();
  command
      .add_option("--blocks", options.blocks,
                  "CUDA blocks of a grid-scoped actor set; 0: one a multiprocessor")
      .show_default();
  command.add_option("--slots", options.slots, "slots a ring, a power of two").show_default();
  command
      .add_option("--slot-bytes", options.slot_bytes,
                  "bytes a slot, a multiple of 64; 3/4 of it, less 32, is body")
      .show_default();
  command
      .add_option("--arena-bytes", options.arena_bytes,
                  "bytes for bodies larger than a slot, a multiple of 4096; 0: none may be larger")
      .show_default();
  command.add_option("--max-reply-bytes", options.max_reply_bytes,
                     "room an ask makes for its reply (default: a slot's, or the size of its request)");
  command
      .add_option("--actors-per-worker", options.actors_per_worker,
                  "actors with state, of each type, that a worker has room for")
      .show_default();
  command
      .add_option("--spill-bytes", options.spill_bytes,
                  "memory, at most, for messages between actors that wait to be handled")
      .show_default();
  command
      .add_option("--body-bytes", options.body_bytes,
                  "largest message between actors, if it does not fit a slot; a multiple of 128")
      .show_default();
  command
      .add_option("--body-pool-bytes", options.body_pool_bytes,
                  "memory for messages between actors that do not fit a slot; 0: none may be larger")
      .show_default();
  command
      .add_option(
          "--timeout", [&options](int64_t ms) { options.timeout = std::chrono::milliseconds(ms); },
          "milliseconds an ask may take (default " + std::to_string(options.timeout.count()) + ")")
      .type_name("MS");
  command.add_choice(
      "--wait", options.wait, values_by_name<WaitPolicy>(),
      "polite (default: spin for a moment, then sleep until woken) or spin (a core each, lowest latency)");
  command
      .add_option(
          "--pin-workers", options.pin_workers,
          "CPU engine: the CPUs that its workers run on, one after the other, as 2,3,5 (default: any)")
      .separated_by(',')
      .type_name("CPUS");
  command.add_flag(
      "--no-cache", [&options] { options.cache = false; },
      "compile for the GPU even what is found compiled on disk");
  command
      .add_option(
          "--keep-program", options.keep_program,
          "write what is compiled for the GPU there: kernel.cu, kernel.ptx, kernel.cubin, compile.log, "
          "options.txt")
      .type_name("DIR");
  command.add_flag("--verbose", options.verbose, "log launch parameters to standard error");
  command.add_flag("--stats", options.publish_stats, "publish what the workers do, for `gyre stat`");
  command
      .add_option("--record", options.record,
                  "record what the program sends, and the outcomes, there, for `gyre replay`")
      .type_name("FILE");
  command
      .add_option(
          "--metrics", metrics_address(),
          "serve what the workers do to Prometheus there: address and port, 127.0.0.1:9464 if not said")
      .value_if_none("127.0.0.1:9464")
      .type_name("ADDRESS:PORT");
  add_json_option(command, json_file);
}

void add_json_option(ProgramCommand command, std::string& json_file) {
  command.add_option("--json", json_file, "write the results there as JSON; - is standard output")
      .type_name("FILE")
      .check([](const std::string& file) {  // before the work, not after it
        if (file == "-" || std::ofstream(file, std::ios::app)) return std::string();
        return "the file " + file + " cannot be written; check its path";
      });
}

int run_reporting_errors(const std::function<int()>& body) {
  try {
    return body();
  } catch (const BadOptions& error) {
    std::cerr << "gyre: " << error.what() << "\n";
    return bad_usage;
  } catch (const EngineUnavailable& error) {
    std::cerr << "gyre: " << error.what() << "\n";
    return engine_unavailable;
  } catch (const std::exception& error) {
    std::cerr << "gyre: " << error.what() << "\n";
    return case_failed;
  }
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int read_architecture(const std::string& option, const std::string& value) {
  const Found found = match(value, "(sm_|compute_)?([0-9]{2,3})");
  if (found.empty()) throw BadOptions("reading " + option + ": " + value + " must be like sm_90");
  return std::stoi(found[2]);
}

void write_json(const std::string& json_file, const Json& document) {
  if (json_file.empty()) return;
  if (json_file == "-") {
    std::cout << document.text(2) << std::endl;
    if (!std::cout) throw Error("writing the results to standard output: it cannot be written");
    return;
  }
  std::ofstream file(json_file);
  file << document.text(2) << "\n";
  if (!file.flush())
    throw Error("writing the results to " + json_file + ": the file cannot be written; check its path");
}

void catch_interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  // Blocked in every thread to come and waited for in one: libraries that put in handlers of their own (NVRTC
  // does) and libraries with threads of their own (CUDA) then cannot get at them.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    interrupt_seen = true;
    sigwait(&signals, &signal);
    _exit(interrupted);  // asked twice: at once
  }).detach();
}

bool interrupt_requested() { return interrupt_seen; }

}  // namespace gyre::tools
