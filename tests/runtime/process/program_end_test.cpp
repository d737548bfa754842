// How programs end, and that their engine processes end with them.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/process/engine_process.hpp>
#include <gyre/runtime/process/mps.hpp>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>

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

namespace {

// A program, in a child, that launches and then does `then`; the engine process that it started.
struct Program {
  pid_t id = 0;
  pid_t engine = 0;
};

Program program_that(const std::function<void(Runtime&)>& then) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  Program program;
  program.id = fork();
  if (program.id == 0) {
    close(ends[0]);
    setpgid(0, 0);
    alarm(60);
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process({.workers = 2}));
    const pid_t engine = engines_of(getpid()).at(0);
    if (write(ends[1], &engine, sizeof engine) != sizeof engine) _exit(1);
    close(ends[1]);
    then(runtime);
    pause();
    _exit(0);
  }
  close(ends[1]);
  REQUIRE(read(ends[0], &program.engine, sizeof program.engine) == sizeof program.engine);
  close(ends[0]);
  return program;
}

void ask_for_ever(Runtime& runtime) {
  for (uint64_t key = 0;; ++key) {
    (void)runtime.client().ask<ProbeRequest>(Address<Probe>{key % 8}, asking(Action::ANSWER, key)).get();
  }
}

void end_program(const Program& program) {
  kill(program.id, SIGKILL);
  waitpid(program.id, nullptr, 0);
}

}  // namespace

TEST_CASE("a program that is killed takes its engine process along, at any moment") {
  if (without_nvrtc() || !can_fork) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  std::mt19937 random(11);
  for (int round = 0; round < rounds(12); ++round) {
    const Program program = program_that(ask_for_ever);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    end_program(program);
    CHECK(within_a_minute([&] { return !lives(program.engine); }));
  }
}

TEST_CASE("a program that is killed while it launches leaves no engine process") {
  if (without_nvrtc() || !can_fork) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  std::mt19937 random(13);
  // What a killed program started goes to this process when it has no parent any more.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int round = 0; round < rounds(12); ++round) {
    const pid_t program = fork();
    if (program == 0) {
      alarm(60);
      for (;;) Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    kill(program, SIGKILL);
    waitpid(program, nullptr, 0);
    CHECK(within_a_minute([] { return engines_of(getpid()).empty(); }));
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("an engine process ends with its program though a forked child holds copies of everything") {
  if (without_nvrtc() || !can_fork) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const Program program = program_that([&](Runtime& runtime) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      pause();
      _exit(0);
    }
    if (write(ends[1], &child, sizeof child) != sizeof child) _exit(1);
    ask_for_ever(runtime);
  });
  pid_t child = 0;
  REQUIRE(read(ends[0], &child, sizeof child) == sizeof child);
  close(ends[0]);
  close(ends[1]);
  end_program(program);
  CHECK(within_a_minute([&] { return !lives(program.engine); }));
  CHECK(lives(child));
  kill(child, SIGKILL);
}

TEST_CASE("under MPS the engine process of a program that is killed stops its workers before it ends") {
  if (without_nvrtc() || !can_fork) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  const TemporaryFolder folder;
  const std::string path = folder.path() / "end";
  const Environment environment("GYRE_TEST_ENGINE_END", path.c_str());
  const FakeMps mps;
  const Program program = program_that(ask_for_ever);
  std::filesystem::remove(path);  // of the process that said how many multiprocessors there are
  end_program(program);
  CHECK(within_a_minute([&] { return !lives(program.engine); }));
  CHECK(read_file(path) == "0 workers\n");
}

TEST_CASE("an engine process ends when its program executes another one, a forked child or not") {
  if (without_nvrtc() || !can_fork) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  for (const bool with_child : {false, true}) {
    const Program program = program_that([&](Runtime&) {
      if (with_child && fork() == 0) {
        alarm(60);
        pause();
        _exit(0);
      }
      execl("/bin/sleep", "sleep", "60", nullptr);
    });
    CHECK(within_a_minute([&] { return !lives(program.engine); }));
    CHECK(lives(program.id));
    kill(-program.id, SIGKILL);  // and its child
    waitpid(program.id, nullptr, 0);
  }
}

TEST_CASE("a program whose launching thread has ended keeps its engine process") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  std::optional<Runtime> runtime;
  std::thread([&] { runtime.emplace(Runtime::launch(probe_actors(), in_a_process())); }).join();
  for (uint64_t i = 0; i < 200; ++i) {
    REQUIRE(runtime->client().ask<ProbeRequest>(probe, asking(Action::ANSWER, i)).get());
    std::this_thread::sleep_for(1ms);
  }
  CHECK(runtime->terminate().books.balanced());
}
