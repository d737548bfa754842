// What must hold on either engine.
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/log.hpp>

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;
using messages::Operation;
using messages::VectorAddRequest;

namespace {

Runtime launch_probe(Options options = {}) {
  return Runtime::launch(probe_actors(), on_this_engine(options));
}

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

}  // namespace

TEST_CASE("three laps of the smallest ring, one ask after another, each answered", "[gpu][unified]") {
  Runtime runtime = launch_probe({.slots = 2});
  Client client = runtime.client();
  for (uint64_t i = 0; i < 6; ++i) {
    REQUIRE(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, i)).get().value()->getValue() ==
            2 * i + 1);
  }
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("lines that handlers log reach the program's log with worker, actor and key, or are counted",
          "[gpu][unified][handlers]") {
  struct Lines {
    std::mutex mutex;
    std::vector<std::string> lines;
  };
  const auto logged = std::make_shared<Lines>();
  set_logger([logged](LogLevel, std::string_view line) {
    const std::lock_guard lock(logged->mutex);
    if (line.find("gyre_test::Probe") != line.npos) logged->lines.emplace_back(line);
  });
  Runtime runtime = launch_probe({.workers = 2});
  Client client = runtime.client();
  const auto log = [&](uint64_t key, uint64_t argument) {
    return client
        .ask<ProbeRequest>(Address<Probe>{key},
                           [&](ProbeRequest::Builder request) {
                             request.setAction(Action::LOG);
                             request.setArgument(argument);
                             request.initFiller(3);
                           })
        .get();
  };
  const auto lines = [&] {
    const std::lock_guard lock(logged->mutex);
    return logged->lines.size();
  };
  std::vector<std::string> expected;
  for (uint64_t n = 1; n <= 40; ++n) {
    REQUIRE(log(n, n));
    expected.push_back(fmt::format("worker {}, gyre_test::Probe, key {}: 3 numbers, -{} and {:.2f} of all",
                                   n % 2, n, n, 0.25 * double(n)));
    // The next line waits for this one, so that none is dropped.
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (lines() < n && std::chrono::steady_clock::now() < end) {
      REQUIRE(client.ask<ProbeRequest>(probe, asking(Action::WORK, 2'000'000)).get());
    }
  }
  CHECK(runtime.stats().log_lines == 40);
  CHECK(runtime.stats().log_lines_dropped == 0);
  REQUIRE(log(41, 500'000));  // a line, and 500 more at once: there is room for 16
  CHECK(runtime.terminate().books.balanced());
  set_logger({});
  const Stats stats = runtime.stats();
  CHECK(stats.log_lines >= 40 + 16);
  CHECK(stats.log_lines_dropped != 0);
  CHECK(stats.log_lines + stats.log_lines_dropped == 40 + 501);
  REQUIRE(logged->lines.size() == stats.log_lines);
  CHECK(std::vector(logged->lines.begin(), logged->lines.begin() + 40) == expected);
  CHECK(logged->lines[41] == "worker 1, gyre_test::Probe, key 41: line 0, even: true");
  CHECK(logged->lines[42] == "worker 1, gyre_test::Probe, key 41: line 1, even: false");
}

TEST_CASE("laps pass 2^32 under way, and no message is lost or doubled", "[gpu][unified]") {
  Runtime runtime = launch_probe({.slots = 4, .first_lap = (uint64_t(1) << 32) - 3});
  Client client = runtime.client();
  for (uint64_t i = 0; i < 4 * 10; ++i) {
    const auto reply =
        client.ask<ProbeRequest>(probe, asking(i % 2 != 0 ? Action::GROW : Action::ANSWER, i)).get();
    REQUIRE(reply);
    if (i % 2 == 0) {
      CHECK(reply.value()->getValue() == 2 * i + 1);
    } else {
      REQUIRE(reply.value()->getFiller().size() == i);
      for (uint32_t k = 0; k < i; ++k) REQUIRE(reply.value()->getFiller()[k] == k);
    }
  }
  const Books books = runtime.terminate().books;
  CHECK(books.asks.answered == 40);
  CHECK(books.balanced());
}

TEST_CASE("every operation on random bits gives the bits that the CPU gives", "[gpu][unified]") {
  Runtime runtime = Runtime::launch(builtin_actors(), on_this_engine({.slot_bytes = 2048}));
  Client client = runtime.client();
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const auto operation = Operation(round % 4);
    std::vector<float> a(random() % 180), b(a.size());
    for (float& x : a) x = std::bit_cast<float>(uint32_t(random()));
    for (float& x : b) x = std::bit_cast<float>(uint32_t(random()));
    const auto reply = client
                           .ask<VectorAddRequest>(Address<actors::VectorAdd>{},
                                                  [&](VectorAddRequest::Builder request) {
                                                    request.setOperation(operation);
                                                    request.setA(kj::arrayPtr(a.data(), a.size()));
                                                    request.setB(kj::arrayPtr(b.data(), b.size()));
                                                  })
                           .get();
    REQUIRE(reply);
    REQUIRE(reply.value()->getSuccess());
    const auto result = reply.value()->getResult();
    REQUIRE(result.size() == a.size());
    for (uint32_t i = 0; i < result.size(); ++i) {
      const float expected = operation == Operation::ADD        ? a[i] + b[i]
                             : operation == Operation::SUBTRACT ? a[i] - b[i]
                             : operation == Operation::MULTIPLY ? a[i] * b[i]
                                                                : a[i] / b[i];
      REQUIRE(same(result[i], expected));
    }
  }
}

TEST_CASE("VectorAdd says what is wrong with a request it cannot compute", "[gpu][unified]") {
  Runtime runtime = Runtime::launch(builtin_actors(), on_this_engine());
  Client client = runtime.client();
  const auto ask = [&](uint32_t a, uint32_t b, uint16_t operation) {
    return client
        .ask<VectorAddRequest>(Address<actors::VectorAdd>{},
                               [&](VectorAddRequest::Builder request) {
                                 request.setOperation(Operation(operation));
                                 request.initA(a);
                                 request.initB(b);
                               })
        .get();
  };
  const auto differ = ask(3, 4, 0);
  REQUIRE(differ);
  CHECK_FALSE(differ.value()->getSuccess());
  CHECK(differ.value()->getError() == messages::VectorAddResponse::Error::LENGTHS_DIFFER);
  CHECK(differ.value()->getProcessingNs() != 0);
  const auto unknown = ask(3, 3, 4);
  REQUIRE(unknown);
  CHECK_FALSE(unknown.value()->getSuccess());
  CHECK(unknown.value()->getError() == messages::VectorAddResponse::Error::UNKNOWN_OPERATION);
  CHECK(unknown.value()->getProcessingNs() != 0);
  CHECK(ask(3, 3, 3).value()->getSuccess());
}

TEST_CASE("each kind of failure is answered by name, and the next message is answered", "[gpu][unified]") {
  Runtime runtime = launch_probe();
  Client client = runtime.client();
  const auto outcome = [&](Action action, uint64_t argument) {
    const auto reply = client.ask<ProbeRequest>(probe, asking(action, argument)).get();
    return reply ? Failure{} : reply.error();
  };
  for (int round = 0; round < 20; ++round) {
    CHECK(outcome(Action::GROW, 100'000).status == Status::reply_too_large);
    CHECK(outcome(Action::FAIL, 77).status == Status::handler_failed);
    CHECK(outcome(Action::FAIL, 78).detail == 78);
    CHECK(outcome(Action::ANSWER, 1).status == Status::ok);
    const auto reply = client.ask<ProbeRequest>(probe, asking(Action::GROW, 40)).get();
    REQUIRE(reply);
    for (uint32_t i = 0; i < 40; ++i) REQUIRE(reply.value()->getFiller()[i] == i);
  }
  const Books books = runtime.terminate().books;
  CHECK(books.asks.error_replies == 60);
  CHECK(books.asks.answered == 40);
  CHECK(books.balanced());
}

TEST_CASE("tells are processed in order, counted, and ask for no reply's room", "[gpu][unified]") {
  Runtime runtime = launch_probe({.slots = 4});
  Client client = runtime.client();
  uint64_t sum = 0;
  for (uint64_t i = 1; i <= 5000; ++i) {
    REQUIRE(client.tell<ProbeNote>(probe, noting(i)));
    sum += i;
  }
  CHECK(client.ask<ProbeRequest>(probe, asking(Action::SUM_OF_NOTES, 0)).get().value()->getValue() == sum);
  REQUIRE(runtime.drain());
  const Books books = runtime.terminate().books;
  CHECK(books.tells.accepted == 5000);
  CHECK(books.tells.processed == 5000);
  CHECK(books.balanced());
}

TEST_CASE("four threads on three workers: every reply is the one asked for", "[gpu][unified]") {
  Runtime runtime = launch_probe({.workers = 3, .slots = 16, .timeout = std::chrono::seconds(60)});
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Client client = runtime.client();
      for (uint64_t i = 0; i < 5000; ++i) {
        const uint64_t argument = t * 1'000'000 + i, key = i * 7 + t;
        const auto reply =
            client.ask<ProbeRequest>(Address<Probe>{key}, asking(Action::ANSWER, argument)).get();
        if (!reply || reply.value()->getValue() != 2 * argument + 1 || reply.value()->getKey() != key)
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  const Books books = runtime.terminate().books;
  CHECK(books.asks.answered == 20'000);
  CHECK(books.balanced());
}

TEST_CASE("one thread that only sends and never reads does not deadlock", "[gpu][unified]") {
  Runtime runtime = launch_probe({.slots = 4, .timeout = std::chrono::seconds(60)});
  Client client = runtime.client();
  for (uint64_t i = 0; i < 20'000; ++i) {
    auto dropped = client.ask<ProbeRequest>(probe, asking(Action::ANSWER, i));
  }
  REQUIRE(runtime.drain(std::chrono::seconds(60)));
  const Books books = runtime.terminate().books;
  CHECK(books.asks.accepted == 20'000);
  CHECK(books.asks.answered == 20'000);
  CHECK(books.balanced());
}

// A worker that was interrupted while it compared its clocks does so anew 32 ms later.
TEST_CASE("a handler's stopwatch agrees with the engine's clock", "[gpu][unified]") {
  constexpr uint64_t worked_ns = 1'000'000;
  Runtime runtime = launch_probe({.timeout = std::chrono::seconds(60)});
  Client client = runtime.client();
  bool agreed = false;
  uint64_t timed_ns = 0, passed_ns = 0;
  for (int attempt = 0; attempt < 500 && !agreed; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    const auto reply = client.ask<ProbeRequest>(probe, asking(Action::TIME, worked_ns)).get();
    passed_ns = uint64_t((std::chrono::steady_clock::now() - begin) / 1ns);
    REQUIRE(reply);
    timed_ns = reply.value()->getValue();
    agreed = timed_ns > worked_ns / 10 * 9 && timed_ns < passed_ns / 10 * 11;
  }
  INFO("worked for " << worked_ns << " ns, by the stopwatch " << timed_ns << ", of a round trip of "
                     << passed_ns);
  CHECK(agreed);
}

TEST_CASE("a timed-out ask and its late reply, on a worker that is busy", "[gpu][unified]") {
  Runtime runtime = launch_probe();
  Client client = runtime.client();
  uint64_t asked = 0, late = 0;
  // Where this thread was kept from running for as long as the worker worked, the worker is the first to say
  // that the time is over, and its reply is not late.
  for (; asked < 20 && late == 0; ++asked) {
    auto slow = client.ask<ProbeRequest>(probe, asking(Action::WORK, 500'000'000));  // half a second
    const auto behind = client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 1ms).get();
    REQUIRE_FALSE(behind);
    CHECK(behind.error().status == Status::timed_out);
    REQUIRE(slow.get());
    // One worker's replies are taken in the order of its messages.
    CHECK(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 2)).get().value()->getValue() == 5);
    late = runtime.stats().books.asks.late_replies;
  }
  const Books books = runtime.terminate().books;
  CHECK(books.asks.accepted == 3 * asked);
  CHECK(books.asks.answered == 2 * asked);
  CHECK(books.asks.timed_out == asked);
  CHECK(books.asks.late_replies == 1);
  CHECK(books.balanced());
}

TEST_CASE("terminate finishes the message in hand and dead-letters a full ring behind it", "[gpu][unified]") {
  Runtime runtime = launch_probe({.slots = 64});
  Client client = runtime.client();
  // A handler that works for an hour unless it is told to stop.
  auto in_hand =
      client.ask<ProbeRequest>(probe, asking(Action::WORK, 3'600'000'000'000), std::chrono::hours(2));
  std::vector<Future<Reply<ProbeResponse>>> behind;
  uint64_t tells = 0;
  for (;;) {
    auto future = client.try_ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), std::chrono::hours(2));
    if (!future) break;
    behind.push_back(std::move(future.value()));
    if (behind.size() == 40) break;
  }
  while (client.try_tell<ProbeNote>(probe, noting(1))) ++tells;
  const Termination report = runtime.terminate();
  CHECK_FALSE(report.worker_stuck);
  WARN(fmt::format("terminated in {:.3f} ms with a full ring", report.terminate_ms));
  const auto first = in_hand.get();
  uint64_t dead = 0;
  if (first) {
    CHECK(first.value()->getValue() == 1);
  } else {  // terminate came before the worker took it
    CHECK(first.error().status == Status::terminated);
    ++dead;
  }
  for (auto& future : behind) {
    const auto reply = future.get();
    REQUIRE_FALSE(reply);
    CHECK(reply.error().status == Status::terminated);
    ++dead;
  }
  CHECK(report.books.asks.dead_letters == dead);
  CHECK(report.books.tells.dead_letters == tells);
  CHECK(report.books.balanced());
  CHECK(runtime.take_dead_letters().size() == dead + tells);
}

TEST_CASE("terminate of an idle runtime leaves nothing in flight", "[gpu][unified]") {
  Runtime runtime = launch_probe({.workers = 2});
  const Termination report = runtime.terminate();
  WARN(fmt::format("terminated in {:.3f} ms, idle", report.terminate_ms));
  CHECK_FALSE(report.worker_stuck);
  CHECK(report.books.balanced());
  CHECK(report.uptime_s >= 0);
}

TEST_CASE("terminate under a flood from four threads: every future completes and the books balance",
          "[gpu][unified]") {
  for (int round = 0; round < 5; ++round) {
    Runtime runtime = launch_probe({.workers = 2, .slots = 16, .timeout = std::chrono::minutes(1)});
    std::atomic<uint64_t> replies{0}, ended{0}, wrong{0};
    std::atomic<Status> other{Status::ok};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t, client = runtime.client()]() mutable {
        for (uint64_t i = 0;; ++i) {
          if (i % 3 == 0) {
            if (!client.tell<ProbeNote>(Address<Probe>{i}, noting(i))) return;
            continue;
          }
          const auto reply = client.ask<ProbeRequest>(Address<Probe>{t + i}, asking(Action::ANSWER, i)).get();
          if (reply) {
            ++replies;
            if (reply.value()->getValue() != 2 * i + 1) ++wrong;
          } else if (reply.error().status == Status::terminated) {
            ++ended;
            return;
          } else {
            other = reply.error().status;
            ++wrong;
            return;
          }
        }
      });
    }
    while (replies < 200 && wrong == 0) std::this_thread::yield();
    const Termination report = runtime.terminate();
    for (std::thread& thread : threads) thread.join();
    INFO("other status: " << int(other.load()));
    CHECK(wrong == 0);
    CHECK(report.books.asks.answered >= replies);
    CHECK(report.books.balanced());
    CHECK(runtime.books().asks.in_flight() == 0);
  }
}

TEST_CASE("drain under way is ended by terminate, not waited for", "[gpu][unified]") {
  Runtime runtime = launch_probe();
  Client client = runtime.client();
  auto long_work =
      client.ask<ProbeRequest>(probe, asking(Action::WORK, 3'600'000'000'000), std::chrono::hours(2));
  Status drained = Status::ok;
  std::thread drainer([&] {
    const auto result = runtime.drain(std::chrono::hours(1));
    if (!result) drained = result.error().status;
  });
  while (runtime.state() != Lifecycle::draining) std::this_thread::yield();
  CHECK(runtime.terminate().books.balanced());
  drainer.join();
  CHECK(drained == Status::terminated);
}

TEST_CASE("spinning and polite waiting give the same answers", "[gpu][unified]") {
  for (const WaitPolicy wait : {WaitPolicy::polite, WaitPolicy::spin}) {
    Runtime runtime = launch_probe({.slots = 8, .wait = wait});
    Client client = runtime.client();
    for (uint64_t i = 0; i < 200; ++i) {
      REQUIRE(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, i)).get().value()->getValue() ==
              2 * i + 1);
    }
  }
}

TEST_CASE("slots of every size carry what fits them", "[gpu][unified]") {
  for (const uint32_t slot_bytes : {128u, 192u, 512u, 1024u, 4096u, 16384u}) {
    Runtime runtime = launch_probe({.slots = 4, .slot_bytes = slot_bytes});
    Client client = runtime.client();
    const uint32_t most =
        (client.body_capacity() - 8 - 2 * 8 - 8) / 8;  // root pointer, two data words, one pointer
    for (const uint32_t n : {0u, 1u, most / 2, most}) {
      const auto reply = client.ask<ProbeRequest>(probe, asking(Action::GROW, n)).get();
      REQUIRE(reply);
      REQUIRE(reply.value()->getFiller().size() == n);
      for (uint32_t i = 0; i < n; ++i) REQUIRE(reply.value()->getFiller()[i] == i);
    }
    CHECK(client.ask<ProbeRequest>(probe, asking(Action::GROW, most + 1)).get().error().status ==
          Status::reply_too_large);
  }
}

TEST_CASE("a runtime may be moved, and its destructor ends it", "[gpu][unified]") {
  std::unique_ptr<Client> client;
  {
    Runtime first = launch_probe();
    Runtime second = std::move(first);
    client = std::make_unique<Client>(second.client());
    REQUIRE(client->ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get());
  }
  CHECK(client->ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get().error().status ==
        Status::terminated);
}
