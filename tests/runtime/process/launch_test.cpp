// What a launch of an engine process needs, and how it is refused.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/process/channel.hpp>
#include <gyre/runtime/process/engine_process.hpp>
#include <gyre/runtime/process/mps.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/engine_process_cases.hpp"
#include "support/engine_processes.hpp"
#include "support/fake_engine_processes.hpp"
#include "support/source_actors.hpp"
#include "support/stepped.hpp"
#include "support/temporary_folder.hpp"
#include "support/without_nvrtc.hpp"
#if defined(GYRE_WITH_VULKAN)
#include "support/fake_vulkan.hpp"
#endif

using namespace gyre;
using namespace gyre_test;

TEST_CASE("an engine process that is not there, or does not start, is refused by name with the paths") {
  {
    const Environment environment("GYRE_ENGINE", "/nowhere/gyre-engine");
    const std::string text = refusal(in_a_process());
    CHECK(says(text, "there is no program gyre-engine at /nowhere/gyre-engine"));
    CHECK(says(text, "--isolation in_process"));
  }
  {
    const Environment environment("GYRE_ENGINE", nullptr);
    CHECK(process::engine_paths().size() >= 3);
    CHECK(process::engine_paths().back() == "/usr/libexec/gyre/gyre-engine");
  }
  const Impostor ends("exit 7");
  CHECK(says(refusal(in_a_process()), "it ended with exit code 7"));
  const Impostor babbles("echo this is no message of Gyre, nor will one come >&3");
  CHECK(says(refusal(in_a_process()), "it begins with"));
}

namespace {

// Makes the system refuse these calls to this thread, and to the threads and processes that it starts.
void refuse_calls(std::initializer_list<long> calls, int error) {
  std::vector<sock_filter> filter;
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (const long call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | uint32_t(error)));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{uint16_t(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    throw Error("refusing system calls: " + std::generic_category().message(errno));
}

void with_calls_refused(std::initializer_list<long> calls, int error, const std::function<void()>& then) {
  std::thread([&] {
    refuse_calls(calls, error);
    then();
  }).join();
}

}  // namespace

TEST_CASE("an engine process has no descriptor of the program's, where close_range is refused too") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  int ends[2];
  REQUIRE(pipe(ends) == 0);  // not close-on-exec
  const Descriptor reader(ends[0]), writer(ends[1]);
  const std::string pipe = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(ends[0]));
  for (const long refused : {long(-1), long(SYS_close_range)}) {
    with_calls_refused({refused}, ENOSYS, [&] {
      const Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
      const std::string folder = "/proc/" + std::to_string(engines_of(getpid()).at(0)) + "/fd";
      for (const auto& entry : std::filesystem::directory_iterator(folder))
        CHECK(std::filesystem::read_symlink(entry.path()) != pipe);
    });
  }
}

TEST_CASE("an engine process is killed where the system refuses signals by pidfd") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  with_calls_refused({SYS_pidfd_send_signal}, EPERM, [] {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process({.heartbeat_timeout = 300ms}));
    kill(engines_of(getpid()).at(0), SIGSTOP);
    CHECK(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
  });
  CHECK(engines_of(getpid()).empty());
}

TEST_CASE("an engine process that the program may not signal any more ends when it is to be killed") {
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  const NoMps no_mps;
  with_calls_refused({SYS_pidfd_send_signal, SYS_kill}, EPERM, [] {
    process::EngineProcess engine(2s);
    engine.kill();
    CHECK(within_a_minute([&] { return engine.gone(); }));
    CHECK(says(engine.failure().value(), "ended with exit code 0"));
  });
}

TEST_CASE("a launch that gets no shared memory names the other isolation") {
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  with_calls_refused({SYS_memfd_create}, EPERM, [] {
    const std::string text = refusal(in_a_process());
    CHECK(says(text, "starting the engine process: making shared memory (memfd_create): "));
    CHECK(says(text, "--isolation in_process"));
  });
}

TEST_CASE("a program without a free descriptor gets no pinned buffer, and its engine goes on") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
    const auto answers = [&] {
      return runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 4)).get().has_value();
    };
    // UndefinedBehaviorSanitizer opens a pipe to look at the first object of a type, and there is none below.
    REQUIRE(answers());
    CHECK_THROWS_AS(runtime.allocate<float>(MemoryKind::pinned, uint64_t(1) << 50), Error);
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit few{200, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
    std::vector<Descriptor> taken;
    while (Descriptor one{open("/dev/null", O_RDONLY | O_CLOEXEC)}) taken.push_back(std::move(one));
    std::string why;
    try {
      (void)runtime.allocate<float>(MemoryKind::pinned, 1000);
    } catch (const Error& error) {
      why = error.what();
    }
    const bool answered = answers();
    taken.clear();
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_THAT(why, containing("the system has no room for it") && containing("ulimit -n"));
    CHECK(answered);
    CHECK(runtime.failure().empty());
    CHECK(runtime.allocate<float>(MemoryKind::pinned, 1000).size() == 1000);
    CHECK(runtime.terminate().books.balanced());
  }
  CHECK(processes.reports().empty());
}

TEST_CASE("unified memory is refused beside an engine process") {
  const std::string text = refusal(in_a_process({.transport = TransportKind::unified}));
  CHECK(says(text, "--transport unified: managed memory cannot be shared with the engine's process"));
}

#if defined(GYRE_WITH_VULKAN)
TEST_CASE(
    "over BAR an engine process reads the program's device memory, and after its end another one does") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  const FakeVulkan vulkan;
  {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process({.transport = TransportKind::bar}));
    CHECK(runtime.transport() == TransportKind::bar);
    Client client = runtime.client();
    for (const int signal : {SIGKILL, SIGABRT}) {
      for (uint64_t n = 0; n < 100; ++n)
        REQUIRE(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, n)).get().value()->getValue() ==
                2 * n + 1);
      kill(engines_of(getpid()).at(0), signal);
      CHECK(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
      runtime.relaunch();
    }
    CHECK(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 4)).get().value()->getValue() == 9);
    CHECK(runtime.terminate().books.balanced());
  }
  CHECK(vulkan.live() == FakeVulkan::Live{});
  CHECK(processes.reports().empty());
}

TEST_CASE("where BAR does not work an engine process goes on with pinned memory, or is refused by name") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  FakeVulkan vulkan;
  std::string why;
  SECTION("stores are lost") {
    vulkan.loses_stores = true;
    why = "a message would be lost";
  }
  SECTION("Vulkan does not know the device") {
    vulkan.has_device = false;
    why = "none of the 1 has its UUID";
  }
  CHECK_THROWS_WITH(Runtime::launch(probe_actors(), in_a_process({.transport = TransportKind::bar})),
                    containing("launching with --transport bar: ") && containing(why) &&
                        containing("or use --transport pinned"));
  {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
    CHECK(runtime.transport() == TransportKind::pinned);
    CHECK(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 4)).get().value()->getValue() ==
          9);
  }
  CHECK(vulkan.live() == FakeVulkan::Live{});
  CHECK(processes.reports().empty());
}
#endif

TEST_CASE("everything that is wrong with a launch is said at once, through an engine process too") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Options options = in_a_process({.device = 3, .workers = 70'000, .block = 33});
  const std::string text = refusal(options);
  INFO(text);
  CHECK(says(text, "--workers 70000"));
  CHECK(says(text, "--block 33"));
  CHECK(says(text, "choosing CUDA device 3"));
  CHECK(engines_of(getpid()).empty());
}

TEST_CASE("an engine process finds the CUDA toolkit where the program's environment says") {
  if (without_nvrtc()) return;
  const TemporaryFolder folder;
  const std::filesystem::path include = folder.path() / "include";
  std::filesystem::create_directories(include);
  write_file(include / "cuda_runtime_api.h",
             "#define CUDART_VERSION " + std::to_string(cuda::nvrtc_version().major) + "000\n");
  write_file(include / "cuda_fp16.h", "#error this is the test's toolkit\n");
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  const Environment home("CUDA_HOME", folder.path().c_str());
  const ActorSet actors = counter_from_source("#include <cuda_fp16.h>\n" + std::string(counter_text));
  CHECK_THROWS_WITH(Runtime::launch(actors, in_a_process()), containing("this is the test's toolkit"));
}
