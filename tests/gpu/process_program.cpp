// gyre-gpu-process WHAT pinned|bar [TIMES]: engine processes beside each other, and what is left of them.
// WHAT is
//   together  a runtime is launched, asked and ended TIMES times while two threads ask another one
//   programs  likewise, each in a program of its own
//   kills     a program is killed TIMES times, at random moments from before its launch to its end
//   ends      how long terminate() takes, and its engine process
//   launches  from a program's start to its first reply, by an engine process and in process
// Exit 0 if all held; 77 without a GPU. $GYRE_ENGINE may be tests' fake-gyre-engine: times are not judged
// then.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/bridge/descriptor.hpp>
#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/log.hpp>

#include <cerrno>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "gpu/figures.hpp"
#include "support/engine_processes.hpp"

extern char** environ;

using namespace gyre;
using namespace gyre_test;
using namespace std::chrono_literals;

namespace {

void expect_ms(double ms, double most_ms, const std::string& what) {
  expect(on_fake_driver() || ms <= most_ms,
         fmt::format("{}: {:.1f} ms, at most {} were promised", what, ms, most_ms));
}

Options options_for(const std::string& transport, const std::string& isolation = "process") {
  Options options{.engine = EngineKind::cuda,
                  .transport = transport == "bar" ? TransportKind::bar : TransportKind::pinned};
  options.isolation = isolation == "process" ? Isolation::process : Isolation::in_process;
  options.workers = 2;
  options.timeout = 30s;
  // Where tests run on few processors, others take them for seconds.
  if (on_fake_driver()) options.heartbeat_timeout = 20s;
  return options;
}

// The reply's status; wrong replies are counted.
Status ask(Client& client, uint64_t n) {
  const auto fill = [n](messages::EchoRequest::Builder request) {
    request.setSequence(n);
    request.initPayload(4).set(3, ~n);
  };
  const auto reply = client.ask<messages::EchoRequest>(Address<actors::Echo>{n % 8}, fill).get();
  if (!reply) return reply.error().status;
  const auto& echoed = *reply.value();
  expect(echoed.getSequence() == n && echoed.getPayload().size() == 4 && echoed.getPayload()[3] == ~n,
         "a reply is right");
  return Status::ok;
}

// Two threads that ask all the time, until they are told to end or the runtime drains.
class Load {
 public:
  explicit Load(Runtime& runtime) {
    for (auto& times : us_)  // before they ask: growing takes longer than many round trips
      for (auto& part : times) part.reserve(8 << 20);
    for (uint64_t thread = 0; thread < std::size(threads_); ++thread)
      threads_[thread] = std::thread([this, client = runtime.client(), thread] { run(client, thread); });
  }
  ~Load() { end(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void end() {
    ending_ = true;
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }
  /// Round trips count as `beside` another runtime from now on, or as alone.
  void set_beside(bool beside) { beside_ = beside; }
  /// Round trips in microseconds, after end().
  Times round_trips(bool beside) const {
    Times all;
    for (const auto& times : us_) all.add(times[beside]);
    return all;
  }

 private:
  void run(Client client, uint64_t thread) {
    for (uint64_t n = thread << 40; !ending_; ++n) {
      const bool beside = beside_;
      const auto begin = Clock::now();
      const Status status = ask(client, n);
      const double us = ms_since(begin) * 1e3;
      if (status == Status::draining || status == Status::terminated) return;
      expect(status == Status::ok, fmt::format("an ask under load is answered: {}", name(status)));
      if (status != Status::ok) return;
      us_[thread][beside].push_back(float(us));
    }
  }

  std::atomic<bool> ending_{false}, beside_{false};
  std::vector<float> us_[2][2];  // of a thread, alone and beside
  std::thread threads_[2];
};

struct Lifetime {
  double launch_ms = 0, end_ms = 0;
  Clock::time_point replied;
};

// Launches, asks and ends a runtime.
Lifetime live_once(const Options& options) {
  Lifetime lifetime;
  auto begin = Clock::now();
  {
    Runtime runtime = Runtime::launch(builtin_actors(), options);
    lifetime.launch_ms = ms_since(begin);
    {
      Client client = runtime.client();
      expect(ask(client, 1) == Status::ok, "the first ask is answered");
      lifetime.replied = Clock::now();
      for (uint64_t n = 2; n < 300; ++n) expect(ask(client, n) == Status::ok, "an ask is answered");
    }
    begin = Clock::now();
    expect(runtime.terminate().books.balanced(), "the books balance");
  }
  lifetime.end_ms = ms_since(begin);
  return lifetime;
}

// This program with other arguments, in a session of its own; `terminal` becomes its terminal.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments, const char* terminal = nullptr) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw Error("making a pipe failed");
    output_ = Descriptor(ends[0]);
    const Descriptor theirs(ends[1]);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, theirs.get(), STDOUT_FILENO);
    if (terminal != nullptr) posix_spawn_file_actions_addopen(&files, STDIN_FILENO, terminal, O_RDWR, 0);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);  // a shell's background ignores SIGINT
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    arguments.insert(arguments.begin(), "gyre-gpu-process");
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    started_ = Clock::now();
    const int error = posix_spawn(&id_, "/proc/self/exe", &files, &attributes, pointers.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) throw Error(std::string("starting a program failed: ") + std::strerror(error));
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t id() const { return id_; }
  Clock::time_point started() const { return started_; }
  /// Waits until it has ended, and returns its status as waitpid() gives it.
  int wait() const {
    int status = 0;
    while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }
  /// Returns what it has printed and nobody has taken, without waiting.
  std::string output() const {
    fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    std::string text(4096, '\0');
    const ssize_t bytes = read(output_.get(), text.data(), text.size());
    text.resize(bytes > 0 ? size_t(bytes) : 0);
    return text;
  }

 private:
  Descriptor output_;
  pid_t id_ = 0;
  Clock::time_point started_;
};

// A runtime's lifetime in a program of its own: `gyre-gpu-process once TRANSPORT ISOLATION`.
int once(const std::string& transport, const std::string& isolation) {
  const Lifetime lifetime = live_once(options_for(transport, isolation));
  say("{} {} {}", lifetime.launch_ms, lifetime.end_ms, lifetime.replied.time_since_epoch().count());
  return wrong == 0 ? 0 : 1;
}

struct OtherLifetime : Lifetime {
  double first_reply_ms = 0;  // from the program's start
};

OtherLifetime live_in_a_program(const std::string& transport, const std::string& isolation) {
  const Program program({"once", transport, isolation});
  const int status = program.wait();
  const std::string printed = program.output();
  OtherLifetime lifetime;
  int64_t replied = 0;
  const bool read =
      std::sscanf(printed.c_str(), "%lf %lf %ld", &lifetime.launch_ms, &lifetime.end_ms, &replied) == 3;
  expect(
      status == 0 && read,
      fmt::format("another program launches, asks and ends: status {:#x}, it printed «{}»", status, printed));
  lifetime.replied = Clock::time_point(Clock::duration(replied));
  lifetime.first_reply_ms =
      std::chrono::duration<double, std::milli>(lifetime.replied - program.started()).count();
  return lifetime;
}

void beside_another(const std::string& transport, bool own_program, int times) {
  const Options options = options_for(transport);
  Runtime runtime = Runtime::launch(builtin_actors(), options);
  Load load(runtime);
  std::this_thread::sleep_for(1s);
  Times launch_ms, end_ms;
  load.set_beside(true);
  for (int n = 0; n < times; ++n) {
    const Lifetime other = own_program ? live_in_a_program(transport, "process") : live_once(options);
    launch_ms.add(other.launch_ms);
    end_ms.add(other.end_ms);
  }
  load.end();
  const Times alone = load.round_trips(false), beside = load.round_trips(true);
  expect(alone.count() > 0 && beside.count() > uint64_t(times), "the first runtime answers all the time");
  const Termination report = runtime.terminate();
  expect(report.books.balanced() && report.books.asks.answered == alone.count() + beside.count(),
         "the first runtime's books balance");
  say("the other, {} times: launch p50 {:.1f} ms, max {:.1f}; end p50 {:.1f} ms, max {:.1f}", times,
      launch_ms.p50(), launch_ms.max(), end_ms.p50(), end_ms.max());
  for (const bool is_beside : {false, true}) {
    const Times& us = is_beside ? beside : alone;
    say("the first, {}: {} replies, p50 {:.2f} us, p99.9 {:.1f}, max {:.0f}",
        is_beside ? "beside it" : "alone", us.count(), us.p50(), us.at(0.999), us.max());
  }
}

// ---- kills ----

constexpr std::chrono::milliseconds load_time{100};
// How a program comes to its end. With `fork` a child holds copies of everything; `thread` has launched on a
// thread that has ended; `exec` executes another program; `ctrl-c` gets it from its terminal.
const std::vector<std::string> kill_variants = {"kill", "fork", "thread", "exec", "ctrl-c"};

// Reports the phase that begins, in one letter.
void begin_phase(char letter) {
  if (write(STDOUT_FILENO, &letter, 1) != 1) _exit(3);
}
std::string phase_named(char letter) {
  switch (letter) {
    case 'l':
      return "in it";
    case 'a':
      return "under load";
    case 'd':
      return "in the drain";
    case 'e':
      return "after its end";
    default:
      return "before the launch";
  }
}

void launch_and_ask(const std::string& transport, const std::string& variant) {
  begin_phase('l');
  std::optional<Runtime> runtime;
  const auto launch = [&] { runtime.emplace(Runtime::launch(builtin_actors(), options_for(transport))); };
  if (variant == "thread") {
    std::thread(launch).join();
  } else {
    launch();
  }
  if (variant == "fork" && fork() == 0) {
    alarm(60);
    for (;;) pause();
  }
  begin_phase('a');
  {
    Load load(*runtime);
    std::this_thread::sleep_for(load_time);
    begin_phase('d');
    expect(bool(runtime->drain()), "a drain under load succeeds");
  }
  expect(runtime->terminate().books.balanced(), "the books balance");
  runtime.reset();
  begin_phase('e');
}

// The program that is killed: `gyre-gpu-process load TRANSPORT VARIANT MOMENT_US`.
int be_killed(const std::string& transport, const std::string& variant, uint64_t moment_us) {
  if (variant == "exec") {
    std::thread([moment = Clock::now() + std::chrono::microseconds(moment_us)] {
      std::this_thread::sleep_until(moment);
      execl("/bin/sleep", "sleep", "60", nullptr);
      _exit(3);
    }).detach();
  }
  try {
    launch_and_ask(transport, variant);
  } catch (const Error& error) {
    // While a thread executes another program the kernel lets the others start no thread (fs/exec.c,
    // in_exec).
    while (variant == "exec") pause();
    expect(false, error.what());
  }
  return wrong == 0 ? 0 : 1;
}

// What is free on the GPU, seen from a context of this program's own. Nothing on the fake driver.
class DeviceMemory {
 public:
  DeviceMemory() {
    if (on_fake_driver()) return;
    driver_ = cuda::Driver::load();
    context_.emplace(driver_, 0);
  }
  double free_mib() const {
    if (!context_) return 0;
    const cuda::Context::Current current(*context_);
    size_t free = 0, total = 0;
    driver_.check(driver_.cuMemGetInfo(&free, &total), "asking for free memory");
    return double(free) / (1 << 20);
  }

 private:
  cuda::Driver driver_;
  std::optional<cuda::Context> context_;
};

// Files that a program of Gyre's could have left.
std::set<std::string> files() {
  std::set<std::string> found;
  for (const char* const folder : {"/dev/shm", "/tmp"}) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const std::string path = entry.path();
      if (path.find("gyre") != std::string::npos || path.find("/dev/shm") == 0) found.insert(path);
    }
  }
  return found;
}

// A terminal whose other end this program has.
class Terminal {
 public:
  Terminal() : descriptor_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    char name[128];
    if (!descriptor_ || grantpt(descriptor_.get()) != 0 || unlockpt(descriptor_.get()) != 0 ||
        ptsname_r(descriptor_.get(), name, sizeof name) != 0)
      throw Error(std::string("making a terminal failed: ") + std::strerror(errno));
    path_ = name;
  }
  const char* path() const { return path_.c_str(); }
  void interrupt() const { expect(write(descriptor_.get(), "\x03", 1) == 1, "a terminal takes Ctrl-C"); }

 private:
  Descriptor descriptor_;
  std::string path_;
};

bool executes_another(pid_t id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/comm");
  std::string name;
  return std::getline(file, name) && name == "sleep";
}

// Waits until `holds`, for 30 s at most, and returns how many milliseconds it took.
template <class Holds>
double wait_until(Clock::time_point begin, const std::string& what, Holds holds) {
  while (!holds()) {
    if (ms_since(begin) > 30'000) {
      expect(false, what + ", within 30 s");
      break;
    }
    std::this_thread::sleep_for(200us);
  }
  return ms_since(begin);
}

struct Killed {
  std::map<std::string, int> phases;
  Times gone_ms;  // where there was an engine process
};

void kill_once(const std::string& transport, const std::string& variant, double moment_ms, Killed& killed) {
  const auto moment = std::chrono::microseconds(int64_t(moment_ms * 1e3));
  std::optional<Terminal> terminal;
  if (variant == "ctrl-c") terminal.emplace();
  const Program program({"load", transport, variant, std::to_string(moment.count())},
                        terminal ? terminal->path() : nullptr);
  std::this_thread::sleep_until(program.started() + moment);
  const auto had = engines_of(program.id());
  if (variant == "exec") {  // it does so itself, if it does not end before
    wait_until(Clock::now(), "a program executes another one",
               [&] { return executes_another(program.id()) || !lives(program.id()); });
  } else if (terminal) {
    terminal->interrupt();
  } else {
    kill(program.id(), SIGKILL);
  }
  const auto begin = Clock::now();
  if (terminal) wait_until(begin, "Ctrl-C ends a program", [&] { return !lives(program.id()); });
  // What a killed program started is this program's child from then on.
  int status = 0;
  const auto reap = [&] {
    int ended_with = 0;
    const pid_t ended = waitpid(-1, &ended_with, WNOHANG);
    if (ended == program.id()) status = ended_with;
    return ended;
  };
  const double gone_ms = wait_until(begin, "no engine process is left", [&] {
    reap();
    return engines_of(program.id()).empty() && engines_of(getpid()).empty();
  });
  expect_ms(gone_ms, 1000, "an engine process is gone (" + variant + ")");
  const std::string printed = program.output();
  ++killed.phases[phase_named(printed.empty() ? ' ' : printed.back())];
  if (!had.empty()) killed.gone_ms.add(gone_ms);
  kill(-program.id(), SIGKILL);  // a forked child, or what it executed
  const double all_gone_ms = wait_until(begin, "no process of any kind is left", [&] {
    while (true) {
      const pid_t ended = reap();
      if (ended <= 0) return ended < 0;
    }
  });
  const bool killed_it = WIFSIGNALED(status) && WTERMSIG(status) == (terminal ? SIGINT : SIGKILL);
  expect(printed.find("WRONG") == std::string::npos && (killed_it || status == 0),
         fmt::format("{} ends a program, or it ends well: status {:#x}, it printed «{}»", variant, status,
                     printed));
  expect_ms(all_gone_ms, 1000, "every process is gone (" + variant + ")");
}

void kill_at_any_moment(const std::string& transport, int times) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const DeviceMemory memory;
  double whole_ms = 0;
  for (int run = 0; run < 2; ++run) {  // the first compiles
    const Program program({"load", transport, "whole", "0"});
    expect(program.wait() == 0, "a whole run ends well, it printed «" + program.output() + "»");
    whole_ms = ms_since(program.started());
  }
  const auto files_before = files();
  const double free_before = memory.free_mib();
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> moments(0, whole_ms);
  std::map<std::string, Killed> killed;
  std::vector<std::string> variants = kill_variants;
#if defined(GYRE_THREAD_SANITIZER)
  std::erase(variants, "fork");  // it ends children of a process with several threads
#endif
  try {
    const Terminal possible;
  } catch (const Error& error) {
    say("ctrl-c  skipped: {}", error.what());
    std::erase(variants, "ctrl-c");
  }
  for (int n = 0; n < times; ++n) {
    const std::string& variant = variants[size_t(n) % variants.size()];
    kill_once(transport, variant, moments(random), killed[variant]);
  }
  for (const std::string& variant : variants) {
    std::string phases;
    for (const auto& [phase, count] : killed[variant].phases)
      phases += fmt::format("{}{} {}", phases.empty() ? "" : ", ", count, phase);
    const Times& gone_ms = killed[variant].gone_ms;
    say("{:<7} {}; {} engine processes gone after p50 {:.1f} ms, max {:.1f}", variant, phases,
        gone_ms.count(), gone_ms.p50(), gone_ms.max());
  }
  if (on_fake_driver()) return;  // other tests make files of these names beside it
  double free = 0;
  wait_until(Clock::now(), "device memory is back to within 64 MiB", [&] {
    free = memory.free_mib();
    return free_before - free <= 64;
  });
  say("device memory: {:.0f} MiB free before, {:.0f} after {} kills of runs of {:.0f} ms", free_before, free,
      times, whole_ms);
  std::string left;
  for (const std::string& file : files())
    if (!files_before.contains(file)) left += " " + file;
  expect(left.empty(), "no file is left:" + left);
  say("files in /dev/shm and /tmp: {}", left.empty() ? "none is left" : left);
}

// ---- ends and launches ----

void end_often(const std::string& transport, int times) {
  Times terminate_ms, gone_ms;
  for (int n = 0; n < times; ++n) {
    std::optional<Runtime> runtime(Runtime::launch(builtin_actors(), options_for(transport)));
    {
      Client client = runtime->client();
      for (uint64_t i = 0; i < 100; ++i) expect(ask(client, i) == Status::ok, "an ask is answered");
    }
    const pid_t engine = engines_of(getpid()).at(0);
    const auto begin = Clock::now();
    expect(runtime->terminate().books.balanced(), "the books balance");
    terminate_ms.add(ms_since(begin));
    runtime.reset();
    gone_ms.add(wait_until(begin, "the engine process ends", [engine] { return kill(engine, 0) != 0; }));
  }
  say("terminate, {} times: p50 {:.2f} ms, max {:.2f}; engine process gone p50 {:.1f} ms, max {:.1f}", times,
      terminate_ms.p50(), terminate_ms.max(), gone_ms.p50(), gone_ms.max());
  expect_ms(terminate_ms.p50(), 10, "terminate");
  expect_ms(gone_ms.p50(), 300, "the engine process is gone");
}

void launch_often(const std::string& transport, int times) {
  std::vector<std::string> isolations = {"process", "in_process"};
  if (on_fake_driver()) isolations.pop_back();
  std::map<std::string, Times> first_reply_ms, launch_ms;
  for (int n = -1; n < times; ++n) {  // the first compiles, and is not counted
    for (const std::string& isolation : isolations) {
      const OtherLifetime lifetime = live_in_a_program(transport, isolation);
      if (n < 0) continue;
      first_reply_ms[isolation].add(lifetime.first_reply_ms);
      launch_ms[isolation].add(lifetime.launch_ms);
    }
    std::swap(isolations.front(), isolations.back());
  }
  for (const auto& [isolation, times_ms] : first_reply_ms) {
    say("{:<10} {} times: first reply p50 {:.1f} ms, max {:.1f}; launch p50 {:.1f} ms", isolation,
        times_ms.count(), times_ms.p50(), times_ms.max(), launch_ms[isolation].p50());
  }
  if (isolations.size() < 2) return;
  const double more_ms = first_reply_ms["process"].p50() - first_reply_ms["in_process"].p50();
  say("first reply by an engine process: {:+.1f} ms", more_ms);
  expect_ms(more_ms, 60, "more than in process");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> given(argv + 1, argv + argc);
  const auto argument = [&given](size_t n, const char* otherwise) {
    return n < given.size() ? given[n] : otherwise;
  };
  const std::string what = argument(0, ""), transport = argument(1, "pinned");
  set_log_level(LogLevel::error);
  if (what == "once" || what == "load") {
    alarm(60);
    return what == "once" ? once(transport, argument(2, "process"))
                          : be_killed(transport, argument(2, "kill"), std::stoull(argument(3, "0")));
  }
  const std::map<std::string, std::function<void(int)>> all = {
      {"together", [&](int times) { beside_another(transport, false, times); }},
      {"programs", [&](int times) { beside_another(transport, true, times); }},
      {"kills", [&](int times) { kill_at_any_moment(transport, times); }},
      {"ends", [&](int times) { end_often(transport, times); }},
      {"launches", [&](int times) { launch_often(transport, times); }},
  };
  const auto chosen = all.find(what);
  if (chosen == all.end()) return 2;
  if (const std::string why = why_skipped(); !why.empty()) {
    say("skipped: {}", why);
    return 77;
  }
  alarm(540);
  try {
    {
      const Runtime runtime = Runtime::launch(builtin_actors(), options_for(transport));  // compiles
      say("{} over {} on {}", what, name(runtime.transport()), runtime.device_name());
    }
    chosen->second(std::stoi(argument(2, "5")));
  } catch (const std::exception& error) {
    expect(false, error.what());
  }
  say("{}: {}", what, wrong == 0 ? "all held" : fmt::format("{} wrong", wrong.load()));
  return wrong == 0 ? 0 : 1;
}
