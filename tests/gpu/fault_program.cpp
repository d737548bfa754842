// gyre-gpu-fault pinned|unified|bar [tells]: a handler writes through a wrong address. A process of its own,
// for CUDA is lost to it afterwards. With `tells` nobody waits for anything: the program only tells. Exit 0
// when the fault was noticed, all that was pending ended by name, and nothing hung; 77 without a GPU.
#include <unistd.h>
#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/errors/error.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include "support/actors/faulty.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {
int wrong = 0;
void expect(bool held, const char* what) {
  std::printf("%s: %s\n", held ? "ok" : "WRONG", what);
  if (!held) wrong = 1;
}

bool names_last_words(const Runtime& runtime) {
  return runtime.failure().find(
             "; worker 0 was last busy with gyre_test::Faulty, key 7, message "
             "ProbeRequest") != std::string::npos;
}

// The alarm ends a program that is told of a full ring for ever.
int only_tells(const ActorSet& actors, Address<Faulty> faulty, TransportKind transport) {
  Runtime runtime = Runtime::launch(actors, {.engine = EngineKind::cuda,
                                             .transport = transport,
                                             .isolation = Isolation::in_process,
                                             .timeout = std::chrono::seconds(30)});
  Client client = runtime.client();
  const int64_t begin_ns = detail::host_now_ns();
  Status refusal = Status::ok;
  while (refusal == Status::ok || refusal == Status::ring_full) {
    const auto told = client.try_tell<ProbeRequest>(faulty, asking(Action::FAIL, 1));
    refusal = told ? Status::ok : told.error().status;
  }
  std::printf("refused after %.1f ms; %s\n", double(detail::host_now_ns() - begin_ns) * 1e-6,
              runtime.failure().c_str());
  expect(refusal == Status::engine_failed, "tells are refused with engine_failed");
  expect(runtime.state() == Lifecycle::failed, "the state says so");
  expect(runtime.stats().state == Lifecycle::failed, "the stats say so");
  expect(names_last_words(runtime), "the failure names worker, actor, key and message");
  const Termination report = runtime.terminate();
  expect(!report.worker_stuck && report.books.balanced(), "the books balance, and nobody is stuck");
  expect(report.books.tells.inferred == report.books.tells.dead_letters,
         "every tell that is not known to be handled is inferred");
  return wrong;
}
}  // namespace

int main(int argc, char** argv) {
  if (cuda::Driver::device_count() == 0) {
    std::puts("skipped: no CUDA device here");
    return 77;
  }
  const std::string wanted = argc > 1 ? argv[1] : "pinned";
  const TransportKind transport = wanted == "bar"       ? TransportKind::bar
                                  : wanted == "unified" ? TransportKind::unified
                                                        : TransportKind::pinned;
  alarm(60);
  const ActorSet actors = ActorSet::of<Faulty>(gyre_test_actors::sources);
  const Address<Faulty> faulty{7};
  if (argc > 2 && std::string(argv[2]) == "tells") return only_tells(actors, faulty, transport);
  {
    Runtime runtime = Runtime::launch(actors, {.engine = EngineKind::cuda,
                                               .transport = transport,
                                               .isolation = Isolation::in_process,
                                               .timeout = std::chrono::seconds(30)});
    Client client = runtime.client();
    const auto first = client.ask<ProbeRequest>(faulty, asking(Action::ANSWER, 1)).get();
    expect(first && first.value()->getValue() == 3, "an ask before the fault is answered");
    std::vector<Future<Reply<ProbeResponse>>> pending;
    const int64_t begin_ns = detail::host_now_ns();
    for (int i = 0; i < 50; ++i) {
      pending.push_back(client.ask<ProbeRequest>(faulty, asking(i == 0 ? Action::FAIL : Action::ANSWER, 1)));
    }
    // A store's fault comes when the store arrives: the message that made it, and some behind it, may have
    // been answered by then.
    int by_name = 0, answered = 0;
    for (auto& future : pending) {
      const auto reply = future.get();
      answered += reply ? 1 : 0;
      by_name += !reply && reply.error().status == Status::engine_failed;
    }
    std::printf("%d of 50 ended with engine_failed, %d were answered, within %.1f ms\n", by_name, answered,
                double(detail::host_now_ns() - begin_ns) * 1e-6);
    expect(by_name + answered == 50 && by_name > 0,
           "every pending ask that is not answered ends with engine_failed");
    std::printf("%s\n", runtime.failure().c_str());
    expect(runtime.failure().find("CUDA_ERROR") != std::string::npos, "the failure names the code");
    expect(names_last_words(runtime), "the failure names worker, actor, key and message");
    const Termination report = runtime.terminate();
    std::printf("terminate took %.1f ms\n", report.terminate_ms);
    expect(!report.worker_stuck && report.books.balanced(), "the books balance, and nobody is stuck");
    expect(report.books.asks.inferred == uint64_t(by_name), "what nobody answered is counted as inferred");
  }
  try {
    Runtime next = Runtime::launch(actors, {.engine = EngineKind::cuda, .isolation = Isolation::in_process});
    expect(false, "another launch in this process is refused");
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    expect(std::string(error.what()).find("CUDA_ERROR") != std::string::npos,
           "another launch in this process is refused with the code");
  }
  return wrong;
}
