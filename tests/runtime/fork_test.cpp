// What a child of fork() may do with its parent's runtime: nothing, by name.
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/bridge/fork.hpp>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

Options two_small_workers() { return on_this_engine({.workers = 2, .slots = 8}); }

#if defined(GYRE_THREAD_SANITIZER)
constexpr bool can_fork = false;  // ThreadSanitizer ends children that start threads
#else
constexpr bool can_fork = true;
#endif

// What the child finds wrong, a line each; empty if nothing. It has 30 seconds.
class Findings {
 public:
  void expect(bool held, const std::string& what) {
    if (!held) text_ += what + "\n";
  }
  template <class Use>
  void expect_forked(const std::string& what, Use use) {
    try {
      use();
      text_ += what + " was not refused\n";
    } catch (const Error& error) {
      expect(error.status() == Status::forked, what + ": " + error.what());
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Runs `body` in a child, which leaves without destructors of its own: what it found wrong, or how it died.
std::string in_child(const std::function<void(Findings&)>& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    Findings findings;
    try {
      body(findings);
    } catch (const std::exception& error) {
      findings.expect(false, std::string("thrown: ") + error.what());
    }
    const std::string& text = findings.text();
    const bool written = write(ends[1], text.data(), text.size()) == ssize_t(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char some[512];
  for (ssize_t bytes; (bytes = read(ends[0], some, sizeof some)) > 0;) text.append(some, size_t(bytes));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    text += "the child died: status " + std::to_string(status);
  return text;
}

// Set by the thread that forks, before what Gyre does there: handlers run from the last installed to the
// first.
std::atomic<int> forks_begun{0};
void note_forks() {
  static const int installed = pthread_atfork([] { ++forks_begun; }, nullptr, nullptr);
  REQUIRE(installed == 0);
}

bool echoes(Runtime& runtime) {
  const auto reply = runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 21)).get();
  return reply && reply.value()->getValue() == 43;
}

}  // namespace

TEST_CASE("a child of fork() is refused everything of its parent's runtime, and the parent goes on",
          "[gpu]") {
  if (!can_fork) return;
  std::optional<Runtime> runtime(Runtime::launch(probe_actors(), two_small_workers()));
  Client client = runtime->client();
  REQUIRE(echoes(*runtime));
  auto pending = client.ask<ProbeRequest>(probe, asking(Action::WORK, 50'000'000));
  const std::string wrong = in_child([&](Findings& findings) {
    const auto forked = [&](const auto& result, const char* what) {
      findings.expect(!result && result.error().status == Status::forked, what);
    };
    forked(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get(), "ask");
    forked(client.try_ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)), "try_ask");
    forked(client.tell<ProbeNote>(probe, noting(1)), "tell");
    forked(client.try_tell<ProbeNote>(probe, noting(1)), "try_tell");
    forked(runtime->drain(), "drain");
    findings.expect(pending.ready(), "a pending future is ready");
    pending.wait();
    forked(pending.get(), "a pending future");
    findings.expect_forked("terminate", [&] { runtime->terminate(); });
    findings.expect_forked("books", [&] { runtime->books(); });
    findings.expect_forked("take_dead_letters", [&] { runtime->take_dead_letters(); });
    findings.expect_forked("failure", [&] { runtime->failure(); });
    client = Client(nullptr);
    runtime.reset();  // does not hang, and does not touch what is the parent's
  });
  INFO(wrong);
  CHECK(wrong.empty());
  CHECK(pending.get());
  CHECK(echoes(*runtime));
  const Termination report = runtime->terminate();
  CHECK_FALSE(report.worker_stuck);
  CHECK(report.books.asks.accepted == 3);
  CHECK(report.books.balanced());
}

TEST_CASE("a child of fork() launches workers of its own on the CPU; on CUDA only in another process",
          "[gpu]") {
  if (!can_fork) return;
  Runtime runtime = Runtime::launch(probe_actors(), two_small_workers());
  REQUIRE(echoes(runtime));
  const std::string wrong = in_child([&](Findings& findings) {
    {
      Runtime own = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu});
      findings.expect(echoes(own), "the child's own runtime answers");
      findings.expect(own.terminate().books.balanced(), "the child's own books balance");
    }
    if (runtime.engine() != EngineKind::cuda) return;
    if (isolation_under_test == Isolation::process) {
      Options options = two_small_workers();
      if (runtime.transport() == TransportKind::bar) {
        options.transport = TransportKind::bar;
        try {
          Runtime refused = Runtime::launch(probe_actors(), options);
          findings.expect(false, "a launch over BAR was not refused");
        } catch (const EngineUnavailable& error) {
          findings.expect(std::string(error.what()).find("child of fork()") != std::string::npos,
                          error.what());
        }
        options.transport = TransportKind::pinned;
      }
      Runtime own = Runtime::launch(probe_actors(), options);
      findings.expect(echoes(own), "the child's own engine process answers");
      findings.expect(own.terminate().books.balanced(), "the books of the child's engine process balance");
      return;
    }
    for (const EngineKind engine : {EngineKind::cuda, EngineKind::automatic}) {
      try {
        Runtime own = Runtime::launch(probe_actors(), {.engine = engine, .isolation = Isolation::in_process});
        findings.expect(false, "a launch on CUDA was not refused");
      } catch (const EngineUnavailable& error) {
        findings.expect(std::string(error.what()).find("after fork()") != std::string::npos, error.what());
      }
    }
  });
  INFO(wrong);
  CHECK(wrong.empty());
  CHECK(echoes(runtime));
}

TEST_CASE("a child of fork() ends runtimes of its own, whatever calls its parent's threads were releasing") {
  if (!can_fork) return;
  Stepped parents;
  auto held = parents.ask(Action::ANSWER, 1);
  parents.work();
  // As threads that the child does not have leave it.
  const uint32_t another = (detail::thread_number() + 1) % detail::thread_numbers;
  std::atomic<const detail::Teardown*>& mark = detail::release_marks[another].teardown;
  mark = &parents.core->teardown();
  ++parents.core->teardown().unnumbered;
  const std::string wrong = in_child([&](Findings& findings) {
    for (int time = 0; time < 2; ++time) {
      Runtime own = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu});
      findings.expect(echoes(own), "the child's own runtime answers");
      findings.expect(own.terminate().books.balanced(), "the child's own books balance");
      parents.client.reset();
      parents.core.reset();
    }
  });
  mark = nullptr;
  --parents.core->teardown().unnumbered;
  INFO(wrong);
  CHECK(wrong.empty());
  CHECK(held.get().value()->getValue() == 3);
}

TEST_CASE("a child of fork() is called back at once with `forked`, and its parent's queue is not its own",
          "[gpu]") {
  if (!can_fork) return;
  Runtime runtime = Runtime::launch(probe_actors(), two_small_workers());
  Client client = runtime.client();
  CompletionQueue queue;
  queue.watch(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)), 1);
  pollfd descriptor{queue.fd(), POLLIN, 0};
  REQUIRE(poll(&descriptor, 1, 60'000) == 1);
  auto pending = client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 2));
  auto watched = client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 3));
  const std::string wrong = in_child([&](Findings& findings) {
    findings.expect(!pending.cancel(), "a pending ask is not cancelled");
    int called = 0;
    const auto forked = [&](Result<Reply<ProbeResponse>> outcome) {
      called += !outcome && outcome.error().status == Status::forked ? 1 : 100;
    };
    std::move(pending).then(forked);
    client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).then(forked);
    findings.expect(called == 2, "callbacks are called at once");
    findings.expect(!queue.take(), "take() gives nothing");
    queue.watch(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)), 2);
    findings.expect(!queue.take(), "take() gives nothing of what the child watches");
    CompletionQueue own;
    own.watch(std::move(watched), 3);
    auto completion = own.take();
    findings.expect(completion && completion->tag == 3, "the child's own queue gives what it watches");
    if (completion) forked(std::move(completion->outcome).as<ProbeResponse>().get());
    findings.expect(called == 3, "as forked");
  });
  INFO(wrong);
  CHECK(wrong.empty());
  CHECK(pending.get().value()->getValue() == 5);
  CHECK(watched.get().value()->getValue() == 7);
  auto completion = queue.take();
  REQUIRE(completion);
  CHECK(completion->tag == 1);
  CHECK_FALSE(queue.take());
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("fork() waits until other threads have done what a child could not find half done") {
  if (!can_fork) return;
  note_forks();
  const int before = forks_begun;
  std::atomic<bool> begun{false};
  std::atomic<int> steps{0};
  std::thread other([&] {
    const detail::ForkDeferred deferred;
    begun = true;
    while (forks_begun == before) std::this_thread::yield();
    const detail::ForkDeferred nested;  // while the other thread is in fork()
    for (int step = 0; step < 1000; ++step) {
      std::this_thread::yield();
      ++steps;
    }
  });
  while (!begun) std::this_thread::yield();
  CHECK(in_child([&](Findings& findings) {
          findings.expect(steps == 1000, "the child has a step half done");
          const detail::ForkDeferred own;  // the other thread's deferral ended, or is not the child's
        }) == "");
  other.join();
}

TEST_CASE("fork() does not wait for the thread that forks, and its deferral holds in the child") {
  if (!can_fork) return;
  const detail::ForkDeferred deferred;
  CHECK(in_child([&](Findings& findings) {
          const detail::ForkDeferred nested;
          findings.expect(in_child([](Findings&) {}).empty(), "the child's child");
        }) == "");
}
