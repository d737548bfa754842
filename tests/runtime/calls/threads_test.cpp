// Many threads of a program: their numbers, their counts and call slots, and that none of them starves.
#include <gyre/runtime/core/tally.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <set>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

enum class What { one, other, count };

// Runs `body(thread)` in so many threads, all of them alive until each has run it.
template <class Body>
void in_threads(size_t count, Body body) {
  std::barrier all(static_cast<std::ptrdiff_t>(count));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      body(t);
      all.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("threads that live at the same time have different numbers, and their numbers come back") {
  constexpr size_t more = detail::thread_numbers + 6;
  for (int round = 0; round < 3; ++round) {
    std::vector<uint32_t> numbers(more);
    in_threads(more, [&](size_t t) {
      numbers[t] = detail::thread_number();
      if (detail::thread_number() != numbers[t]) numbers[t] = ~uint32_t(0);
    });
    std::set<uint32_t> different;
    size_t without = 0;
    for (const uint32_t number : numbers) {
      REQUIRE(number <= detail::thread_numbers);
      if (number == detail::thread_numbers)
        ++without;
      else
        CHECK(different.insert(number).second);
    }
    CHECK(different.size() + without == more);
    CHECK(without >= 6);
    CHECK(different.size() >= detail::thread_numbers / 2);  // this program's other threads have some
  }
}

TEST_CASE("counts of threads with and without a number are all in the sum") {
  detail::Tally<What> tally;
  for (int round = 0; round < 2; ++round) {
    in_threads(detail::thread_numbers + 6, [&](size_t t) {
      for (int i = 0; i < 1000; ++i) tally.add(What::one);
      tally.add(What::other, t);
    });
  }
  constexpr uint64_t threads = detail::thread_numbers + 6;
  CHECK(tally.sum(What::one) == 2 * 1000 * threads);
  CHECK(tally.sum(What::other) == threads * (threads - 1));
}

TEST_CASE("no call slot is lost with threads that come and go, nor used twice") {
  Arena no_arena(nullptr, 0);
  CallTable table(1024, 64, no_arena);
  for (int round = 0; round < 4; ++round) {
    std::atomic<int> refused{0};
    in_threads(8, [&](size_t) {
      std::vector<CallId> calls;
      for (int turn = 0; turn < 50; ++turn) {
        for (int i = 0; i < 40; ++i) {
          if (const auto call = table.acquire())
            calls.push_back(*call);
          else
            ++refused;
        }
        for (const CallId call : calls) table.release(call);
        calls.clear();
      }
    });
    CHECK(refused == 0);
  }
  // The rest may lie with threads that ended, half of the table at most; none is given out twice.
  std::set<uint64_t> slots;
  while (const auto call = table.acquire()) REQUIRE(slots.insert(*call % CallTable::max_calls).second);
  CHECK(slots.size() >= table.calls() / 2);
  CHECK(slots.size() <= table.calls());
}

TEST_CASE("calls that one thread takes and another gives back do not run out") {
  Arena no_arena(nullptr, 0);
  CallTable table(1024, 64, no_arena);
  for (int round = 0; round < 200; ++round) {
    std::vector<CallId> calls;
    for (int i = 0; i < 100; ++i) {
      const auto call = table.acquire();
      REQUIRE(call);
      calls.push_back(*call);
    }
    if (round % 20 == 0) {
      std::thread([&] {
        for (const CallId call : calls) table.release(call);
      }).join();
    } else {
      for (const CallId call : calls) table.release(call);
    }
  }
}

TEST_CASE("a thread uses several runtimes, and they it, in any order of their ends") {
  std::vector<Runtime> runtimes;
  for (int i = 0; i < 3; ++i) {
    runtimes.push_back(Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .timeout = 60s}));
  }
  for (int round = 0; round < 3; ++round) {
    in_threads(4, [&](size_t t) {
      for (uint64_t i = 0; i < 50; ++i) {
        Client client = runtimes[(i + t) % runtimes.size()].client();
        const auto reply = client.ask<ProbeRequest>(probe, asking(Action::ANSWER, i)).get();
        if (!reply || reply.value()->getValue() != 2 * i + 1) FAIL_CHECK("wrong");
      }
    });
    CHECK(runtimes.back().terminate().books.balanced());
    runtimes.pop_back();
    if (runtimes.empty()) break;
  }
}

TEST_CASE("of 1, 4 and 16 threads that ask one worker none starves") {
  for (const WaitPolicy wait : {WaitPolicy::polite, WaitPolicy::spin}) {
    for (const size_t count : {1, 4, 16}) {
      // Spinning needs a core each, the worker's too.
      if (wait == WaitPolicy::spin && count + 1 > std::thread::hardware_concurrency()) continue;
      Runtime runtime = Runtime::launch(
          probe_actors(), {.engine = EngineKind::cpu, .slots = 64, .timeout = 120s, .wait = wait});
      std::vector<std::atomic<uint64_t>> asked(count);
      std::atomic<size_t> done{0};
      std::atomic<uint64_t> wrong{0};
      constexpr uint64_t each = 300;
      // All go on until the slowest has had its share.
      in_threads(count, [&](size_t t) {
        Client client = runtime.client();
        for (uint64_t i = 0; done.load() < count; ++i) {
          const auto reply = client.ask<ProbeRequest>(probe, asking(Action::ANSWER, t * 1'000'000 + i)).get();
          if (!reply || reply.value()->getValue() != 2 * (t * 1'000'000 + i) + 1) ++wrong;
          if (++asked[t] == each) ++done;
        }
      });
      CHECK(wrong == 0);
      uint64_t most = 0;
      for (const auto& own : asked) most = std::max<uint64_t>(most, own);
      INFO(count << " threads, " << name(wait) << ": the slowest asked " << each << " times, the fastest "
                 << most);
      // Loosely: the system may well give the worker's core to one of them.
      CHECK(most <= 5000 * each);
      const Books books = runtime.terminate().books;
      CHECK(books.asks.answered == books.asks.accepted);
      CHECK(books.balanced());
    }
  }
}

TEST_CASE("a waiting thread completes the calls of others, which find it at their next poll") {
  Stepped s({.slots = 16});
  auto mine = s.ask(Action::ANSWER, 1);
  auto others = s.ask(Action::ANSWER, 2);
  s.work();
  Result<Reply<ProbeResponse>> taken = Failure{Status::terminated};
  std::thread([&] { taken = others.get(); }).join();  // drains both
  REQUIRE(taken);
  CHECK(taken.value()->getValue() == 5);
  CHECK(s.core->calls().calls() != 0);
  CHECK(s.core->books().asks.answered == 2);
  CHECK(mine.get().value()->getValue() == 3);
}

TEST_CASE("the books are never ahead of themselves while eight threads write them") {
  Runtime runtime =
      Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .slots = 32, .timeout = 120s});
  std::atomic<size_t> running{8};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, client = runtime.client()]() mutable {
      for (uint64_t i = 0; i < 200; ++i)
        (void)client.ask<ProbeRequest>(probe, asking(Action::ANSWER, i)).get();
      --running;
    });
  }
  uint64_t looks = 0, negative = 0;
  do {
    const Books books = runtime.books();
    if (int64_t(books.asks.in_flight()) < 0) ++negative;
    ++looks;
    std::this_thread::yield();
  } while (running.load() != 0);
  for (std::thread& thread : threads) thread.join();
  CHECK(looks != 0);
  CHECK(negative == 0);
  const Books books = runtime.terminate().books;
  CHECK(books.asks.answered == 1600);
  CHECK(books.balanced());
}

TEST_CASE("workers run where they are pinned, and a CPU that is none is refused by its number") {
  cpu_set_t allowed;
  REQUIRE(pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed) == 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  Runtime runtime =
      Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .workers = 2, .pin_workers = {cpu}});
  auto reply = runtime.client().ask<ProbeRequest>(Address<Probe>{1}, asking(Action::ANSWER, 4)).get();
  CHECK(reply.value()->getValue() == 9);
  CHECK(runtime.terminate().books.balanced());
  CHECK_THROWS_AS(Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .pin_workers = {-1}}),
                  BadOptions);
  int absent = CPU_SETSIZE - 1;
  while (CPU_ISSET(absent, &allowed)) --absent;
  try {
    (void)Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .pin_workers = {absent}});
    FAIL("launched");
  } catch (const Error& error) {
    const std::string message = error.what();
    INFO(message);
    CHECK(message.find("CPU " + std::to_string(absent)) != std::string::npos);
    CHECK(message.find("--pin-workers") != std::string::npos);
  }
}
