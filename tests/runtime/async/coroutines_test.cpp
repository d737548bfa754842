// co_await of a Future. Compiled for both engines.
#include <coroutine>
#include <stdexcept>
#include <thread>
#include <utility>

#include "support/arrivals.hpp"
#include "support/catch.hpp"
#include "support/detached.hpp"
#include "support/engine_under_test.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

// Coroutines are functions here: a lambda's captures would not live as long as it.
Detached note(Future<Reply<ProbeResponse>> future, Arrivals<Said>& arrived) {
  const auto reply = co_await std::move(future);
  arrived.add(said(reply));
}
Detached ask_and_note(Client client, uint64_t argument, Arrivals<Said>& arrived) {
  const auto reply = co_await ask(client, Action::ANSWER, argument);
  arrived.add(said(reply));
}
Detached tell_and_note(Client client, Arrivals<Said>& arrived) {
  const auto receipt = co_await client.tell_with_receipt<ProbeNote>(probe, noting(7));
  arrived.add({receipt ? Status::ok : receipt.error().status, 0});
}

// Each ask when the last one's reply is there.
Detached answer_many(Client client, uint64_t count, Arrivals<Said>& arrived) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto reply = co_await ask(client, Action::ANSWER, i);
    if (!reply) {
      arrived.add(said(reply));
      co_return;
    }
    sum += reply.value()->getValue();
  }
  arrived.add({Status::ok, sum});
}

Detached note_on(Future<Reply<ProbeResponse>> future, Arrivals<std::coroutine_handle<>>& executor,
                 Arrivals<Said>& arrived) {
  const auto reply = co_await std::move(future).resume_on(
      [&executor](std::coroutine_handle<> waiting) { executor.add(waiting); });
  arrived.add(said(reply));
}

// One that has an owner: what it lets through leaves it suspended at its end.
class Owned {
 public:
  struct promise_type {
    Owned get_return_object() { return Owned(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }
  };
  explicit Owned(std::coroutine_handle<> coroutine) : coroutine_(coroutine) {}
  Owned(Owned&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Owned& operator=(Owned&&) = delete;
  ~Owned() {
    if (coroutine_) coroutine_.destroy();
  }

 private:
  std::coroutine_handle<> coroutine_;
};

Owned throw_after(Future<Reply<ProbeResponse>> future) {
  (void)co_await std::move(future);
  throw std::runtime_error("out of a coroutine");
}

}  // namespace

TEST_CASE("a coroutine gets the reply of the ask that it waits for", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Arrivals<Said> arrived;
  ask_and_note(runtime.client(), 6, arrived);
  REQUIRE(arrived.wait_for(1));
  CHECK(arrived.take()[0].value == 13);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a coroutine waits for a tell's receipt", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  Arrivals<Said> arrived;
  tell_and_note(client, arrived);
  REQUIRE(arrived.wait_for(1));
  CHECK(arrived.take()[0].status == Status::ok);
  CHECK(ask(client, Action::SUM_OF_NOTES, 0).get().value()->getValue() == 7);
}

TEST_CASE("a coroutine whose outcome is there does not suspend", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  Arrivals<Said> arrived;
  auto future = ask(client, Action::ANSWER, 6);
  future.wait();
  note(std::move(future), arrived);
  REQUIRE(arrived.count() == 1);
  const auto got = arrived.take();
  CHECK(got[0].value == 13);
  CHECK(got[0].thread == std::this_thread::get_id());
  // Refused and empty ones too.
  runtime.terminate();
  ask_and_note(client, 1, arrived);
  note({}, arrived);
  REQUIRE(arrived.count() == 2);
  for (const Said& each : arrived.take()) CHECK(each.status == Status::terminated);
}

TEST_CASE("many coroutines wait at the same time, and each goes on with its own replies", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine({.workers = 2, .slots = 32}));
  Arrivals<Said> arrived;
  constexpr uint64_t coroutines = 8, each = 200;
  for (uint64_t c = 0; c < coroutines; ++c) answer_many(runtime.client(), each, arrived);
  REQUIRE(arrived.wait_for(coroutines));
  for (const Said& got : arrived.take()) {
    CHECK(got.status == Status::ok);
    CHECK(got.value == each * each);  // the sum of the first odd numbers
  }
  const Books books = runtime.terminate().books;
  CHECK(books.asks.answered == coroutines * each);
  CHECK(books.balanced());
}

TEST_CASE("terminate() resumes every coroutine that waits before it returns", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine({.slots = 16}));
  Client client = runtime.client();
  Arrivals<Said> arrived;
  for (int i = 0; i < 5; ++i) note(ask(client, Action::WORK, 30'000'000'000), arrived);
  const Termination report = runtime.terminate();
  CHECK(arrived.count() == 5);
  CHECK(report.books.balanced());
}

TEST_CASE("a coroutine that waits is resumed on the poller's thread, once its reply is there") {
  Stepped stepped;
  Arrivals<Said> arrived;
  note(stepped.ask(Action::ANSWER, 6), arrived);
  CHECK(arrived.count() == 0);
  stepped.work();
  REQUIRE(arrived.wait_for(1));
  const auto got = arrived.take();
  CHECK(got[0].value == 13);
  CHECK(got[0].thread != std::this_thread::get_id());
}

TEST_CASE("resume_on lets a coroutine go on where an executor says") {
  Stepped stepped;
  Arrivals<std::coroutine_handle<>> executor;
  Arrivals<Said> arrived;
  note_on(stepped.ask(Action::ANSWER, 6), executor, arrived);
  stepped.work();
  REQUIRE(executor.wait_for(1));
  CHECK(arrived.count() == 0);
  for (const std::coroutine_handle<> waiting : executor.take()) waiting.resume();
  REQUIRE(arrived.count() == 1);
  const auto got = arrived.take();
  CHECK(got[0].value == 13);
  CHECK(got[0].thread == std::this_thread::get_id());
}

TEST_CASE("what a resumed coroutine lets through is counted") {
  Stepped stepped;
  const Owned coroutine = throw_after(stepped.ask(Action::ANSWER, 1));
  stepped.work();
  stepped.core->terminate(5s);
  CHECK(stepped.core->poller().failures().count == 1);
  CHECK(stepped.core->poller().failures().first == "out of a coroutine");
}
