// An engine process and its program: what each sees of the other's end. The engine runs on the fake driver.
#include <fcntl.h>
#include <gyre/runtime/c/gyre.h>
#include <gyre/runtime/process/control.capnp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/bridge/region.hpp>
#include <gyre/gyre.hpp>
#include <gyre/runtime/actors/actor_description.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/process/channel.hpp>
#include <gyre/runtime/process/engine_process.hpp>
#include <gyre/runtime/process/launch_message.hpp>
#include <gyre/runtime/process/mps.hpp>

#include <capnp/serialize.h>
#include <kj/exception.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/engine_processes.hpp"
#include "support/fake_engine_processes.hpp"
#if defined(GYRE_WITH_VULKAN)
#include "support/fake_vulkan.hpp"
#endif
#include "support/rounds.hpp"
#include "support/source_actors.hpp"
#include "support/stepped.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

#if defined(GYRE_THREAD_SANITIZER)
constexpr bool can_fork = false;  // ThreadSanitizer ends children that start threads
#else
constexpr bool can_fork = true;
#endif

Options in_a_process(Options options = {}) {
  options.engine = EngineKind::cuda;
  options.isolation = Isolation::process;
  // On a busy machine a process may have no turn for seconds.
  if (options.heartbeat_timeout == Options{}.heartbeat_timeout) options.heartbeat_timeout = 30s;
  options.slots = 8;
  return options;
}

template <class Holds>
bool within_a_minute(Holds holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

std::string refusal(const Options& options) {
  try {
    Runtime runtime = Runtime::launch(probe_actors(), options);
  } catch (const Error& error) {
    return error.what();
  }
  return "it launched";
}

// A program that is started as an engine process, and does what `text` says.
class Impostor {
 public:
  explicit Impostor(const std::string& text) : path_(folder_.path() / "gyre-engine") {
    std::ofstream(path_) << "#!/bin/sh\n" << text << "\n";
    chmod(path_.c_str(), 0700);
    environment_.emplace("GYRE_ENGINE", path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::string path_;
  std::optional<Environment> environment_;
};

// What CUDA and Gyre take for a running MPS daemon.
class FakeMps {
 public:
  FakeMps() : environment_("CUDA_MPS_PIPE_DIRECTORY", folder_.path().c_str()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_.path() / "control";
    REQUIRE(path.size() < sizeof address.sun_path);
    path.copy(address.sun_path, path.size());
    REQUIRE(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(socket_.get(), 1) == 0);
  }
  void die() { socket_.close(); }

 private:
  TemporaryFolder folder_;
  Environment environment_;
  Descriptor socket_{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

// No MPS, whatever runs on this machine.
class NoMps {
  Environment environment_{"CUDA_MPS_PIPE_DIRECTORY", "/nowhere"};
};

// What is logged at level info while it lives.
class Logged {
 public:
  Logged() {
    set_log_level(LogLevel::info);
    set_logger([this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      text_ += std::string(line) + "\n";
    });
  }
  ~Logged() {
    set_logger({});
    set_log_level(before_);
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  const LogLevel before_ = log_level();
  std::mutex mutex_;
  std::string text_;
};

}  // namespace

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
    const bool answered =
        runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 4)).get().has_value();
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

TEST_CASE("what is no control message is refused by name, and no descriptor leaks") {
  std::mt19937_64 random(17);
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = open_descriptors();
  for (int round = 0; round < rounds(2000); ++round) {
    int sockets[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    Descriptor writer(sockets[0]);
    process::Channel reader{Descriptor(sockets[1])};
    // A good message with descriptors, of which then some bytes are changed or the end is cut.
    std::vector<char> bytes;
    {
      int copies[2];
      REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, copies) == 0);
      process::Channel good{Descriptor(copies[0])};
      const Descriptor taken(copies[1]);
      capnp::MallocMessageBuilder message;
      auto launch = message.initRoot<process::control::ToEngine>().initLaunch();
      launch.setRuntimeTag(uint32_t(random()));
      launch.initActors().initHeaders(2)[1].setText("#pragma once");
      launch.initOptions().setKeepProgram("somewhere");
      REQUIRE(good.send(message));
      bytes.resize(4096);
      bytes.resize(size_t(read(taken.get(), bytes.data(), bytes.size())));
    }
    const size_t changes = random() % 4;
    for (size_t n = 0; n < changes; ++n) bytes[random() % bytes.size()] = char(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    REQUIRE(write(writer.get(), bytes.data(), bytes.size()) == ssize_t(bytes.size()));
    writer.close();
    try {
      while (auto received = reader.receive()) {
        const auto message = received->root<process::control::ToEngine>();
        if (message.isLaunch()) {
          for (const auto header : message.getLaunch().getActors().getHeaders())
            (void)header.getText().size();
        }
      }
    } catch (const Error& error) {
      CHECK(says(error.what(), "reading a control message: "));
    } catch (const kj::Exception&) {  // malformed within its frame
    }
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("descriptors arrive with their message, and memory that could be resized is refused") {
  int sockets[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
  process::Channel writer{Descriptor(sockets[0])}, reader{Descriptor(sockets[1])};
  SharedMemory memory("gyre-test", 10'000, 10'000);
  static_cast<char*>(memory.address())[9'999] = 'x';
  const Descriptor unsealed(memfd_create("gyre-test", MFD_CLOEXEC));
  REQUIRE(ftruncate(unsealed.get(), 20'000) == 0);
  for (int n = 0; n < 3; ++n) {
    capnp::MallocMessageBuilder message;
    message.initRoot<process::control::FromEngine>().setAllocated(uint64_t(n));
    REQUIRE(writer.send(message, {memory.descriptor(), unsealed.get()}));
  }
  for (uint64_t n = 0; n < 3; ++n) {
    auto received = reader.receive();
    REQUIRE(received);
    CHECK(received->root<process::control::FromEngine>().getAllocated() == n);
    const SharedMemory mapped(received->take_descriptor(), 10'000);
    CHECK(static_cast<const char*>(mapped.address())[9'999] == 'x');
    CHECK_THROWS_AS(SharedMemory(received->take_descriptor(), 10'000), Error);
    CHECK_THROWS_AS(received->take_descriptor(), Error);
  }
  CHECK_THROWS_AS(SharedMemory(Descriptor(dup(memory.descriptor())), 100'000), Error);
}

namespace {

using process::control::FromEngine;
using process::control::ToEngine;

// What a program is sent by an impostor: a whole message's bytes.
std::string bytes_of(capnp::MessageBuilder& message) {
  int sockets[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
  process::Channel writer{Descriptor(sockets[0])};
  const Descriptor reader(sockets[1]);
  REQUIRE(writer.send(message));
  std::string bytes(1 << 16, '\0');
  bytes.resize(size_t(read(reader.get(), bytes.data(), bytes.size())));
  return bytes;
}

std::string good_hello() {
  capnp::MallocMessageBuilder message;
  auto hello = message.initRoot<FromEngine>().initHello();
  hello.setVersion(process::control::VERSION);
  hello.setGyre(GYRE_VERSION);
  hello.setRegionVersion(region_version);
  return bytes_of(message);
}

// A list where the other side's messages have a struct.
void fill_with_another_message(capnp::MessageBuilder& message) {
  message.initRoot<FromEngine>().setFailed("a text");
  static_assert(uint16_t(FromEngine::FAILED) == uint16_t(ToEngine::SET_ENTRY));
}

// An engine process that says hello and, asked for something, `answer`; then does what `then` says.
class Answers {
 public:
  explicit Answers(const std::string& answer, const std::string& then = "exec sleep 60") {
    std::ofstream(folder_.path() / "hello", std::ios::binary) << good_hello();
    std::ofstream(folder_.path() / "answer", std::ios::binary) << answer;
    const std::string folder = folder_.path();
    impostor_.emplace("cat " + folder + "/hello >&3; head -c 1 <&3 >" + folder + "/asked; cat " + folder +
                      "/answer >&3\n" + then);
  }

 private:
  TemporaryFolder folder_;
  std::optional<Impostor> impostor_;
};

std::string what_a_launch_says(std::chrono::milliseconds heartbeat_timeout = 0ms) {
  try {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process({.heartbeat_timeout = heartbeat_timeout}));
  } catch (const Error& error) {
    return error.what();
  }
  return "it launched";
}

}  // namespace

TEST_CASE("an engine process that answers what cannot be is killed by name, and no other one") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime other = Runtime::launch(probe_actors(), in_a_process());
  {
    capnp::MallocMessageBuilder message;
    message.initRoot<FromEngine>().setDone();
    const Answers answers(bytes_of(message));
    CHECK_THAT(what_a_launch_says(), containing("asking the engine process: it answered with message 3"));
  }
  {
    capnp::MallocMessageBuilder message;
    message.initRoot<FromEngine>().initLaunched().setRegionBytes(4096);
    const Answers answers(bytes_of(message));
    CHECK_THAT(what_a_launch_says(), containing("reading the actors' description"));
  }
  {
    capnp::MallocMessageBuilder message;
    auto launched = message.initRoot<FromEngine>().initLaunched();
    const std::vector<std::byte> description = write_description(probe_actors().description());
    launched.setDescription({reinterpret_cast<const kj::byte*>(description.data()), description.size()});
    launched.setRegionBytes(4096);
    const Answers answers(bytes_of(message));
    CHECK_THAT(what_a_launch_says(),
               containing("it launched a region of 4096 bytes") && containing("it was killed, launch anew"));
  }
  {
    capnp::MallocMessageBuilder message;
    message.initRoot<FromEngine>().initLaunched().setDevice("a name");
    std::string bytes = bytes_of(message);
    for (size_t at = 16 + 8; at < bytes.size(); ++at) bytes[at] = char(0xff);  // behind frame and table
    const Answers answers(bytes);
    CHECK_THAT(what_a_launch_says(), containing("reading a control message: "));
  }
  {
    const Answers answers("no message of Gyre");
    CHECK_THAT(what_a_launch_says(), containing("was killed: reading a control message: it begins with"));
  }
  {
    const Answers answers(good_hello().substr(0, 20));  // stops within a message
    CHECK_THAT(what_a_launch_says(300ms), containing("gave no heartbeat for 300 ms and was killed"));
  }
  {
    const Answers answers("", "exec 3>&-; exec sleep 60");
    CHECK_THAT(what_a_launch_says(), containing("closed its socket and was killed"));
  }
  CHECK(other.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 4)).get().value()->getValue() == 9);
  CHECK(engines_of(getpid()).size() == 1);
}

TEST_CASE("an engine process that computes is not taken for a stopped one, though its guardian has no turn") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  // Some seconds of it, without a heartbeat.
  const Answers answers("", "n=0; while [ $n -lt 2000000 ]; do n=$((n+1)); done; exit 3");
  CHECK_THAT(what_a_launch_says(1s), containing("it ended with exit code 3"));
}

TEST_CASE("an engine process that gets what no program sends ends by name, and no other one") {
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  process::EngineProcess process(5s), other(5s);
  capnp::MallocMessageBuilder wrong;
  fill_with_another_message(wrong);
  const std::string why =
      "the engine process " + std::to_string(process.id()) + " ended: reading a control message: ";
  CHECK_THROWS_WITH(process.call(wrong, FromEngine::DONE), containing(why));
  CHECK(within_a_minute([&] { return process.gone(); }));
  CHECK_THAT(process.failure().value_or(""), containing(why));
  capnp::MallocMessageBuilder message;
  message.initRoot<ToEngine>().setDevices();
  CHECK(other.call(message, FromEngine::DEVICES).root<FromEngine>().getDevices().size() == 1);
}

TEST_CASE("an engine process refuses memory that it did not allocate") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  process::EngineProcess process(5s);
  const auto ask = [&](auto fill, FromEngine::Which expected) {
    capnp::MallocMessageBuilder message;
    fill(message.initRoot<ToEngine>());
    return process.call(message, expected);
  };
  const auto zero = [&](uint64_t address, uint64_t bytes) {
    ask(
        [&](ToEngine::Builder to) {
          auto span = to.initZero();
          span.setAddress(address);
          span.setBytes(bytes);
        },
        FromEngine::DONE);
  };
  const auto set_entry = [&](uint64_t address, uint64_t bytes) {
    ask(
        [&](ToEngine::Builder to) {
          const uint64_t words[] = {address, bytes, 1};
          to.initSetEntry().setBytes({reinterpret_cast<const kj::byte*>(words), sizeof words});
        },
        FromEngine::DONE);
  };
  CHECK_THROWS_WITH(zero(4096, 1), containing("are of no buffer"));
  ask(
      [](ToEngine::Builder to) {
        process::write_launch(to.initLaunch(), probe_actors(),
                              in_a_process({.transport = TransportKind::pinned}), 1);
      },
      FromEngine::LAUNCHED);
  const uint64_t block = ask(
                             [](ToEngine::Builder to) {
                               auto asked = to.initAllocate();
                               asked.setKind(uint32_t(MemoryKind::device));
                               asked.setBytes(10'000);
                             },
                             FromEngine::ALLOCATED)
                             .root<FromEngine>()
                             .getAllocated();
  zero(block, 10'000);
  zero(block + 9'999, 1);
  CHECK_THROWS_WITH(zero(block, 10'001), containing("are of no buffer"));
  CHECK_THROWS_WITH(zero(block + 9'999, 2), containing("are of no buffer"));
  CHECK_THROWS_WITH(zero(block - 1, 2), containing("are of no buffer"));
  CHECK_THROWS_WITH(zero(block + 1, ~uint64_t(0)), containing("are of no buffer"));
  set_entry(block, 10'000);
  set_entry(0, 0);
  CHECK_THROWS_WITH(set_entry(block, 10'001), containing("are of no buffer"));
  CHECK_THROWS_WITH(set_entry(block + 8, 8), containing("are of no buffer"));
  // Memory of the program that it does not have, or describes wrongly.
  const Descriptor file(memfd_create("of the program", MFD_CLOEXEC));
  REQUIRE(ftruncate(file.get(), 8192) == 0);
  const auto import = [&](uint64_t allocation_bytes, uint64_t offset, uint64_t bytes, size_t handle_bytes) {
    capnp::MallocMessageBuilder message;
    auto asked = message.initRoot<ToEngine>().initImport();
    asked.setBase(4096);
    asked.setId(7);
    asked.setAllocationBytes(allocation_bytes);
    asked.setOffset(offset);
    asked.setBytes(bytes);
    asked.initIpcHandle(uint32_t(handle_bytes));
    if (handle_bytes != 0)
      return process.call(message, FromEngine::IMPORTED).root<FromEngine>().getImported();
    return process.call(message, FromEngine::IMPORTED, {file.get()}).root<FromEngine>().getImported();
  };
  CHECK_THROWS_WITH(import(8192, 0, 8192, 64), containing("opening memory of a program by its IPC handle"));
  CHECK_THROWS_WITH(import(8192, 0, 8192, 63), containing("an IPC handle has 64 bytes, and this one 63"));
  CHECK_THROWS_WITH(import(16384, 0, 8192, 0), containing("mapping memory of a program"));
  CHECK_THROWS_WITH(import(8191, 0, 8191, 0), containing("reserving addresses for memory of a program"));
  CHECK_THROWS_WITH(import(8192, 1, 8192, 0),
                    containing("8192 bytes from byte 1 on, and the allocation has"));
  CHECK_THROWS_WITH(import(8192, 8193, 1, 0), containing("1 bytes from byte 8193 on"));
  CHECK_THROWS_WITH(import(8192, 0, 0, 0), containing("0 bytes from byte 0 on"));
  const uint64_t imported = import(8192, 4096, 100, 0);
  zero(imported, 100);
  set_entry(imported, 100);
  CHECK_THROWS_WITH(zero(imported, 101), containing("are of no buffer"));
  CHECK_THROWS_WITH(zero(imported - 1, 2), containing("are of no buffer"));
  CHECK_THROWS_WITH(set_entry(imported, 101), containing("are of no buffer"));
  // What is mapped is as large as it was said to be at first, whatever is claimed of it later.
  CHECK_THROWS_WITH(import(1 << 20, 0, 8193, 0), containing("and the allocation has 8192"));
  capnp::MallocMessageBuilder given_back;
  auto part = given_back.initRoot<ToEngine>().initRelease();
  part.setKind(uint32_t(MemoryKind::imported));
  part.setAddress(imported);
  part.setBytes(100);
  process.post(given_back);
  CHECK_THROWS_WITH(zero(imported, 1), containing("are of no buffer"));
  CHECK(!process.failure());
  capnp::MallocMessageBuilder message;
  auto released = message.initRoot<ToEngine>().initRelease();
  released.setKind(uint32_t(MemoryKind::device));
  released.setAddress(block + 4096);
  released.setBytes(10'000);
  process.post(message);
  CHECK(within_a_minute([&] { return process.gone(); }));
  CHECK_THAT(process.failure().value_or(""),
             containing("ended: freeing a buffer for a program: there is none of 10000 bytes at"));
}
