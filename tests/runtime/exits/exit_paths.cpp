// Ways for a program to end while it uses Gyre, one a name. exit_test.sh compares what each prints. With
// GYRE_TEST_ISOLATION=process in the environment the workers are in a process of their own, $GYRE_ENGINE.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/async/completion_queue.hpp>
#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/program.hpp>
#endif
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/telemetry/stats_file.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "support/cancelled.hpp"
#include "support/stepped.hpp"
#include "support/temporary_folder.hpp"
#include "support/thread_signals.hpp"

using namespace gyre;
using namespace gyre_test;

namespace gyre_test {

// Its handler does what main says, on the worker's thread; actors of programs can do no such thing.
struct Puppet {
  static inline std::atomic<bool> handling{false};
  static inline void (*act)() = nullptr;
  void on(gyre::Context&, view::ProbeRequest::Reader, view::ProbeResponse::Builder) {
    handling = true;
    act();
  }
};

}  // namespace gyre_test

namespace {

ActorSet puppets() { return ActorSet::of<Puppet>(gyre_test_actors::sources); }
constexpr Address<Puppet> puppet{};

void print(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

bool in_a_process() { return std::getenv("GYRE_TEST_ISOLATION") != nullptr; }

Options two_workers() {
  if (in_a_process()) {
    return {.engine = EngineKind::cuda,
            .transport = TransportKind::pinned,
            .isolation = Isolation::process,
            .workers = 2,
            .slots = 8};
  }
  return {.engine = EngineKind::cpu, .workers = 2, .slots = 8};
}

// Of a runtime that nobody ends.
Client* client = nullptr;
void launch_for_good() {
  client = new Client((new Runtime(Runtime::launch(probe_actors(), two_workers())))->client());
}

// A message in a slot, one in the arena, a batch and a tell: what the actor made of them.
std::string answers() {
  std::string text;
  const auto add = [&text](const auto& outcome, uint64_t value) {
    text += outcome ? std::to_string(value) + " " : outcome.error().message() + " ";
  };
  auto small = ask(*client, Action::ANSWER, 21).get();
  add(small, small ? small.value()->getValue() : 0);
  auto large = client
                   ->ask<ProbeRequest>(probe,
                                       [](ProbeRequest::Builder request) {
                                         request.setAction(Action::ECHO);
                                         auto filler = request.initFiller(100'000);
                                         for (uint32_t i = 0; i < filler.size(); ++i) filler.set(i, 1);
                                       })
                   .get();
  add(large, large ? large.value()->getValue() : 0);
  add(client->tell<ProbeNote>(probe, noting(5)), 5);
  auto sum = ask(*client, Action::SUM_OF_NOTES, 0).get();
  add(sum, sum ? sum.value()->getValue() : 0);
  // A failure with names in it.
  auto failed = ask(*client, Action::FAIL, 7).get();
  text += failed ? "not failed" : std::string(name(failed.error().status));
  return text;
}

// Asks where it is destroyed, if it is to.
struct AsksAtItsEnd {
  bool asks = false;
  ~AsksAtItsEnd() {
    if (asks) print("at the end: " + answers());
  }
};

// What lives until the program ends. Destroyed from the last to the first.
AsksAtItsEnd before_all;
std::optional<Reply<ProbeResponse>> reply_of_old;
std::optional<Future<Reply<ProbeResponse>>> future_of_old;
std::optional<Buffer<float>> buffer_of_old;
std::optional<Client> client_of_old;
std::optional<Runtime> runtime;
std::optional<Reply<ProbeResponse>> reply_of_late;
std::optional<Future<Reply<ProbeResponse>>> future_of_late;
std::optional<Buffer<float>> buffer_of_late;

void static_destructor() {
  launch_for_good();
  before_all.asks = true;
  print("in main: " + answers());
}

void thread_local_destructor() {
  launch_for_good();
  for (const bool used_before : {true, false}) {
    std::thread([used_before] {
      thread_local AsksAtItsEnd late;
      late.asks = true;  // made before the thread's first message: destroyed after what that made
      if (used_before) print("in the thread: " + answers());
    }).join();
  }
}

void at_exit() {
  std::atexit([] { print("at exit: " + answers()); });
  launch_for_good();
  print("in main: " + answers());
}

void global_runtime() {
  runtime.emplace(Runtime::launch(probe_actors(), two_workers()));
  for (auto* const reply : {&reply_of_old, &reply_of_late}) {
    Client asks = runtime->client();
    reply->emplace(ask(asks, Action::ANSWER, 21).get().value());
  }
  for (auto* const future : {&future_of_old, &future_of_late}) {
    Client asks = runtime->client();
    future->emplace(ask(asks, Action::WORK, 60'000'000'000));
  }
  buffer_of_old.emplace(runtime->allocate<float>(MemoryKind::device, 100));
  buffer_of_late.emplace(runtime->allocate<float>(MemoryKind::device, 100));
  client_of_old.emplace(runtime->client());
  print(std::to_string((*reply_of_old)->getValue()));
}

void exit_beside_a_live_runtime() {
  Runtime live = Runtime::launch(probe_actors(), two_workers());
  Client asks = live.client();
  auto future = ask(asks, Action::WORK, 60'000'000'000);
  print("exits");
  std::exit(0);
}

void exit_in_a_callback() {
  runtime.emplace(Runtime::launch(probe_actors(), two_workers()));
  Client asks = runtime->client();
  ask(asks, Action::ANSWER, 21).then([](Result<Reply<ProbeResponse>> outcome) {
    print("called: " + std::to_string(outcome.value()->getValue()));
    std::exit(0);
  });
  for (;;) pause();
}

void threads_that_ask_while_the_program_ends() {
  runtime.emplace(Runtime::launch(probe_actors(), two_workers()));
  static std::atomic<int> asked{0};
  for (int i = 0; i < 4; ++i) {
    std::thread([own = runtime->client()]() mutable {
      for (;;) {
        auto outcome = ask(own, Action::ANSWER, 21).get();
        if (outcome) ++asked;
        if (!outcome && outcome.error().status != Status::terminated) print(outcome.error().message());
      }
    }).detach();
  }
  while (asked < 1000) std::this_thread::yield();
  print("asked");
}

void reply_of_a_thread_that_outlives_the_runtime() {
  std::atomic<bool> has{false}, ended{false};
  auto own = std::make_unique<Runtime>(Runtime::launch(probe_actors(), two_workers()));
  std::thread holder([&, asks = own->client()]() mutable {
    thread_local std::optional<Reply<ProbeResponse>> kept;
    kept.emplace(ask(asks, Action::ANSWER, 21).get().value());
    asks = Client(nullptr);
    has = true;
    while (!ended) std::this_thread::yield();
    print(std::to_string((*kept)->getValue()));
  });
  while (!has) std::this_thread::yield();
  own.reset();
  ended = true;
  holder.join();
}

void print_errors() {
  set_logger([](LogLevel level, std::string_view) { print(std::string(name(level)) + " logged"); });
}

// A handler does not return: its worker cannot be stopped, and its memory stays.
void buffer_after_a_stuck_worker() {
  print_errors();
  Puppet::act = [] {
    for (;;) pause();
  };
  runtime.emplace(Runtime::launch(puppets(), {.engine = EngineKind::cpu, .slots = 8}));
  Client asks = runtime->client();
  buffer_of_old.emplace(runtime->allocate<float>(MemoryKind::device, 100));
  buffer_of_late.emplace(runtime->allocate<float>(MemoryKind::pinned, 100));
  Buffer<float> buffer = runtime->allocate<float>(MemoryKind::unified, 3);
  auto future = asks.ask<ProbeRequest>(puppet, asking(Action::ANSWER, 1));
  while (!Puppet::handling) std::this_thread::yield();
  print(runtime->terminate(std::chrono::milliseconds(1)).worker_stuck ? "stuck" : "not stuck");
  const float written[] = {1, 2, 3};
  float read[] = {0, 0, 0};
  buffer.write(written);
  buffer.read(read);
  print(std::to_string(read[0] + read[1] + read[2]));
  print(std::string(name(future.get().error().status)));
  print(std::string(name(asks.ask<ProbeRequest>(puppet, asking(Action::ANSWER, 1)).get().error().status)));
  print(runtime->books().balanced() && runtime->stats().state == Lifecycle::terminated ? "balanced"
                                                                                       : "not balanced");
  try {
    (void)runtime->allocate<float>(MemoryKind::device, 1);
  } catch (const Error&) {
    print("no more");
  }
  buffer_of_old.emplace(std::move(buffer));  // ends one of them here; others with the program
}

// The worker cannot be waited for by itself: the runtime's end gives it up, as one that is stuck.
void exit_in_a_handler() {
  print_errors();
  Puppet::act = [] {
    print("handled");
    std::exit(0);
  };
  runtime.emplace(Runtime::launch(puppets(), {.engine = EngineKind::cpu, .slots = 8}));
  Client asks = runtime->client();
  auto future = asks.ask<ProbeRequest>(puppet, asking(Action::ANSWER, 1), std::chrono::seconds(60));
  for (;;) pause();
}

// Forks while other threads do what `others` say, again and again; each child does `in_child`, which returns
// whether all was right. "all children ended", or how the first did that did not.
std::string forks_beside(std::vector<std::function<void()>> others, const std::function<bool()>& in_child) {
  constexpr int forks = 100;
  std::atomic<bool> ends{false};
  std::atomic<size_t> began{0};
  std::vector<std::thread> threads;
  for (const auto& other : others) {
    threads.emplace_back([&] {
      for (bool first = true; !ends; first = false) {
        other();
        if (first) ++began;
      }
    });
  }
  while (began < others.size()) std::this_thread::yield();
  std::string said = "all children ended";
  for (int i = 0; i < forks && said == "all children ended"; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(in_child() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) said = "child " + std::to_string(i) + " ended with " + std::to_string(status);
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  return said;
}

// Everybody logs while this thread forks: each child logs too.
void fork_while_others_log() {
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDERR_FILENO);
  const auto logs = [] {
    for (int line = 0; line < 30; ++line)
      detail::log(LogLevel::error, [] { return "a line of the parent's"; });
  };
  const auto sets = [] {
    for (const bool on : {true, false}) set_logger(on ? Logger([](LogLevel, std::string_view) {}) : Logger{});
  };
  print(forks_beside({logs, logs, sets}, [] {
    set_logger({});
    detail::log(LogLevel::error, [] { return "a line of the child's"; });
    set_log_level(LogLevel::error);
    return log_level() == LogLevel::error;
  }));
}

bool launches_on_either_engine() {
  Options options = two_workers();
  options.engine = EngineKind::automatic;
  Runtime own = Runtime::launch(probe_actors(), options);
  Client asks = own.client();
  return bool(ask(asks, Action::ANSWER, 21).get());
}

// Without a GPU: a child could not use its parent's.
void fork_while_others_launch() {
  const Environment no_gpu("CUDA_VISIBLE_DEVICES", "");
  const auto launches = [] { (void)launches_on_either_engine(); };
  const auto looks_for_a_gpu = [] {
    for (int i = 0; i < 100; ++i) (void)chosen_engine({});
  };
  print(forks_beside({launches, looks_for_a_gpu, looks_for_a_gpu}, launches_on_either_engine));
}

// Each time as from a file that was not loaded before.
bool loads_actors() {
  const LibraryOfActors& exported = *new LibraryOfActors(probe_actors());
  const ActorSet loaded = ActorSet::from_library(exported.library());
  return loaded.message_schemas().size() == probe_actors().message_schemas().size() &&
         !loaded.message_schemas().empty();
}

void fork_while_others_load_actors() {
  const auto loads = [] { (void)loads_actors(); };
  print(forks_beside({loads, loads, loads}, loads_actors));
}

// Of a pipe in packet mode each read() gets what one write() wrote.
void a_log_line_is_one_write() {
  int ends[2];
  if (pipe2(ends, O_DIRECT) != 0) std::exit(77);
  dup2(ends[1], STDERR_FILENO);
  for (const LogLevel level : {LogLevel::error, LogLevel::warning, LogLevel::info, LogLevel::debug}) {
    detail::log_line(level, "said");
    char packet[4096];
    const ssize_t bytes = read(ends[0], packet, sizeof packet);
    std::printf("%.*s", int(bytes), packet);
  }
  std::fflush(stdout);
}

std::atomic<pthread_t> handled_on{};
void handle(int) { handled_on = pthread_self(); }

// Main takes no SIGUSR1 for a while: nobody else does.
void signals_are_the_programs() {
  const TemporaryFolder folder;
  const Environment there("GYRE_STATS_DIR", folder.path().c_str());
  Runtime own = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu,
                                                 .workers = 2,
                                                 .publish_stats = true,
                                                 .stats_interval = std::chrono::milliseconds(10)});
  Client asks = own.client();
  std::atomic<bool> called{false};
  ask(asks, Action::ANSWER, 21).then([&](Result<Reply<ProbeResponse>>) { called = true; });
  while (!called) std::this_thread::yield();
  print("others: " + threads_that_take_signals());
  struct sigaction action {};
  action.sa_handler = handle;
  sigaction(SIGUSR1, &action, nullptr);
  sigset_t usr1, pending;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
  kill(getpid(), SIGUSR1);  // a thread that takes it has it before this returns, or soon
  for (int i = 0; i < 100; ++i) (void)ask(asks, Action::ANSWER, 21).get();
  sigpending(&pending);
  print(sigismember(&pending, SIGUSR1) == 1 && handled_on == pthread_t{} ? "it waits"
                                                                         : "another thread took it");
  pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr);
  print(handled_on == pthread_self() ? "main took it" : "main did not get it");
}

// Signals interrupt the system calls of a waiting thread, and change nothing.
void signals_while_waiting() {
  Runtime own = Runtime::launch(probe_actors(), two_workers());
  Client asks = own.client();
  struct sigaction action {};
  action.sa_handler = handle;  // without SA_RESTART
  sigaction(SIGUSR1, &action, nullptr);
  std::atomic<bool> done{false};
  std::thread interrupter([&, waiter = pthread_self()] {
    while (!done) {
      pthread_kill(waiter, SIGUSR1);
      std::this_thread::yield();
    }
  });
  std::string text;
  for (int i = 0; i < 20; ++i) {
    auto outcome = ask(asks, Action::WORK, 1'000'000).get();
    if (!outcome || outcome.value()->getValue() != 0) text += " wrong";
  }
  if (!own.drain(std::chrono::seconds(60))) text += " not drained";
  const Termination report = own.terminate();
  done = true;
  interrupter.join();
  print("answered" + text +
        (report.books.balanced() && report.books.asks.answered == 20 ? "" : " unbalanced"));
}

// A thread that waits in C++ is cancelled: its stack is unwound, and nothing is lost.
void cancelled_in_cpp() {
  launch_for_good();
  static std::atomic<bool> waits{false};
  static std::optional<Canceller> canceller;
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        auto future = client->ask<ProbeRequest>(Address<Probe>{1}, asking(Action::WORK, 60'000'000'000));
        canceller.emplace(future.canceller());
        waits = true;
        future.wait();
        pthread_testcancel();
        return nullptr;
      },
      nullptr);
  while (!waits) std::this_thread::yield();
  (void)ask(*client, Action::WORK, 10'000'000).get();  // most likely it sleeps by now
  pthread_cancel(thread);
  (void)ask(*client, Action::WORK, 10'000'000).get();
  canceller->cancel();
  void* result = nullptr;
  pthread_join(thread, &result);
  print(result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
  print(answers());
}

void cancelled_in_launch() {
  const TemporaryFolder folder;
  const Environment there("GYRE_STATS_DIR", folder.path().c_str());
  Options options = two_workers();
  options.publish_stats = true;
  print(cancelled_while([&options] {
    Runtime own = Runtime::launch(probe_actors(), options);
    Client asks = own.client();
    return ask(asks, Action::ANSWER, 21).get() ? "answered" : "not answered";
  }));
  print(std::to_string(stats_files().size()) + " files left");
}

void cancelled_in_failed_launch() {
  Options options = two_workers();
  options.pin_workers = {0, 900};  // the first worker has started by then
  print(cancelled_while([&options] {
    try {
      (void)Runtime::launch(probe_actors(), options);
    } catch (const Error&) {
      return "refused";
    }
    return "not refused";
  }));
}

void cancelled_in_terminate() {
  print(cancelled_while([] {
    Runtime own = Runtime::launch(probe_actors(), two_workers());
    Client asks = own.client();
    ask(asks, Action::ANSWER, 21).then([](Result<Reply<ProbeResponse>>) {});
    const Termination report = own.terminate();
    return report.books.balanced() && !report.callback_stuck ? "balanced" : "not balanced";
  }));
}

void cancelled_in_queue() {
  launch_for_good();
  print(cancelled_while([] {
    CompletionQueue queue;
    queue.watch(ask(*client, Action::ANSWER, 21), 5);
    std::optional<Completion> taken;
    while (!(taken = queue.take())) std::this_thread::yield();
    return taken->tag == 5 && !queue.take() ? "taken" : "not taken";
  }));
}

const std::map<std::string, void (*)()> ways = {
    {"static_destructor", static_destructor},
    {"thread_local_destructor", thread_local_destructor},
    {"at_exit", at_exit},
    {"global_runtime", global_runtime},
    {"exit_beside_a_live_runtime", exit_beside_a_live_runtime},
    {"exit_in_a_callback", exit_in_a_callback},
    {"exit_in_a_handler", exit_in_a_handler},
    {"threads_that_ask_while_the_program_ends", threads_that_ask_while_the_program_ends},
    {"reply_of_a_thread_that_outlives_the_runtime", reply_of_a_thread_that_outlives_the_runtime},
    {"buffer_after_a_stuck_worker", buffer_after_a_stuck_worker},
    {"fork_while_others_log", fork_while_others_log},
    {"fork_while_others_launch", fork_while_others_launch},
    {"fork_while_others_load_actors", fork_while_others_load_actors},
    {"a_log_line_is_one_write", a_log_line_is_one_write},
    {"signals_are_the_programs", signals_are_the_programs},
    {"signals_while_waiting", signals_while_waiting},
    {"cancelled_in_cpp", cancelled_in_cpp},
    {"cancelled_in_launch", cancelled_in_launch},
    {"cancelled_in_failed_launch", cancelled_in_failed_launch},
    {"cancelled_in_terminate", cancelled_in_terminate},
    {"cancelled_in_queue", cancelled_in_queue},
};

}  // namespace

int main(int argc, char** argv) {
  const auto way = argc == 2 ? ways.find(argv[1]) : ways.end();
  if (way == ways.end()) return 2;
#if defined(GYRE_WITH_CUDA)
  if (in_a_process() && !cuda::nvrtc_available()) return 77;
#endif
  way->second();
  return 0;
}
