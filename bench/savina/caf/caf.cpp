#include "savina/caf/caf.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "savina/caf/instance.hpp"

namespace gyre::bench::savina {

namespace {

constexpr std::pair<std::string_view, void (*)(const CafInstance&)> starts[] = {
    {"ping-pong", start_ping_pong},
    {"counting", start_counting},
    {"fork-join-throughput", start_fork_join},
    {"fork-join-create", start_create},
    {"big", start_big},
    {"fib", start_fib},
    {"concurrent-dictionary", start_dictionary},
    {"bank-transaction", start_bank},
};

void configure(caf::actor_system_config& config, const CafOptions& options) {
#if CAF_VERSION < 1800
  config.set("scheduler.policy", caf::atom_from_string(options.policy));
  config.set("scheduler.max-threads", size_t(options.threads));
#else
  config.set("caf.scheduler.policy", options.policy);
  config.set("caf.scheduler.max-threads", size_t(options.threads));
#endif
}

}  // namespace

std::string caf_version() {
  return fmt::format("CAF {}.{}.{}", CAF_MAJOR_VERSION, CAF_MINOR_VERSION, CAF_PATCH_VERSION);
}

Outcome run_on_caf(const Benchmark& benchmark, const Size& size, uint32_t instances,
                   const CafOptions& options, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  void (*start)(const CafInstance&) = nullptr;
  for (const auto& [name, function] : starts) {
    if (name == benchmark.name) start = function;
  }
  Outcome outcome;
  if (start == nullptr) {
    outcome.refused = "there is no version for CAF";
    return outcome;
  }
  caf::actor_system_config config;
  configure(config, options);
  caf::actor_system system(config);
  caf::scoped_actor self(system);
  outcome.values.resize(instances);
  const auto begin = Clock::now();
  for (uint32_t i = 0; i < instances; ++i) start({system, caf::actor(self), i, size});
  bool late = false;
  for (uint32_t ended = 0; ended < instances && !late; ++ended) {
    self->receive(
        [&](uint64_t number, uint64_t value) { outcome.values[number] = value; },
        caf::after(std::chrono::duration_cast<std::chrono::milliseconds>(begin + timeout - Clock::now())) >>
            [&] { late = true; });
  }
  outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (late) {
    // Its actors would keep the system from ending.
    fmt::print(stderr, "error: running Savina's {} on CAF: it took longer than --timeout {} ms\n",
               benchmark.name, timeout.count());
    std::quick_exit(1);
  }
  return outcome;
}

}  // namespace gyre::bench::savina
