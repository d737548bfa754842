// One life of a runtime on CUDA, in phases, with one driver call of one phase failing.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "support/failing_driver.hpp"
#include "support/stepped.hpp"

namespace gyre_test {

enum class Phase { launch, traffic, terminate, destruction };

/// What became of it.
struct Life {
  std::vector<std::string> calls;  ///< of the phase asked for, in order
  std::string failed;              ///< the function whose call failed; empty if no call was the n-th
  bool failed_here = false;        ///< the thread of live_with_fault() made that call
  std::string error;               ///< what was thrown, or an ask's failure, or why the engine failed
  bool unavailable = false;        ///< an EngineUnavailable was thrown
  bool stuck = false;              ///< terminate said so: memory was leaked on purpose
  bool answered = true;            ///< every ask, rightly
  bool balanced = true;            ///< the books
};

/// How many calls of the phase there are to fail, by a healthy life's: polling repeats the same few, and how
/// often is a matter of time; the first of them stand for all.
inline size_t sites(Phase phase, const Life& healthy) {
  const auto launch = std::find(healthy.calls.begin(), healthy.calls.end(), "cuLaunchCooperativeKernel");
  switch (phase) {
    case Phase::launch:
      return size_t(launch - healthy.calls.begin()) + 2;
    case Phase::destruction:
      return healthy.calls.size();
    case Phase::traffic:
      return std::min<size_t>(healthy.calls.size(), 3);  // the kernel is polled once, perhaps never again
    default:
      return std::min<size_t>(healthy.calls.size(), 6);
  }
}

/// Launches, asks and tells, terminates and destroys; call `n` of `at` fails with `code` (0: none does).
/// Takes a minute at the longest, or ends the process.
inline Life live_with_fault(FailingDriver& driver, Phase at, size_t n, CUresult code,
                            gyre::Options options = {}) {
  options.engine = gyre::EngineKind::cuda;
  options.isolation = gyre::Isolation::in_process;
  options.slots = 8;
  Life life;
  Phase now = Phase::launch;
  const auto enter = [&](Phase phase) {
    now = phase;
    driver.fail(phase == at ? n : 0, code);
  };
  const auto leave = [&] {
    if (now != at) return;
    life.calls = driver.calls();
    life.failed = driver.failed();
    life.failed_here = driver.failed_on_this_thread();
  };
  alarm(60);
  try {
    enter(Phase::launch);
    std::optional<gyre::Runtime> runtime(gyre::Runtime::launch(probe_actors(), options));
    leave();

    enter(Phase::traffic);
    gyre::Client client = runtime->client();
    for (uint64_t i = 0; i < 20; ++i) {
      (void)client.tell<ProbeNote>(probe, noting(i));
      const auto reply = client.ask<ProbeRequest>(probe, asking(Action::ANSWER, i)).get();
      life.answered = life.answered && reply && reply.value()->getValue() == 2 * i + 1;
      if (!reply) life.error = reply.error().message();
    }
    // Waits long enough to look whether the engine lives.
    (void)client.ask<ProbeRequest>(probe, asking(Action::WORK, 30'000'000)).get();
    leave();

    enter(Phase::terminate);
    const gyre::Termination report = runtime->terminate();
    leave();
    life.stuck = report.worker_stuck;
    life.balanced = report.books.balanced();
    if (const std::string cause = runtime->failure(); !cause.empty()) life.error = cause;

    enter(Phase::destruction);
    client = gyre::Client(nullptr);
    runtime.reset();
    leave();
  } catch (const gyre::EngineUnavailable& error) {
    leave();
    life.unavailable = true;
    life.error = error.what();
  } catch (const gyre::Error& error) {
    leave();
    life.error = error.what();
  }
  alarm(0);
  driver.fail(0, CUDA_SUCCESS);
  return life;
}

}  // namespace gyre_test
