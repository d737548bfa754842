// Asks that are given up. Compiled for both engines.
#include <stop_token>
#include <thread>

#include "support/arrivals.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

Status status_of(const Result<Reply<ProbeResponse>>& outcome) {
  return outcome ? Status::ok : outcome.error().status;
}

}  // namespace

TEST_CASE("a cancelled ask's outcome is `cancelled`, at once", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  auto busy = ask(client, Action::WORK, 30'000'000'000);
  auto given_up = ask(client, Action::ANSWER, 1);
  CHECK(given_up.cancel());
  CHECK_FALSE(given_up.cancel());
  CHECK(given_up.ready());
  const auto outcome = given_up.get();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().status == Status::cancelled);
  const Books books = runtime.terminate().books;
  CHECK(books.asks.accepted == 2);
  CHECK(books.asks.cancelled == 1);
  CHECK(books.balanced());
}

TEST_CASE("an ask that has its outcome cannot be cancelled any more", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  auto future = ask(client, Action::ANSWER, 1);
  future.wait();
  const Canceller canceller = future.canceller();
  CHECK_FALSE(future.cancel());
  CHECK(future.get().value()->getValue() == 3);
  CHECK_FALSE(canceller.cancel());  // nor once its slot is another's
  auto next = ask(client, Action::ANSWER, 2);
  CHECK_FALSE(canceller.cancel());
  CHECK(next.get().value()->getValue() == 5);
  CHECK_FALSE(Canceller().cancel());
  CHECK_FALSE(Future<Reply<ProbeResponse>>().cancel());
  runtime.terminate();
  CHECK_FALSE(canceller.cancel());
}

TEST_CASE("a thread that waits in get() returns when another cancels", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  auto future = ask(client, Action::WORK, 30'000'000'000);
  std::thread other(future.canceller());
  CHECK(status_of(future.get()) == Status::cancelled);
  other.join();
  const Books books = runtime.terminate().books;
  CHECK(books.asks.cancelled == 1);
  CHECK(books.balanced());
}

TEST_CASE("callbacks and coroutines learn that their asks were cancelled", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  Arrivals<Status> arrived;
  auto busy = ask(client, Action::WORK, 30'000'000'000);
  auto future = ask(client, Action::ANSWER, 1);
  const Canceller canceller = future.canceller();
  std::move(future).then([&](auto outcome) { arrived.add(status_of(outcome)); });
  CHECK(canceller.cancel());
  REQUIRE(arrived.wait_for(1));
  CHECK(arrived.take()[0] == Status::cancelled);
  CHECK(busy.cancel());
  CHECK(runtime.terminate().books.asks.cancelled == 2);
}

TEST_CASE("a stop request cancels, before the ask was waited for or while it is", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  std::stop_source source;
  auto first = ask(client, Action::WORK, 30'000'000'000);
  const auto cancels_first = first.cancel_on(source.get_token());
  auto second = ask(client, Action::ANSWER, 1);
  const std::stop_callback cancels_second(source.get_token(), second.canceller());
  auto kept = ask(client, Action::SUM_OF_NOTES, 1);
  { const auto no_more = kept.cancel_on(source.get_token()); }
  std::thread other([&] { source.request_stop(); });
  CHECK(status_of(first.get()) == Status::cancelled);
  CHECK(status_of(second.get()) == Status::cancelled);
  other.join();
  auto late = ask(client, Action::ANSWER, 1);
  const auto at_once = late.cancel_on(source.get_token());
  CHECK(status_of(late.get()) == Status::cancelled);
  const Books books = runtime.terminate().books;
  CHECK(status_of(kept.get()) != Status::cancelled);
  CHECK(books.asks.cancelled == 3);
  CHECK(books.balanced());
}

TEST_CASE(
    "a cancelled ask keeps its room for a reply until the reply came, and a cancelled request is handled") {
  Stepped stepped({.slots = 4, .timeout = 5s});
  std::vector<Future<Reply<ProbeResponse>>> asked;
  for (uint64_t i = 0; i < 3; ++i) {  // all the replies that there is room for
    asked.push_back(std::move(stepped.try_ask(i)).value());
    CHECK(asked.back().cancel());
  }
  CHECK(stepped.try_ask(3).error().status == Status::ring_full);
  stepped.work();
  CHECK(stepped.ask(Action::ANSWER, 7).cancel());  // there is room again
  stepped.work();
  const Books books = stepped.core->terminate(5s).books;
  CHECK(books.asks.accepted == 4);
  CHECK(books.asks.cancelled == 4);
  CHECK(books.asks.late_replies == 4);
  CHECK(books.asks.in_flight() == 0);
  CHECK(books.balanced());
}

TEST_CASE("replies and cancellations race for 2,000 asks: one outcome each", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  uint64_t cancelled = 0, answered = 0;
  std::atomic<uint64_t> decided{0};
  for (int i = 0; i < 100; ++i) {
    std::vector<Future<Reply<ProbeResponse>>> asked;
    std::vector<Canceller> cancellers;
    for (uint64_t k = 0; k < 20; ++k) {
      asked.push_back(ask(client, Action::ANSWER, k));
      cancellers.push_back(asked.back().canceller());
    }
    std::thread other([&] {
      for (const Canceller& canceller : cancellers) decided += canceller.cancel() ? 1 : 0;
    });
    for (uint64_t k = 0; k < 20; ++k) {
      const auto outcome = asked[k].get();
      (outcome ? answered : cancelled) += 1;
      if (outcome) CHECK(outcome.value()->getValue() == 2 * k + 1);
    }
    other.join();
  }
  CHECK(answered + cancelled == 2000);
  CHECK(decided == cancelled);
  const Books books = runtime.terminate().books;
  CHECK(books.asks.cancelled == cancelled);
  CHECK(books.asks.answered == answered);
  CHECK(books.balanced());
}
