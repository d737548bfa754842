// Failed engine processes that are launched again.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/process/engine_process.hpp>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/engine_process_cases.hpp"
#include "support/engine_processes.hpp"
#include "support/fake_engine_processes.hpp"
#include "support/rounds.hpp"
#include "support/stepped.hpp"
#include "support/temporary_folder.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre_test;

TEST_CASE("a failed runtime launched again serves its old clients, and its counts add up") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime runtime = Runtime::launch(probe_actors(), in_a_process({.workers = 2, .timeout = 60s}));
  Client client = runtime.client();
  constexpr Address<Probe> third{3};
  const auto processed = [&runtime] {
    uint64_t sum = 0;
    for (const HandlerStats& handler : runtime.stats().handlers()) sum += handler.processed;
    return sum;
  };
  uint64_t told = 0;
  for (uint32_t relaunches = 0; relaunches < 3; ++relaunches) {
    REQUIRE(client.tell<ProbeNote>(third, noting(5)));
    ++told;
    const auto sum = client.ask<ProbeRequest>(third, asking(Action::SUM_OF_NOTES, 0)).get();
    REQUIRE(sum);
    CHECK(sum.value()->getValue() == 5);  // its state began anew
    // The worker reports within 32 ms; what it has not reported when it dies is lost.
    CHECK(within_a_minute([&] { return processed() >= 2 * (relaunches + 1); }));
    CHECK_THROWS_WITH(runtime.relaunch(), containing("its engine works (state active)"));
    auto pending = client.ask<ProbeRequest>(third, asking(Action::WORK, 100'000'000'000));
    kill(engines_of(getpid()).at(0), SIGKILL);
    CHECK(pending.get().error().status == Status::engine_failed);
    CHECK(client.tell<ProbeNote>(third, noting(1)).error().status == Status::engine_failed);
    runtime.relaunch();
    CHECK(runtime.state() == Lifecycle::active);
    CHECK(runtime.failure().empty());
    CHECK(runtime.stats().restarts == relaunches + 1);
    CHECK(runtime.restarts() == relaunches + 1);
    CHECK(engines_of(getpid()).size() == 1);
  }
  const Books books = runtime.terminate().books;
  CHECK(books.asks.accepted == 6);
  CHECK(books.asks.answered == 3);
  CHECK(books.asks.dead_letters == 3);
  CHECK(books.asks.inferred == 3);
  CHECK(books.tells.accepted == told);
  CHECK(books.tells.processed + books.tells.dead_letters == told);
  CHECK(books.balanced());
  CHECK(processed() >= 6);
  CHECK_THROWS_WITH(runtime.relaunch(), containing("it was terminated"));
}

TEST_CASE(
    "an engine that fails is launched again by itself as often as it may, and the program hears of it") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Options options = in_a_process({.timeout = 60s});
  options.restart = {2, 60s};
  Runtime runtime = Runtime::launch(probe_actors(), options);
  std::atomic<uint32_t> heard{0};
  std::string cause;
  runtime.on_restart([&](const Restart& restart) {
    cause = restart.cause;
    heard.store(restart.number, std::memory_order_release);  // pairs with the load below
  });
  for (uint32_t time = 1; time <= 2; ++time) {
    kill(engines_of(getpid()).at(0), SIGKILL);
    REQUIRE(within_a_minute([&] { return heard.load(std::memory_order_acquire) == time; }));
    CHECK(says(cause, "was ended by signal 9"));
    CHECK(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, time)).get().value()->getValue() ==
          2 * time + 1);
  }
  kill(engines_of(getpid()).at(0), SIGKILL);
  REQUIRE(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
  CHECK(runtime.stats().restarts == 2);
  CHECK(runtime.terminate().books.balanced());
  CHECK(engines_of(getpid()).empty());
}

TEST_CASE("a relaunch by hand takes the place of the one that Options::restart would make later") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Logged logged;
  Options options = in_a_process({.timeout = 60s});
  options.restart = {8, 60s};
  Runtime runtime = Runtime::launch(probe_actors(), options);
  const auto die = [&] {
    kill(engines_of(getpid()).at(0), SIGKILL);
    REQUIRE(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
  };
  const auto answers = [&] {
    return runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 4)).get().has_value();
  };
  for (uint32_t restarts = 1; restarts <= 2; ++restarts) {  // the second comes after a pause, and so on
    kill(engines_of(getpid()).at(0), SIGKILL);
    REQUIRE(within_a_minute([&] { return runtime.stats().restarts == restarts; }));
  }
  for (uint32_t restarts = 3; restarts <= 4; ++restarts) {
    die();
    runtime.relaunch();
    CHECK(runtime.stats().restarts == restarts);
    CHECK(answers());
  }
  CHECK(says(logged.text(), "(restart 4)"));
  CHECK_FALSE(says(logged.text(), "restarting the engine: "));
  // Neither counted as one of those that may come by themselves.
  kill(engines_of(getpid()).at(0), SIGKILL);
  REQUIRE(within_a_minute([&] { return runtime.stats().restarts == 5; }));
  CHECK(answers());
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a relaunch by itself that fails is tried again after a pause") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Logged logged;
  Options options = in_a_process();
  options.restart = {8, 60s};
  Runtime runtime = Runtime::launch(probe_actors(), options);
  {
    const Environment environment("GYRE_ENGINE", "/nowhere/gyre-engine");
    kill(engines_of(getpid()).at(0), SIGKILL);
    REQUIRE(within_a_minute([&] { return says(logged.text(), "restarting the engine: "); }));
  }
  REQUIRE(within_a_minute([&] { return runtime.stats().restarts == 1; }));
  CHECK(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 4)).get().value()->getValue() == 9);
}

TEST_CASE("terminate does not wait longer than its timeout for what on_restart was given, and says so") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
  kill(engines_of(getpid()).at(0), SIGKILL);
  REQUIRE(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
  std::atomic<bool> called{false}, ended{false};
  runtime.on_restart([&](const Restart&) {
    called = true;
    while (!ended) std::this_thread::sleep_for(1ms);
  });
  std::thread relaunching([&] { runtime.relaunch(); });
  REQUIRE(within_a_minute([&] { return called.load(); }));
  const Termination report = runtime.terminate(1ms);
  ended = true;
  relaunching.join();
  CHECK(report.callback_stuck);
  CHECK(report.books.balanced());
  CHECK_FALSE(runtime.terminate().callback_stuck);
  CHECK_THROWS_WITH(runtime.relaunch(), containing("it was terminated"));
}

TEST_CASE("counts never go down while failed engines are launched again") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
  Client client = runtime.client();
  std::atomic<bool> ending{false};
  std::atomic<uint64_t> downs{0};
  std::thread reader([&] {
    for (uint64_t books = 0, stats = 0; !ending;) {
      const uint64_t last_books = std::exchange(books, runtime.books().asks.accepted);
      const uint64_t last_stats = std::exchange(stats, runtime.stats().books.asks.accepted);
      downs += uint64_t(books < last_books) + uint64_t(stats < last_stats);
    }
  });
  constexpr uint64_t asks = 50;
  const uint64_t relaunches = uint64_t(rounds(20));
  for (uint64_t relaunch = 0; relaunch < relaunches; ++relaunch) {
    for (uint64_t n = 0; n < asks; ++n)
      REQUIRE(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, n)).get());
    kill(engines_of(getpid()).at(0), SIGKILL);
    REQUIRE(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
    runtime.relaunch();
  }
  ending = true;
  reader.join();
  CHECK(downs == 0);
  CHECK(runtime.books().asks.accepted == asks * relaunches);
}

TEST_CASE("threads that ask while engines die and are launched again get each outcome once") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Options options = in_a_process({.workers = 2, .timeout = 60s});
  options.restart = {1000, 60s};
  Runtime runtime = Runtime::launch(probe_actors(), options);
  std::atomic<bool> ending{false};
  std::atomic<uint64_t> answered{0}, failed{0}, other{0}, restarts{0};
  runtime.on_restart([&](const Restart&) { ++restarts; });
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      Client client = runtime.client();
      for (uint64_t n = 0; !ending.load(std::memory_order_relaxed); ++n) {
        const auto reply = client.ask<ProbeRequest>(Address<Probe>{thread}, asking(Action::ANSWER, n)).get();
        if (reply && reply.value()->getValue() == 2 * n + 1) {
          ++answered;
        } else if (!reply && reply.error().status == Status::engine_failed) {
          ++failed;
          std::this_thread::yield();
        } else {
          ++other;
        }
      }
    });
  }
  // The first relaunches come at once, the later ones after pauses.
  for (uint64_t time = 1; time <= uint64_t(rounds(4)); ++time) {
    const uint64_t before = answered;
    CHECK(within_a_minute([&] { return answered > before + 100; }));
    for (const pid_t engine : engines_of(getpid())) kill(engine, SIGKILL);
    CHECK(within_a_minute([&] { return restarts >= time; }));
  }
  const uint64_t before = answered;
  CHECK(within_a_minute([&] { return answered > before + 100; }));
  ending = true;
  for (std::thread& thread : threads) thread.join();
  const Books books = runtime.terminate().books;
  CHECK(other == 0);
  CHECK(books.asks.answered == answered);
  CHECK(books.asks.accepted == books.asks.answered + books.asks.dead_letters);
  CHECK(books.asks.dead_letters <= failed);
  CHECK(books.balanced());
}

TEST_CASE(
    "a relaunch whose engine process does not start leaves the runtime failed, and may be tried again") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
  kill(engines_of(getpid()).at(0), SIGKILL);
  REQUIRE(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
  {
    const Environment environment("GYRE_ENGINE", "/nowhere/gyre-engine");
    CHECK_THROWS_AS(runtime.relaunch(), EngineUnavailable);
    CHECK(runtime.state() == Lifecycle::failed);
  }
  runtime.relaunch();
  CHECK(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 4)).get().value()->getValue() == 9);
}
