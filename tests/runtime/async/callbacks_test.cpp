// Future::then: which thread, when, and what may be done there. Compiled for both engines.
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "support/arrivals.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

using Outcome = Result<Reply<ProbeResponse>>;

Runtime launch(Options options = {}) { return Runtime::launch(probe_actors(), on_this_engine(options)); }

}  // namespace

TEST_CASE("a callback gets the reply, on a thread that is not the asker's", "[gpu]") {
  Runtime runtime = launch();
  Client client = runtime.client();
  Arrivals<Said> arrived;
  ask(client, Action::ANSWER, 20).then([&](Outcome outcome) { arrived.add(said(outcome)); });
  REQUIRE(arrived.wait_for(1));
  const auto got = arrived.take();
  CHECK(got[0].value == 41);
  CHECK(got[0].thread != std::this_thread::get_id());
  const Termination report = runtime.terminate();
  CHECK(report.books.asks.answered == 1);
  CHECK(report.books.balanced());
  CHECK_FALSE(report.callback_stuck);
}

TEST_CASE("callbacks run once each on one thread, and those of asks to one worker in the order of the asks",
          "[gpu]") {
  Runtime runtime = launch({.slots = 8});
  Client client = runtime.client();
  constexpr size_t count = 500;
  Arrivals<Said> arrived;
  for (uint64_t i = 0; i < count; ++i) {
    ask(client, Action::ANSWER, i).then([&](Outcome outcome) { arrived.add(said(outcome)); });
  }
  REQUIRE(arrived.wait_for(count));
  CHECK(runtime.terminate().books.asks.answered == count);
  const auto got = arrived.take();
  REQUIRE(got.size() == count);
  for (uint64_t i = 0; i < count; ++i) {
    REQUIRE(got[i].value == 2 * i + 1);
    REQUIRE(got[i].thread == got[0].thread);
  }
}

TEST_CASE("a callback comes also where the reply was there before then(), from the poller's thread",
          "[gpu]") {
  Runtime runtime = launch();
  Client client = runtime.client();
  Arrivals<Said> arrived;
  auto future = ask(client, Action::ANSWER, 3);
  future.wait();
  std::move(future).then([&](Outcome outcome) { arrived.add(said(outcome)); });
  REQUIRE(arrived.wait_for(1));
  const auto got = arrived.take();
  CHECK(got[0].value == 7);
  CHECK(got[0].thread != std::this_thread::get_id());
}

TEST_CASE("the callback of an ask that was refused gets the reason, from the poller's thread too", "[gpu]") {
  Runtime runtime = launch();
  Client client = runtime.client();
  REQUIRE(runtime.drain());
  Arrivals<Said> arrived;
  ask(client, Action::ANSWER, 3).then([&](Outcome outcome) { arrived.add(said(outcome)); });
  REQUIRE(arrived.wait_for(1));
  const auto got = arrived.take();
  CHECK(got[0].status == Status::draining);
  CHECK(got[0].thread != std::this_thread::get_id());
}

TEST_CASE("a callback may ask and tell, without blocking: the next ask from the last one's callback",
          "[gpu]") {
  Runtime runtime = launch();
  struct Chain {
    Client client;
    Arrivals<Said> arrived;
    uint64_t wrong = 0;
    void next(uint64_t n) {
      if (n == 200) {
        auto last = client.try_ask<ProbeRequest>(probe, asking(Action::SUM_OF_NOTES, 0), 60s);
        if (last) {
          std::move(last).value().then([this](Outcome outcome) { arrived.add(said(outcome)); });
        } else {
          arrived.add({last.error().status});
        }
        return;
      }
      ask(client, Action::ANSWER, n).then([this, n](Outcome outcome) {
        if (said(outcome).value != 2 * n + 1) ++wrong;
        if (!client.try_tell<ProbeNote>(probe, noting(n))) ++wrong;
        next(n + 1);
      });
    }
  } chain{runtime.client(), {}, 0};
  chain.next(0);
  REQUIRE(chain.arrived.wait_for(1));
  CHECK(chain.arrived.take()[0].value == 199 * 200 / 2);
  CHECK(chain.wrong == 0);
  const Books books = runtime.terminate().books;
  CHECK(books.asks.answered == 201);
  CHECK(books.tells.processed == 200);
  CHECK(books.balanced());
}

TEST_CASE("get() and drain() in a callback wait there, and get what they wait for", "[gpu]") {
  Runtime runtime = launch();
  Client client = runtime.client();
  Arrivals<Said> arrived;
  ask(client, Action::ANSWER, 1).then([&](Outcome) {
    arrived.add(said(ask(client, Action::WORK, 1'000'000).get()));
    const auto drained = runtime.drain();
    arrived.add({drained ? Status::ok : drained.error().status});
  });
  REQUIRE(arrived.wait_for(2));
  const auto got = arrived.take();
  CHECK(got[0].status == Status::ok);
  CHECK(got[1].status == Status::ok);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a Reply outlives its callback, and the runtime", "[gpu]") {
  Arrivals<Outcome> arrived;
  {
    Runtime runtime = launch();
    Client client = runtime.client();
    ask(client, Action::GROW, 20).then([&](Outcome outcome) { arrived.add(std::move(outcome)); });
    REQUIRE(arrived.wait_for(1));
  }
  const auto kept = arrived.take();
  REQUIRE(kept[0]);
  const auto filler = kept[0].value()->getFiller();
  REQUIRE(filler.size() == 20);
  for (uint32_t i = 0; i < filler.size(); ++i) CHECK(filler[i] == i);
}

TEST_CASE("what callbacks throw is counted, the first text kept, and later callbacks come", "[gpu]") {
  Runtime runtime = launch();
  Client client = runtime.client();
  CHECK(runtime.callback_failures().count == 0);
  Arrivals<Said> arrived;
  ask(client, Action::ANSWER, 1).then([](Outcome) { throw std::runtime_error("the first"); });
  ask(client, Action::ANSWER, 2).then([](Outcome) { throw std::runtime_error("the second"); });
  ask(client, Action::ANSWER, 3).then([](Outcome) { throw 7; });
  ask(client, Action::ANSWER, 4).then([&](Outcome outcome) { arrived.add(said(outcome)); });
  REQUIRE(arrived.wait_for(1));
  CHECK(arrived.take()[0].value == 9);
  CHECK(runtime.callback_failures().count == 3);
  CHECK(runtime.callback_failures().first == "the first");
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("callbacks may be move-only, large, or throw when moved", "[gpu]") {
  struct ThrowsWhenMoved {
    explicit ThrowsWhenMoved(uint64_t v) : value(v) {}
    ThrowsWhenMoved(ThrowsWhenMoved&& other) noexcept(false) : value(other.value) {}
    uint64_t value;
  };
  Runtime runtime = launch();
  Client client = runtime.client();
  Arrivals<uint64_t> arrived;
  std::array<uint64_t, 64> large{};
  large[63] = 4;
  ask(client, Action::ANSWER, 1).then([&arrived, own = std::make_unique<uint64_t>(2)](Outcome outcome) {
    arrived.add(*own * said(outcome).value);
  });
  ask(client, Action::ANSWER, 1).then([&arrived, large](Outcome outcome) {
    arrived.add(large[63] * said(outcome).value);
  });
  ask(client, Action::ANSWER, 1).then([&arrived, own = ThrowsWhenMoved(8)](Outcome outcome) {
    arrived.add(own.value * said(outcome).value);
  });
  REQUIRE(arrived.wait_for(3));
  CHECK(arrived.take() == std::vector<uint64_t>{6, 12, 24});
}

TEST_CASE("a callback gets timed_out at its ask's deadline, though nobody waits", "[gpu]") {
  Runtime runtime = launch();
  Client client = runtime.client();
  Arrivals<Said> arrived;
  auto busy = ask(client, Action::WORK, 30'000'000'000);
  ask(client, Action::ANSWER, 1, 2ms).then([&](Outcome outcome) { arrived.add(said(outcome)); });
  REQUIRE(arrived.wait_for(1));
  CHECK(arrived.take()[0].status == Status::timed_out);
  const Books books = runtime.terminate().books;
  CHECK(books.asks.timed_out == 1);
  CHECK(books.balanced());
}

TEST_CASE("terminate() returns when every callback has returned, each with an outcome", "[gpu]") {
  Runtime runtime = launch({.slots = 16});
  Client client = runtime.client();
  Arrivals<Said> arrived;
  for (int i = 0; i < 10; ++i) {
    ask(client, Action::WORK, 30'000'000'000).then([&](Outcome outcome) { arrived.add(said(outcome)); });
  }
  const Termination report = runtime.terminate();
  const auto got = arrived.take();
  REQUIRE(got.size() == 10);
  uint64_t answered = 0, terminated = 0;
  for (const Said& each : got) (each.status == Status::ok ? answered : terminated) += 1;
  for (const Said& each : got) CHECK((each.status == Status::ok || each.status == Status::terminated));
  CHECK(report.books.asks.answered == answered);
  CHECK(report.books.asks.dead_letters == terminated);
  CHECK(terminated != 0);
  CHECK(report.books.balanced());
  CHECK_FALSE(report.callback_stuck);
}

TEST_CASE("a thread that always has a callback to come does not keep terminate() from ending", "[gpu]") {
  Runtime runtime = launch();
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> issued{0}, entered{0};
  std::thread asker([&] {
    Client client = runtime.client();
    const auto own = std::this_thread::get_id();
    for (uint64_t n = 1; !stop; ++n) {
      // Each callback on the poller's thread returns once the next is promised.
      ask(client, Action::ANSWER, n).then([&, n, own](Outcome) {
        entered = n;
        while (std::this_thread::get_id() != own && issued <= n && !stop) std::this_thread::yield();
      });
      issued = n;
      while (entered != n) std::this_thread::yield();
    }
    ++issued;
  });
  while (issued < 10) std::this_thread::yield();
  const Termination report = runtime.terminate(std::chrono::seconds(3));
  stop = true;
  asker.join();
  CHECK_FALSE(report.callback_stuck);
  CHECK_FALSE(runtime.terminate().callback_stuck);
}

TEST_CASE("threads that go on asking with then() do not keep terminate() from ending, nor count as stuck",
          "[gpu]") {
  Runtime runtime = launch({.workers = 2, .slots = 32});
  constexpr size_t threads = 16;
  std::atomic<bool> stop{false};
  std::atomic<size_t> asking_now{0};
  std::atomic<uint64_t> asked{0}, called{0}, wrong{0};
  std::vector<std::thread> askers;
  for (size_t t = 0; t < threads; ++t) {
    askers.emplace_back([&, t] {
      Client client = runtime.client();
      for (uint64_t i = 0; !stop; ++i) {
        auto future =
            client.ask<ProbeRequest>(Address<Probe>{t}, asking(Action::ANSWER, i), std::chrono::minutes(1));
        std::move(future).then([&, i](Outcome outcome) {
          const Said got = said(outcome);
          if (got.status == Status::ok ? got.value != 2 * i + 1 : got.status != Status::terminated) ++wrong;
          ++called;
        });
        ++asked;
        if (i == 0) ++asking_now;
      }
    });
  }
  while (asking_now != threads) std::this_thread::yield();
  const Termination report = runtime.terminate(std::chrono::seconds(8));
  stop = true;
  for (std::thread& asker : askers) asker.join();
  CHECK_FALSE(report.callback_stuck);
  CHECK_FALSE(report.worker_stuck);
  CHECK(report.books.balanced());
  CHECK_FALSE(runtime.terminate().callback_stuck);
  CHECK(called == asked);
  CHECK(wrong == 0);
}

TEST_CASE("a callback may terminate its runtime: it does not wait for the callbacks that come after it",
          "[gpu]") {
  Runtime runtime = launch({.slots = 16});
  Client client = runtime.client();
  Arrivals<Said> arrived;
  ask(client, Action::ANSWER, 1).then([&](Outcome outcome) {
    arrived.add(said(outcome));
    for (int i = 0; i < 3; ++i) {
      ask(client, Action::WORK, 30'000'000'000).then([&](Outcome later) { arrived.add(said(later)); });
    }
    const Termination report = runtime.terminate();
    arrived.add({report.books.balanced() ? Status::ok : Status::malformed, report.books.asks.accepted});
  });
  REQUIRE(arrived.wait_for(5));
  CHECK(runtime.terminate().books.asks.accepted == 4);
  const auto got = arrived.take();
  REQUIRE(got.size() == 5);
  CHECK(got[1].status == Status::ok);
  CHECK(got[1].value == 4);
}

TEST_CASE("terminate() says that a callback is stuck, and again when it is not any more", "[gpu]") {
  Runtime runtime = launch();
  Client client = runtime.client();
  Arrivals<int> entered, leave, left;
  ask(client, Action::ANSWER, 1).then([&](Outcome) {
    entered.add(1);
    leave.wait_for(1);
    left.add(1);
  });
  REQUIRE(entered.wait_for(1));
  CHECK(runtime.terminate(1ms).callback_stuck);
  leave.add(1);
  REQUIRE(left.wait_for(1));
  CHECK_FALSE(runtime.terminate().callback_stuck);
}

TEST_CASE("once the runtime has ended, and of an empty future, a callback is called in then()", "[gpu]") {
  Runtime runtime = launch();
  Client client = runtime.client();
  auto answered = ask(client, Action::ANSWER, 5);
  answered.wait();
  runtime.terminate();
  std::vector<Said> got;
  const auto note = [&](Outcome outcome) { got.push_back(said(outcome)); };
  std::move(answered).then(note);
  ask(client, Action::ANSWER, 5).then(note);
  Future<Reply<ProbeResponse>>().then(note);
  REQUIRE(got.size() == 3);
  CHECK(got[0].value == 11);
  CHECK(got[1].status == Status::terminated);
  CHECK(got[2].status == Status::terminated);
  for (const Said& each : got) CHECK(each.thread == std::this_thread::get_id());
}

TEST_CASE("waiters and callbacks of many threads find each other's replies; each ask has one outcome",
          "[gpu]") {
  Runtime runtime = launch({.workers = 2, .slots = 32});
  constexpr uint64_t threads = 4, each = 400;
  Arrivals<Said> arrived;
  std::atomic<uint64_t> wrong{0}, waited{0};
  std::vector<std::thread> senders;
  for (uint64_t t = 0; t < threads; ++t) {
    senders.emplace_back([&, t] {
      Client client = runtime.client();
      for (uint64_t i = 0; i < each; ++i) {
        auto future = client.ask<ProbeRequest>(Address<Probe>{t + i}, asking(Action::ANSWER, i),
                                               std::chrono::minutes(1));
        if (i % 3 == 0) {
          if (said(future.get()).value != 2 * i + 1) ++wrong;
          ++waited;
        } else if (i % 3 == 1) {
          std::move(future).then([&arrived, &wrong, i](Outcome outcome) {
            if (said(outcome).value != 2 * i + 1) ++wrong;
            arrived.add(said(outcome));
          });
        }  // else abandoned
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  const Books books = runtime.terminate().books;
  CHECK(wrong == 0);
  CHECK(waited == threads * 134);
  CHECK(arrived.count() == threads * 133);
  CHECK(books.asks.accepted == threads * each);
  CHECK(books.balanced());
}

TEST_CASE("callbacks get engine_failed when the engine dies, and those that come after it too") {
  Stepped stepped;
  Arrivals<Said> arrived;
  auto pending = stepped.ask(Action::ANSWER, 1);
  stepped.engine->fail("a cause");
  std::move(pending).then([&](Outcome outcome) { arrived.add(said(outcome)); });
  REQUIRE(arrived.wait_for(1));
  stepped.ask(Action::ANSWER, 1).then([&](Outcome outcome) { arrived.add(said(outcome)); });
  REQUIRE(arrived.wait_for(2));
  for (const Said& each : arrived.take()) CHECK(each.status == Status::engine_failed);
  CHECK(stepped.core->terminate(5s).books.balanced());
}

TEST_CASE("deactivated workers' answers come to callbacks as what they are", "[gpu]") {
  Runtime runtime = launch();
  Client client = runtime.client();
  REQUIRE(runtime.deactivate());
  Arrivals<Said> arrived;
  ask(client, Action::ANSWER, 1).then([&](Outcome outcome) { arrived.add(said(outcome)); });
  REQUIRE(arrived.wait_for(1));
  CHECK(arrived.take()[0].status == Status::inactive);
}
