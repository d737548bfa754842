// Engine processes under MPS, and without it.
#include <signal.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/process/engine_process.hpp>
#include <gyre/runtime/process/mps.hpp>

#include <chrono>
#include <string>

#include "support/catch.hpp"
#include "support/engine_process_cases.hpp"
#include "support/fake_engine_processes.hpp"
#include "support/stepped.hpp"
#include "support/temporary_folder.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre_test;

TEST_CASE("MPS runs where somebody has its socket open") {
  CHECK_FALSE((NoMps(), process::mps_runs()));
  FakeMps mps;
  CHECK(process::mps_runs());
  mps.die();
  CHECK_FALSE(process::mps_runs());
}

TEST_CASE(
    "under MPS an engine process asks for a multiprocessor a block, at most a quarter, or for what it is "
    "told") {
  Options options;
  CHECK(process::multiprocessors_for(options, 1, 132) == 1);
  CHECK(process::multiprocessors_for(options, 40, 132) == 33);
  CHECK(process::multiprocessors_for(options, 0, 132) == 33);  // of a grid-scoped set
  CHECK(process::multiprocessors_for(options, 9, 3) == 1);
  options.multiprocessors = 66;
  CHECK(process::multiprocessors_for(options, 1, 132) == 66);
  CHECK(process::multiprocessors_for(options, 1, 20) == 20);
  CHECK(process::percentage_of(1, 132) == 1);
  CHECK(process::percentage_of(2, 132) == 2);
  CHECK(process::percentage_of(33, 132) == 25);
  CHECK(process::percentage_of(132, 132) == 100);
}

TEST_CASE("under MPS the workers get a part of the multiprocessors, and the program's environment stays") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  const FakeMps mps;
  Logged logged;
  const auto launch = [](Options options) {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process(options));
    CHECK(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 4)).get().value()->getValue() ==
          9);
    CHECK(std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") == nullptr);
  };
  launch({.workers = 1});
  CHECK(says(logged.text(), "may use 2 multiprocessors of 132: asked MPS for 1, 1 %"));
  launch({.multiprocessors = 60, .workers = 1});
  CHECK(says(logged.text(), "may use 61 multiprocessors of 132: asked MPS for 60, 46 %"));
  launch({.multiprocessors = all_multiprocessors, .workers = 1});
  CHECK(says(logged.text(), "may use 132 multiprocessors\n"));
  // A launch is checked against the part: 32 blocks fit each.
  const std::string text = refusal(in_a_process({.workers = 33 * 32 + 1}));
  INFO(text);
  CHECK(says(text, "on 33 multiprocessors"));
  CHECK(says(text, "more --multiprocessors"));
  CHECK(processes.reports().empty());
}

TEST_CASE("the percentage that a program's environment gives is not the engine process's") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  const Environment environment("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50");
  const FakeMps mps;
  Logged logged;
  (void)Runtime::launch(probe_actors(), in_a_process({.multiprocessors = 13}));
  CHECK(says(logged.text(), "may use 14 multiprocessors of 132: asked MPS for 13, 10 %"));
  (void)Runtime::launch(probe_actors(), in_a_process({.multiprocessors = all_multiprocessors}));
  CHECK(says(logged.text(), "may use 66 multiprocessors\n"));
  CHECK(std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") == std::string("50"));
}

TEST_CASE("a part of the multiprocessors is refused by name without MPS, and in process") {
  const NoMps no_mps;
  std::string text = refusal(in_a_process({.multiprocessors = 10}));
  CHECK(says(text,
             "--multiprocessors 10: without MPS processes take turns on the whole device, and nothing "
             "listens at /nowhere/control"));
  Options options = in_a_process({.multiprocessors = 10});
  options.isolation = Isolation::in_process;
  text = refusal(options);
  CHECK(says(text, "--multiprocessors 10: only an engine process can have a part of the device"));
}

TEST_CASE(
    "an engine process that is killed under MPS is asked to stop first, and the failure says what MPS does") {
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  {
    const NoMps no_mps;
    process::EngineProcess engine(2s);
    engine.kill();
    CHECK(within_a_minute([&] { return engine.gone(); }));
    CHECK(says(engine.failure().value(), "ended by signal 9"));
    CHECK_FALSE(says(engine.failure().value(), "MPS"));
  }
  const FakeMps mps;
  {
    process::EngineProcess engine(2s);
    engine.kill();
    CHECK(within_a_minute([&] { return engine.gone(); }));
    // Under ThreadSanitizer an end takes longer than the time that it is given.
    if (can_fork) CHECK(says(engine.failure().value(), "ended with exit code 0"));
    CHECK(says(engine.failure().value(), "MPS runs: a device fault ends every process"));
  }
  process::EngineProcess engine(2s);
  kill(engine.id(), SIGSTOP);
  const auto began = std::chrono::steady_clock::now();
  engine.kill();
  CHECK(within_a_minute([&] { return engine.gone(); }));
  CHECK(std::chrono::steady_clock::now() - began >= 500ms);
  CHECK(says(engine.failure().value(), "ended by signal 9"));
}
