// CompletionQueue: outcomes for poll loops. Compiled for both engines.
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <future>
#include <map>
#include <thread>

#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

bool readable(const CompletionQueue& queue, int timeout_ms) {
  pollfd descriptor{queue.fd(), POLLIN, 0};
  return poll(&descriptor, 1, timeout_ms) == 1;
}

// The next outcome, waited for by poll().
std::optional<Completion> next(CompletionQueue& queue) {
  while (readable(queue, 60'000)) {
    if (auto completion = queue.take()) return completion;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a queue gives each outcome once, with its tag, and its descriptor says when", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  CompletionQueue queue;
  CHECK_FALSE(queue.take());
  CHECK_FALSE(readable(queue, 0));
  for (uint64_t i = 0; i < 50; ++i) queue.watch(ask(client, Action::ANSWER, i), 100 + i);
  std::map<uint64_t, uint64_t> values;
  for (uint64_t i = 0; i < 50; ++i) {
    auto completion = next(queue);
    REQUIRE(completion);
    CHECK(completion->outcome.ready());
    const auto reply = std::move(completion->outcome).as<ProbeResponse>().get();
    REQUIRE(reply);
    CHECK(values.emplace(completion->tag, reply.value()->getValue()).second);
  }
  for (uint64_t i = 0; i < 50; ++i) CHECK(values[100 + i] == 2 * i + 1);
  CHECK_FALSE(queue.take());
  CHECK_FALSE(readable(queue, 0));
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("receipts of tells come by get, callbacks and queues, from handlers with a response or without",
          "[gpu][unified]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  const ReceiptOptions days{48h, 60s};
  CHECK(client.tell_with_receipt<ProbeNote>(probe, noting(1), days).get());
  CHECK(client.tell_with_receipt<ProbeRequest>(probe, asking(Action::ANSWER, 1), days).get());
  const auto failed = client.tell_with_receipt<ProbeRequest>(probe, asking(Action::FAIL, 9), days).get();
  REQUIRE_FALSE(failed);
  CHECK(failed.error().status == Status::handler_failed);
  CHECK(failed.error().detail == 9);
  std::promise<Status> called;
  client.tell_with_receipt<ProbeNote>(probe, noting(10), days).then([&called](Result<Receipt> receipt) {
    called.set_value(receipt ? Status::ok : receipt.error().status);
  });
  CHECK(called.get_future().get() == Status::ok);
  CompletionQueue queue;
  for (uint64_t i = 0; i < 50; ++i) {
    queue.watch(client.tell_with_receipt<ProbeNote>(probe, noting(100), days), i);
  }
  std::map<uint64_t, bool> tags;
  for (uint64_t i = 0; i < 50; ++i) {
    auto completion = next(queue);
    REQUIRE(completion);
    const auto outcome = std::move(completion->outcome).get();
    REQUIRE(outcome);
    CHECK(outcome.value().body().empty());
    CHECK(tags.emplace(completion->tag, true).second);
  }
  CHECK(ask(client, Action::SUM_OF_NOTES, 0).get().value()->getValue() == 5011);
  const Books books = runtime.terminate().books;
  CHECK(books.asks.accepted == 55);
  CHECK(books.asks.answered == 54);
  CHECK(books.tells.accepted == 0);
  CHECK(books.balanced());
}

TEST_CASE("the descriptor stays readable until take() has given all, in an epoll loop", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  CompletionQueue queue;
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  REQUIRE(epoll_ctl(loop, EPOLL_CTL_ADD, queue.fd(), &event) == 0);
  uint64_t taken = 0, sent = 0, sum = 0;
  while (sent < 10) queue.watch(ask(client, Action::ANSWER, sent), sent), ++sent;
  while (taken < 300) {
    epoll_event ready{};
    REQUIRE(epoll_wait(loop, &ready, 1, 60'000) == 1);
    auto completion = queue.take();  // one a turn, whatever is there
    if (!completion) continue;
    ++taken;
    sum += std::move(completion->outcome).as<ProbeResponse>().get().value()->getValue();
    if (sent < 300) queue.watch(ask(client, Action::ANSWER, sent), sent), ++sent;
  }
  CHECK(sum == 300 * 300);
  close(loop);
}

TEST_CASE("refused, cancelled and failed asks come by the queue too", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  CompletionQueue queue;
  auto busy = ask(client, Action::WORK, 30'000'000'000);
  auto cancelled = ask(client, Action::ANSWER, 1);
  const Canceller canceller = cancelled.canceller();
  queue.watch(std::move(cancelled), 1);
  CHECK(canceller.cancel());
  queue.watch(Future<Reply<ProbeResponse>>(), 2);
  busy.cancel();
  queue.watch(ask(client, Action::FAIL, 5), 3);
  runtime.terminate();
  queue.watch(ask(client, Action::ANSWER, 1), 4);
  std::map<uint64_t, Status> statuses;
  while (auto completion = queue.take()) {
    const auto outcome = completion->outcome.get();
    statuses[completion->tag] = outcome ? Status::ok : outcome.error().status;
  }
  REQUIRE(statuses.size() == 4);
  CHECK(statuses[1] == Status::cancelled);
  CHECK(statuses[2] == Status::terminated);
  CHECK((statuses[3] == Status::terminated || statuses[3] == Status::handler_failed));
  CHECK(statuses[4] == Status::terminated);
}

TEST_CASE("a queue may end before its outcomes come, or with outcomes in it", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  {
    CompletionQueue queue;
    queue.watch(ask(client, Action::ANSWER, 1), 1);
    REQUIRE(readable(queue, 60'000));
    queue.watch(Future<Reply<ProbeResponse>>(), 2);
    queue.watch(ask(client, Action::WORK, 10'000'000), 3);
  }
  CHECK(ask(client, Action::ANSWER, 2).get());
  const Books books = runtime.terminate().books;
  CHECK(books.asks.answered == 3);
  CHECK(books.balanced());
}

TEST_CASE("outcomes may be taken after the runtime is gone", "[gpu]") {
  CompletionQueue queue;
  {
    Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
    Client client = runtime.client();
    queue.watch(ask(client, Action::ANSWER, 8), 1);
    REQUIRE(readable(queue, 60'000));
  }
  CompletionQueue moved = std::move(queue);
  auto completion = moved.take();
  REQUIRE(completion);
  CHECK(std::move(completion->outcome).as<ProbeResponse>().get().value()->getValue() == 17);
}

TEST_CASE("the first ask that a queue watches of a runtime may be one of before its end", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  auto cancelled = ask(client, Action::ANSWER, 1);
  auto answered = ask(client, Action::ANSWER, 8);
  answered.wait();
  const bool decided = cancelled.cancel();
  runtime.terminate();
  CompletionQueue queue;
  queue.watch(std::move(cancelled), 1);
  queue.watch(std::move(answered), 2);
  CHECK(readable(queue, 0));
  auto first = queue.take();
  REQUIRE(first);
  CHECK(first->tag == 1);
  CHECK(first->outcome.get().has_value() != decided);
  auto second = queue.take();
  REQUIRE(second);
  CHECK(second->tag == 2);
  CHECK(std::move(second->outcome).as<ProbeResponse>().get().value()->getValue() == 17);
  CHECK_FALSE(queue.take());
}

TEST_CASE("several threads watch with one queue, and one takes: nothing is lost", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine({.workers = 2}));
  CompletionQueue queue;
  constexpr uint64_t threads = 3, each = 300;
  std::vector<std::thread> senders;
  for (uint64_t t = 0; t < threads; ++t) {
    senders.emplace_back([&, t] {
      Client client = runtime.client();
      for (uint64_t i = 0; i < each; ++i) queue.watch(ask(client, Action::ANSWER, i), t * each + i);
    });
  }
  std::vector<bool> seen(threads * each);
  bool right = true;
  for (uint64_t i = 0; i < threads * each && right; ++i) {
    auto completion = next(queue);
    REQUIRE(completion);
    right = !seen[completion->tag];
    seen[completion->tag] = true;
    const auto reply = std::move(completion->outcome).as<ProbeResponse>().get();
    right = right && reply && reply.value()->getValue() == 2 * (completion->tag % each) + 1;
  }
  CHECK(right);
  for (std::thread& sender : senders) sender.join();
  CHECK_FALSE(queue.take());
  CHECK(runtime.terminate().books.asks.answered == threads * each);
}
