// How engines in processes of their own end, and what their programs see of it.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/process/engine_process.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/engine_process_cases.hpp"
#include "support/engine_processes.hpp"
#include "support/fake_engine_processes.hpp"
#include "support/rounds.hpp"
#include "support/stepped.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre_test;

TEST_CASE("an engine process that is killed fails its runtime, and every pending ask by name") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  for (int round = 0; round < rounds(3); ++round) {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process({.workers = 2, .timeout = 60s}));
    Client client = runtime.client();
    REQUIRE(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get());
    std::vector<Future<Reply<ProbeResponse>>> pending;
    for (uint64_t key = 0; key < 6; ++key) {
      pending.push_back(client.ask<ProbeRequest>(Address<Probe>{key}, asking(Action::WORK, 100'000'000'000)));
    }
    const std::vector<pid_t> engines = engines_of(getpid());
    REQUIRE(engines.size() == 1);
    kill(engines.front(), SIGKILL);
    for (auto& one : pending) CHECK(one.get().error().status == Status::engine_failed);
    CHECK(runtime.state() == Lifecycle::failed);
    CHECK(says(runtime.failure(), "the engine process " + std::to_string(engines.front()) +
                                      " is gone: it was ended by signal 9 (Killed)"));
    CHECK(says(runtime.failure(), "was last busy with gyre_test::Probe"));
    CHECK(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get().error().status ==
          Status::engine_failed);
    CHECK(runtime.terminate().books.balanced());
  }
  CHECK(engines_of(getpid()).empty());
}

TEST_CASE("nobody has to wait for the runtime to learn that its engine process is gone") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
  kill(engines_of(getpid()).at(0), SIGKILL);
  CHECK(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
  Runtime next = Runtime::launch(probe_actors(), in_a_process());
  CHECK(next.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 4)).get().value()->getValue() == 9);
}

TEST_CASE("an engine process that is stopped is killed, and the failure says so") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime runtime =
      Runtime::launch(probe_actors(), in_a_process({.heartbeat_timeout = 300ms, .timeout = 60s}));
  auto pending = runtime.client().ask<ProbeRequest>(probe, asking(Action::WORK, 100'000'000'000));
  const pid_t engine = engines_of(getpid()).at(0);
  kill(engine, SIGSTOP);
  CHECK(pending.get().error().status == Status::engine_failed);
  CHECK(says(runtime.failure(), "gave no heartbeat for 300 ms and was killed"));
  CHECK(within_a_minute([&] { return !lives(engine); }));
}

TEST_CASE(
    "a handler that does not return ends with its engine process after the time that the program gave") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Options options = in_a_process({.workers = 2, .timeout = 60s});
  options.stall_after = 1s;
  options.restart = {1, 60s};
  Runtime runtime = Runtime::launch(probe_actors(), options);
  std::atomic<bool> restarted{false};
  std::string cause;
  runtime.on_restart([&](const Restart& restart) {
    cause = restart.cause;
    restarted = true;
  });
  Client client = runtime.client();
  // Handlers that return are left alone, and so is an idle engine.
  const auto until = std::chrono::steady_clock::now() + 1500ms;
  while (std::chrono::steady_clock::now() < until) {
    REQUIRE(client.ask<ProbeRequest>(probe, asking(Action::TIME, 20'000'000)).get());
    std::this_thread::sleep_for(20ms);
  }
  CHECK_FALSE(restarted);
  auto endless = client.ask<ProbeRequest>(Address<Probe>{1}, asking(Action::WORK, 100'000'000'000));
  CHECK(endless.get().error().status == Status::engine_failed);
  REQUIRE(within_a_minute([&] { return restarted.load(); }));
  CHECK(says(cause, "worker 1 was in one handler for 1000 ms"));
  CHECK(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get());
  CHECK(says(refusal({.engine = EngineKind::cpu, .stall_after = 300ms}), "--stall-after 300"));
}

TEST_CASE("signals that end a program do not end its engine process") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
  for (const int signal : {SIGINT, SIGHUP, SIGTERM}) kill(engines_of(getpid()).at(0), signal);
  for (uint64_t n = 0; n < 100; ++n)
    REQUIRE(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, n)).get().value()->getValue() ==
            2 * n + 1);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a worker that does not stop ends with its engine process, and the log says so") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  std::mutex mutex;
  std::string log;
  set_logger([&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    log += line;
  });
  {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process({.heartbeat_timeout = 0ms}));
    const pid_t engine = engines_of(getpid()).at(0);
    kill(engine, SIGSTOP);
    siginfo_t stopped{};
    REQUIRE(waitid(P_PID, id_t(engine), &stopped, WSTOPPED | WNOWAIT) == 0);
    const Termination report = runtime.terminate(1ms);
    CHECK(report.worker_stuck);
    CHECK(report.books.balanced());
    CHECK(within_a_minute([] { return engines_of(getpid()).empty(); }));
  }
  set_logger({});
  const std::lock_guard lock(mutex);
  CHECK_THAT(log, containing("its engine process was killed"));
}

TEST_CASE("a fault in an engine process leaves the program able to launch on CUDA again") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  for (int round = 0; round < rounds(4); ++round) {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process({.timeout = 60s}));
    auto pending = runtime.client().ask<ProbeRequest>(probe, asking(Action::WORK, 100'000'000'000));
    kill(engines_of(getpid()).at(0), SIGUSR1);  // the fake engine takes it for a device fault
    CHECK(pending.get().error().status == Status::engine_failed);
    CHECK(says(runtime.failure(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("a runtime that ends leaves no engine process, and reading its buffers before that is exact") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
    std::vector<uint32_t> in(700'000), out(in.size());
    for (size_t i = 0; i < in.size(); ++i) in[i] = uint32_t(i * 2654435761u);
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
      auto buffer = runtime.allocate<uint32_t>(kind, in.size());
      buffer.read(out);
      CHECK(out == std::vector<uint32_t>(in.size(), 0));
      buffer.write(in);
      buffer.write(std::span(in).first(100), 300'000);
      buffer.read(out);
      auto wanted = in;
      std::copy_n(in.begin(), 100, wanted.begin() + 300'000);
      CHECK(out == wanted);
      if (kind == MemoryKind::pinned) CHECK(buffer.host()[699'999] == in[699'999]);
    }
    CHECK_THROWS_WITH(runtime.allocate<float>(MemoryKind::unified, 10),
                      containing("managed memory cannot be shared"));
    CHECK(engines_of(getpid()).size() == 1);
  }
  CHECK(engines_of(getpid()).empty());
  CHECK(processes.reports().empty());
}

TEST_CASE(
    "a buffer's bytes are its own while other threads make and free buffers of the same engine process") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
  std::atomic<bool> ending{false};
  std::thread other([&] {
    while (!ending) (void)runtime.allocate<uint64_t>(MemoryKind::device, 1000);
  });
  auto buffer = runtime.allocate<uint64_t>(MemoryKind::device, 100'000);
  std::vector<uint64_t> in(buffer.size()), out(in.size());
  uint64_t wrong = 0;
  for (uint64_t round = 0; round < uint64_t(rounds(300)); ++round) {
    for (size_t i = 0; i < in.size(); ++i) in[i] = round * 1'000'000 + i;
    buffer.write(in);
    buffer.read(out);
    wrong += out != in;
  }
  ending = true;
  other.join();
  CHECK(wrong == 0);
}

TEST_CASE("a buffer of an engine process that is gone is refused by name, and freeing it does not wait") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
  auto buffer = runtime.allocate<float>(MemoryKind::device, 1000);
  kill(engines_of(getpid()).at(0), SIGKILL);
  REQUIRE(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
  std::vector<float> values(1000);
  const auto status_of = [](const auto& use) {
    try {
      use();
    } catch (const Error& error) {
      return error.status();
    }
    return Status::ok;
  };
  for (const bool relaunched : {false, true}) {
    if (relaunched) runtime.relaunch();
    CHECK(status_of([&] { buffer.write(values); }) == Status::buffer_lost);
    CHECK(status_of([&] { buffer.read(values); }) == Status::buffer_lost);
    CHECK(status_of([&] { runtime.allocate<float>(MemoryKind::device, 10); }) ==
          (relaunched ? Status::ok : Status::buffer_lost));
  }
}
