// What becomes of messages whose deadline has passed, with workers that move when the test says so.
#include <gyre/runtime/worker_clock.hpp>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {
// Until the host's clock, which is the worker's, has passed the time; no test relies on how long that takes.
void pass(std::chrono::nanoseconds time) {
  const int64_t until = detail::host_now_ns() + time.count();
  while (detail::host_now_ns() < until) {
  }
}
}  // namespace

TEST_CASE("an ask that expired before the worker came to it is not handled, and is a dead letter") {
  Stepped s;
  auto late = s.client->ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 1ms);
  auto early = s.client->ask<ProbeRequest>(probe, asking(Action::ANSWER, 2), 10s);
  pass(3ms);
  s.work();
  const auto reply = late.get();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().status == Status::timed_out);
  CHECK(early.get().value()->getValue() == 5);
  const auto letters = s.core->take_dead_letters();
  REQUIRE(letters.size() == 1);
  INFO(letters[0].text());
  CHECK(letters[0].reason == Status::expired);
  CHECK(letters[0].detail >= 1000);  // us late
  CHECK(letters[0].message_type == "ProbeRequest");
  const Books books = s.core->terminate(5s).books;
  CHECK(books.asks.timed_out == 1);
  CHECK(books.asks.answered == 1);
  CHECK(books.balanced());
}

TEST_CASE("a tell with a deadline is handled before it, and a dead letter with its body after it") {
  Stepped s;
  REQUIRE(s.client->tell<ProbeNote>(probe, noting(7), TellOptions{{}, 10s}));
  s.work();
  REQUIRE(s.client->tell<ProbeNote>(probe, noting(1000), TellOptions{{}, 1ms}));
  REQUIRE(s.client->tell<ProbeNote>(probe, noting(20)));  // no deadline
  pass(3ms);
  s.work();
  auto sum = s.ask(Action::SUM_OF_NOTES, 0);
  s.work();
  CHECK(sum.get().value()->getValue() == 27);
  const auto letters = s.core->take_dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].reason == Status::expired);
  SegmentReader message(reinterpret_cast<const capnp::word*>(letters[0].body.data()),
                        letters[0].body.size() / sizeof(capnp::word));
  CHECK(message.getRoot<ProbeNote>().getValue() == 1000);
  const Books books = s.core->terminate(5s).books;
  CHECK(books.tells.processed == 2);
  CHECK(books.tells.dead_letters == 1);
  CHECK(books.balanced());
}

TEST_CASE("an expired message that has its body in the arena gives its block back") {
  Stepped s;
  auto late = s.client->ask<ProbeRequest>(
      Address<Probe>{8},
      [](ProbeRequest::Builder request) {
        request.setAction(Action::ECHO);
        request.initFiller(10'000);
      },
      1ms);
  CHECK(s.core->arena().bytes_in_use() > 0);
  pass(3ms);
  s.work();
  CHECK(late.get().error().status == Status::timed_out);
  CHECK(s.core->arena().bytes_in_use() == 0);
  const auto letters = s.core->take_dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].envelope.key == 8);
  CHECK(letters[0].text().find("gyre_test::Probe at key 8, ProbeRequest: expired: ") == 0);
}

TEST_CASE("deadlines too far away to be compared are none") {
  detail::WorkerClock clock;
  clock.set_same();
  using namespace std::chrono;
  CHECK(clock.deadline_us(0, nanoseconds(hours(2)).count()) == 0);
  CHECK(clock.deadline_us(0, nanoseconds(minutes(1)).count()) == 60'000'000);
  const int64_t late = int64_t(1) << 52;
  CHECK(clock.deadline_us(late - 5'000'000, late) == uint32_t(late / 1000));
  const int64_t zero = (int64_t(1) << 32) * 1000;  // 2^32 us: 0 would say that there is no deadline
  CHECK(clock.deadline_us(zero - 1000, zero) == 1);
}

TEST_CASE("a worker's clock is never taken for earlier than it is, however it drifts") {
  // A clock that is 7 s ahead and gains 150 millionths, sampled 40 us late each second.
  const auto theirs = [](int64_t host_ns) { return 7'000'000'000 + host_ns + host_ns * 150 / 1'000'000; };
  detail::WorkerClock clock;
  constexpr int64_t second = 1'000'000'000, begin = 5000 * second;
  for (int64_t t = begin; t < begin + 1000 * second; t += second) {
    clock.sample(t, theirs(t + 40'000));
    for (const int64_t later : {int64_t(0), second / 2, second}) {
      REQUIRE(clock.latest(t + later) >= theirs(t + later));
      REQUIRE(clock.latest(t + later) <= theirs(t + later) + 40'000 + second / 5000);
    }
  }
  // It steps ahead by a second: some samples later it is known.
  for (int64_t t = begin + 1000 * second; t < begin + 1070 * second; t += second) {
    clock.sample(t, theirs(t) + second);
  }
  CHECK(clock.latest(begin + 1070 * second) >= theirs(begin + 1070 * second) + second);
  // Nobody sampled for an hour.
  CHECK(clock.latest(begin + 4600 * second) >= theirs(begin + 4600 * second));
}
