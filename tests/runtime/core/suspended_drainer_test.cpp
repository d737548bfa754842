// A thread that is suspended while it takes replies: other threads' deadlines hold, and nothing is lost or
// counted twice when it goes on.
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/stepped.hpp"

namespace gyre::detail {

// A thread that takes a worker's replies as any waiting thread does, and is suspended in the middle.
struct SuspendedDrainer {
  // It has the ring's replies in hand, and has begun none.
  static SuspendedDrainer before_a_reply(Core& core) {
    return SuspendedDrainer([&core](const SuspendedDrainer& me) {
      HostBridge& bridge = core.host().bridges.front();
      bridge.drain([&](const ArrivedReply* reply) {
        me.suspend();
        core.receiver().take_reply(bridge, reply);
      });
    });
  }
  // It copies the answer of `call`, of 16 bytes of zeros, into its place.
  static SuspendedDrainer at(Core& core, CallId call) {
    return SuspendedDrainer([&core, call](const SuspendedDrainer& me) {
      if (!core.calls().begin_outcome(call)) return;
      me.suspend();
      core.accounts().conclude_answered([&] { return core.calls().complete_answered(call, 16); });
    });
  }
  void go_on() {
    goes_on.set_value();
    thread.join();
  }

 private:
  template <class Body>
  explicit SuspendedDrainer(Body body) : thread([this, body] { body(*this); }) {
    is_suspended.get_future().wait();
  }
  void suspend() const {
    if (suspended_once.exchange(true)) return;
    is_suspended.set_value();
    may_go_on.wait();
  }

  mutable std::atomic<bool> suspended_once{false};
  mutable std::promise<void> is_suspended;
  std::promise<void> goes_on;
  std::shared_future<void> may_go_on{goes_on.get_future()};
  std::thread thread;
};

}  // namespace gyre::detail

using namespace gyre;
using namespace gyre_test;
using detail::SuspendedDrainer;

namespace {

CallId only_call_in_flight(detail::Core& core) {
  std::vector<CallId> calls;
  core.calls().for_each_in_flight([&](CallId call) { calls.push_back(call); });
  REQUIRE(calls.size() == 1);
  return calls.front();
}

}  // namespace

TEST_CASE("an ask times out at its deadline though another thread is suspended with its reply in hand") {
  Stepped s;
  auto future = s.ask(Action::ANSWER, 1, 5ms);
  SuspendedDrainer drainer = SuspendedDrainer::at(*s.core, only_call_in_flight(*s.core));
  {
    const auto reply = future.get();
    REQUIRE_FALSE(reply);
    CHECK(reply.error().status == Status::timed_out);
    CHECK(reply.error().limit == 5000);  // us
  }
  const Books meanwhile = s.core->books();
  CHECK(meanwhile.asks.timed_out == 1);
  CHECK(meanwhile.asks.in_flight() == 0);
  drainer.go_on();
  const Books after = s.core->books();
  CHECK(after.asks.answered == 0);
  CHECK(after.asks.timed_out == 1);
  CHECK(after.asks.late_replies == 1);
  CHECK(after.asks.in_flight() == 0);
}

TEST_CASE("asks whose replies lie behind a suspended drainer time out, and come late when it goes on") {
  Stepped s;
  std::vector<decltype(s.ask(Action::ANSWER, 0))> futures;
  for (uint64_t i = 0; i < 3; ++i) futures.push_back(s.ask(Action::ANSWER, i, i == 2 ? 10s : 5ms));
  s.work();
  SuspendedDrainer drainer = SuspendedDrainer::before_a_reply(*s.core);
  for (size_t i = 0; i < 2; ++i) {
    const auto reply = futures[i].get();
    REQUIRE_FALSE(reply);
    CHECK(reply.error().status == Status::timed_out);
  }
  CHECK_FALSE(futures[2].ready());
  CHECK(s.core->books().asks.timed_out == 2);
  drainer.go_on();
  CHECK(futures[2].get().value()->getValue() == 5);
  const Books books = s.core->terminate(5s).books;
  CHECK(books.asks.answered == 1);
  CHECK(books.asks.timed_out == 2);
  CHECK(books.asks.late_replies == 2);
  CHECK(books.balanced());
}

TEST_CASE("a callback gets timed_out at its ask's deadline though a thread is suspended with its reply") {
  Stepped s;
  auto future = s.ask(Action::ANSWER, 1, 5ms);
  SuspendedDrainer drainer = SuspendedDrainer::at(*s.core, only_call_in_flight(*s.core));
  std::promise<Status> said;
  std::move(future).then([&said](const auto& outcome) { said.set_value(outcome.error().status); });
  CHECK(said.get_future().get() == Status::timed_out);
  drainer.go_on();
  const Books books = s.core->terminate(5s).books;
  CHECK(books.asks.timed_out == 1);
  CHECK(books.asks.answered == 0);
  CHECK(books.asks.late_replies == 1);
  CHECK(books.balanced());
}

TEST_CASE("terminate() returns at its deadline though a thread is suspended while it takes replies") {
  Stepped s;
  auto waiting = s.ask(Action::ANSWER, 1);
  s.work();
  SuspendedDrainer drainer = SuspendedDrainer::before_a_reply(*s.core);
  const Termination report = s.core->terminate(1ms);
  CHECK_FALSE(report.worker_stuck);
  CHECK(report.books.asks.dead_letters == 1);
  CHECK(report.books.balanced());
  CHECK(waiting.get().error().status == Status::terminated);
  drainer.go_on();
}

TEST_CASE("terminate() returns at its deadline though a thread is suspended with a reply in hand") {
  Stepped s;
  auto waiting = s.ask(Action::ANSWER, 1, 1h);
  SuspendedDrainer drainer = SuspendedDrainer::at(*s.core, only_call_in_flight(*s.core));
  const Termination report = s.core->terminate(1ms);
  CHECK(report.books.asks.dead_letters == 1);
  CHECK(report.books.balanced());
  drainer.go_on();
  CHECK(waiting.ready());  // what it had in hand was the answer
}
