// A million actors: gyre-gpu-tests "[million]", which `tools/test.sh --all` and tools/gpu_test.sh run.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/counters.hpp"

using namespace gyre;
using namespace gyre_counters;

TEST_CASE(
    "a million actors of 64 bytes, ten million increments by ask and tell from four threads: every count is "
    "right",
    "[.][million]") {
  static_assert(sizeof(Counter) == 64);
  constexpr uint64_t actors = 1'000'000, rounds = 10;
  constexpr uint32_t workers = 132;
  const uint32_t per_worker = (actors + workers - 1) / workers;
  const uint64_t table_bytes = counter_actors().actor_bytes(per_worker) * workers;
  Runtime runtime = Runtime::launch(
      counter_actors(), {.engine = EngineKind::cuda, .workers = workers, .actors_per_worker = per_worker});
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<uint64_t> refused{0}, wrong{0};
  std::vector<std::thread> senders;
  for (uint64_t sender = 0; sender < 4; ++sender) {
    senders.emplace_back([&, sender] {
      Client client = runtime.client();
      // Each thread has a quarter of the rounds' messages: rounds * actors in all, each key as often as
      // another.
      std::vector<Future<Reply<Sum>>> asked;
      for (uint64_t n = sender; n < rounds * actors; n += 4) {
        const uint64_t key = n * 7919 % actors;
        if (n / actors % 2 == 0) {
          asked.push_back(client.ask<Add>(counter(key), adding(1), std::chrono::seconds(60)));
          if (asked.size() < 256) continue;
          for (auto& future : asked) {
            const auto reply = future.get();
            if (!reply) {
              ++refused;
            } else if (reply.value()->getValue() <= reply.value()->getStartedAt()) {
              ++wrong;
            }
          }
          asked.clear();
        } else if (!client.tell<Increment>(counter(key), incrementing(1), std::chrono::seconds(60))) {
          ++refused;
        }
      }
      for (auto& future : asked) {
        if (!future.get()) ++refused;
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CHECK(refused == 0);
  CHECK(wrong == 0);

  Client client = runtime.client();
  std::vector<Future<Reply<Sum>>> asked;
  uint64_t first = 0, counts_wrong = 0;
  const auto check = [&] {
    for (auto& future : asked) {
      const auto reply = future.get();
      const uint64_t expected = (first % 2 == 1 ? 100 : 0) + rounds;
      if (!reply || reply.value()->getValue() != expected || reply.value()->getKey() != first) ++counts_wrong;
      ++first;
    }
    asked.clear();
  };
  for (uint64_t key = 0; key < actors; ++key) {
    asked.push_back(client.ask<Add>(counter(key), adding(0), std::chrono::seconds(60)));
    if (asked.size() == 1024) check();
  }
  check();
  CHECK(first == actors);
  CHECK(counts_wrong == 0);
  const Termination report = runtime.terminate();
  CHECK(report.books.balanced());
  CHECK(report.books.asks.answered == rounds / 2 * actors + actors);
  CHECK(report.books.tells.processed == rounds / 2 * actors);
  // The tables of three types: what Counter's alone costs is in actor_table_test.
  const ActorTableLayout layout{64, per_worker};
  const double overhead = (double(layout.bytes()) * workers - 64.0 * actors) / actors;
  CHECK(overhead <= 64);
  WARN(fmt::format(
      "{} actors, {} increments in {:.2f} s ({:.2f} million a second), {:.1f} bytes of overhead an actor, "
      "{} bytes of tables, terminated in {:.1f} ms",
      actors, rounds * actors, seconds, double(rounds * actors) * 1e-6 / seconds, overhead, table_bytes,
      report.terminate_ms));
}
