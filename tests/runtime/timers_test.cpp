// Actors that set timers, on either engine.
#include <gyre/gyre.hpp>
#include <gyre_clock_actors_sources.hpp>
#include <support/actors/clock.official.hpp>

#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "support/actors/clock.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/type_counts.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_clock;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t hour_ns = 3'600'000'000'000, ms = 1'000'000;

ActorSet clocks() { return ActorSet::of<Clock, Bell, Metronome>(gyre_clock_actors::sources); }
ActorSet clocks_that_ask() { return ActorSet::of<Bell, ClockThatAsks>(gyre_clock_actors::sources); }
// On CUDA by one warp, which has paths of its own, and by several.
std::vector<uint32_t> clock_blocks() {
  return engine_under_test == EngineKind::cuda ? std::vector<uint32_t>{32, 128} : std::vector<uint32_t>{32};
}
Runtime launch_clocks(ActorSet actors, uint32_t block = 32, uint32_t workers = 3) {
  return Runtime::launch(std::move(actors), on_this_engine({.workers = workers, .block = block}));
}

struct TimersToSet {
  uint32_t count = 1;
  uint64_t delay_ns = 0;
  int64_t step_ns = 0;
  bool periodic = false;
  uint64_t bell = 0, bell_step = 0;
  uint64_t number = 1;
  bool fails = false;
};
template <class ClockType = Clock>
auto ask_to_set(Client& client, uint64_t clock, const TimersToSet& timers) {
  return client
      .ask<Set>(Address<ClockType>{clock},
                [&](Set::Builder set) {
                  set.setCount(timers.count);
                  set.setDelayNs(timers.delay_ns);
                  set.setStepNs(timers.step_ns);
                  set.setPeriodic(timers.periodic);
                  set.setBell(timers.bell);
                  set.setBellStep(timers.bell_step);
                  set.setNumber(timers.number);
                  set.setFails(timers.fails);
                })
      .get();
}
template <class ClockType = Clock>
std::vector<uint64_t> set_timers(Client& client, uint64_t clock, const TimersToSet& wanted) {
  const auto reply = ask_to_set<ClockType>(client, clock, wanted);
  REQUIRE(reply);
  const auto ids = reply.value()->getTimers();
  std::vector<uint64_t> timers;
  for (const uint64_t id : ids) timers.push_back(id);
  return timers;
}
auto ask_to_cancel(Client& client, uint64_t clock, uint64_t timer) {
  return client.ask<Cancel>(Address<Clock>{clock}, [&](Cancel::Builder cancel) { cancel.setTimer(timer); })
      .get();
}

struct HeardByOne {
  uint64_t count = 0, sum = 0, last = 0, unordered = 0, from_others = 0;
};
template <class Actor = Bell>
HeardByOne heard_by(Client& client, uint64_t key) {
  const auto reply = client.ask<HeardRequest>(Address<Actor>{key}, [](HeardRequest::Builder) {}).get();
  REQUIRE(reply);
  const auto heard = *reply.value();
  return {heard.getCount(), heard.getSum(), heard.getLast(), heard.getUnordered(), heard.getFromOthers()};
}
template <class Done>
bool becomes_true(Done&& done) {
  const auto end = std::chrono::steady_clock::now() + 1min;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::yield();
  }
  return true;
}
template <class Actor = Bell>
HeardByOne await_rings(Client& client, uint64_t key, uint64_t count) {
  CHECK(becomes_true([&] { return heard_by<Actor>(client, key).count >= count; }));
  return heard_by<Actor>(client, key);
}
// Of a runtime that is drained.
Books books_of_clocks(Runtime& runtime) {
  REQUIRE(runtime.drain(1min));
  const Books books = runtime.terminate().books;
  check_types_add_up(runtime.stats());
  CHECK(books.balanced());
  CHECK(books.mail.lost == 0);
  CHECK(books.mail.refused == 0);
  CHECK(books.timers.pending() == 0);
  return books;
}

}  // namespace

TEST_CASE("a timer sends its message once, not before its time, to actors of any worker",
          "[gpu][unified][timers]") {
  for (const uint32_t block : clock_blocks()) {
    INFO("block " << block);
    Runtime runtime = launch_clocks(clocks(), block);
    Client client = runtime.client();
    const auto begun = std::chrono::steady_clock::now();
    set_timers(client, 1, {.count = 6, .delay_ns = 20 * ms, .bell = 0, .bell_step = 1, .number = 100});
    for (uint64_t bell = 0; bell < 6; ++bell) {
      const HeardByOne one = await_rings(client, bell, 1);
      CHECK(std::chrono::steady_clock::now() - begun >= 20ms);
      CHECK(one.count == 1);
      CHECK(one.last == 100 + bell);
      CHECK(one.from_others == 0);
    }
    const Books books = books_of_clocks(runtime);
    CHECK(books.timers.set == 6);
    CHECK(books.timers.done == 6);
    CHECK(books.timers.cancelled == 0);
    CHECK(books.mail.sent == 6);
    CHECK(books.mail.processed == 6);
  }
}

TEST_CASE("timers send in the order in which they are due, and those due together in that of setting them",
          "[gpu][unified][timers]") {
  for (const uint32_t block : clock_blocks()) {
    INFO("block " << block);
    Runtime runtime = launch_clocks(clocks(), block);
    Client client = runtime.client();
    set_timers(client, 1, {.count = 8, .delay_ns = 16 * ms, .step_ns = -int64_t(2 * ms), .bell = 6});
    const HeardByOne reversed = await_rings(client, 6, 8);
    CHECK(reversed.unordered == 7);
    CHECK(reversed.last == 1);
    set_timers(client, 1, {.count = 8, .bell = 7});
    set_timers(client, 1, {.count = 8, .bell = 7, .number = 9});
    const HeardByOne together = await_rings(client, 7, 16);
    CHECK(together.unordered == 0);
    CHECK(together.sum == 16 * 17 / 2);
    CHECK(books_of_clocks(runtime).timers.done == 24);
  }
}

TEST_CASE("a periodic timer sends until its actor cancels it, and a timer may set the next one",
          "[gpu][unified][timers]") {
  for (const uint32_t block : clock_blocks()) {
    INFO("block " << block);
    Runtime runtime = launch_clocks(clocks(), block);
    Client client = runtime.client();
    const uint64_t wanted = 20, more = 20;
    for (const uint64_t key : {0, 1}) {
      REQUIRE(client.tell<Begin>(Address<Metronome>{key}, [&](Begin::Builder begin) {
        begin.setPeriodNs(50'000);
        begin.setTicks(wanted);
      }));
    }
    for (const uint64_t key : {0, 1})
      CHECK(await_rings<Metronome>(client, key, wanted + more).from_others == 0);
    const Books books = books_of_clocks(runtime);
    CHECK(books.timers.done >= 2 * more - 2);
    // The periodic ones by their actors, others by the drain.
    CHECK(books.timers.cancelled >= 2);
    CHECK(books.mail.sent == books.mail.processed);
    CHECK(books.mail.sent >= 2 * (wanted + more));
  }
}

TEST_CASE("a timer that is cancelled before its time sends nothing, and may be cancelled again",
          "[gpu][unified][timers]") {
  Runtime runtime = launch_clocks(clocks());
  Client client = runtime.client();
  const auto timers = set_timers(client, 1, {.count = 4, .delay_ns = hour_ns, .bell = 2});
  REQUIRE(timers.size() == 4);
  CHECK(std::set<uint64_t>(timers.begin(), timers.end()).size() == 4);
  for (const uint64_t timer : timers) {
    REQUIRE(ask_to_cancel(client, 1, timer));
    REQUIRE(ask_to_cancel(client, 1, timer));
  }
  REQUIRE(ask_to_cancel(client, 1, 0));  // of no timer
  CHECK(becomes_true([&] { return runtime.books().timers.cancelled == 4; }));
  // One that is done.
  const auto done = set_timers(client, 1, {.bell = 2, .number = 77});
  CHECK(await_rings(client, 2, 1).last == 77);
  REQUIRE(ask_to_cancel(client, 1, done[0]));
  CHECK(heard_by(client, 2).count == 1);
  const Books books = books_of_clocks(runtime);
  CHECK(books.timers.set == 5);
  CHECK(books.timers.done == 1);
  CHECK(books.timers.cancelled == 4);
}

TEST_CASE("a timer of another worker is not cancelled, and the handler that tries fails by name",
          "[gpu][unified][timers]") {
  Runtime runtime = launch_clocks(clocks());
  Client client = runtime.client();
  const auto timers = set_timers(client, 1, {.delay_ns = hour_ns, .bell = 2});
  const auto refused = ask_to_cancel(client, 2, timers[0]);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().status == Status::check_failed);
  REQUIRE(ask_to_cancel(client, 4, timers[0]));  // of worker 1, too
  CHECK(becomes_true([&] { return runtime.books().timers.cancelled == 1; }));
  CHECK(books_of_clocks(runtime).timers.set == 1);
}

TEST_CASE("actors that stop take their timers with them", "[gpu][unified][timers]") {
  for (const uint32_t block : clock_blocks()) {
    INFO("block " << block);
    Runtime runtime = launch_clocks(clocks(), block);
    Client client = runtime.client();
    set_timers(client, 1, {.count = 8, .delay_ns = hour_ns, .bell = 2});
    set_timers(client, 1, {.delay_ns = 100'000, .periodic = true, .bell = 3, .number = 5});
    set_timers(client, 4, {.delay_ns = hour_ns, .bell = 2});  // of the same worker
    await_rings(client, 3, 3);
    REQUIRE(client.stop(Address<Clock>{1}));
    CHECK(becomes_true([&] { return runtime.books().timers.cancelled == 9; }));
    const uint64_t rings = await_rings(client, 3, 3).count;
    set_timers(client, 1, {.count = 2, .bell = 8});  // the next one with that key
    await_rings(client, 8, 2);
    CHECK(heard_by(client, 3).count <= rings + 1);  // one may have been on its way
    CHECK(runtime.books().timers.pending() == 1);
    const Books books = books_of_clocks(runtime);
    CHECK(books.timers.set == 12);
    CHECK(books.timers.done == 2);
    CHECK(books.timers.cancelled == 10);
  }
}

TEST_CASE("an actor that stops itself is not created again by its own timer", "[gpu][unified][timers]") {
  for (const uint32_t block : clock_blocks()) {
    INFO("block " << block);
    Runtime runtime = launch_clocks(clocks(), block);
    Client client = runtime.client();
    for (uint64_t key = 0; key < 40; ++key) {
      REQUIRE(client.tell<Begin>(Address<Metronome>{key}, [](Begin::Builder begin) {
        begin.setPeriodNs(500);  // less than the worker needs for a message: ticks wait behind the stop
        begin.setTicks(3);
        begin.setStops(true);
      }));
      CHECK(becomes_true([&] { return runtime.books().timers.cancelled == key + 1; }));
      const auto stopped = client.stop(Address<Metronome>{key});
      REQUIRE_FALSE(stopped);
      CHECK(stopped.error().status == Status::no_such_actor);
    }
    CHECK(books_of_clocks(runtime).timers.set == 40);
  }
}

TEST_CASE("timers that send faster than their messages are handled leave room for others",
          "[gpu][unified][timers]") {
  for (const uint32_t block : clock_blocks()) {
    INFO("block " << block);
    Runtime runtime = launch_clocks(clocks(), block);
    Client client = runtime.client();
    set_timers(client, 0, {.count = 8, .delay_ns = 1, .periodic = true, .bell = 0, .bell_step = 3});
    for (uint64_t n = 1; n <= 200; ++n) set_timers(client, 0, {.bell = 1, .number = n});
    const HeardByOne others = await_rings(client, 1, 200);
    CHECK(others.count == 200);
    CHECK(others.unordered == 0);
    CHECK(books_of_clocks(runtime).mail.failed == 0);
  }
}

TEST_CASE("a worker has room for 256 timers, and a handler that wants more fails by name",
          "[gpu][unified][timers]") {
  for (const bool asks : {false, true}) {
    INFO("asks " << asks);
    Runtime runtime = launch_clocks(asks ? clocks_that_ask() : clocks());
    Client client = runtime.client();
    const auto try_to_set = [&](const TimersToSet& timers) {
      return asks ? ask_to_set<ClockThatAsks>(client, 1, timers) : ask_to_set(client, 1, timers);
    };
    for (uint64_t n = 0; n < 31; ++n) REQUIRE(try_to_set({.count = 8, .delay_ns = hour_ns, .bell = n}));
    REQUIRE(try_to_set({.count = 7, .delay_ns = hour_ns}));
    const auto too_many = try_to_set({.count = 2, .delay_ns = hour_ns});
    REQUIRE_FALSE(too_many);
    CHECK(too_many.error().status == Status::timers_full);
    CHECK(too_many.error().detail == 256);
    REQUIRE(try_to_set({.delay_ns = hour_ns}));  // the last: the two above were not set
    REQUIRE_FALSE(try_to_set({.delay_ns = 0}));
    const Books books = books_of_clocks(runtime);
    CHECK(books.timers.set == 256);
    CHECK(books.timers.cancelled == 256);
  }
}

TEST_CASE("places of timers that are done or cancelled are used again", "[gpu][unified][timers]") {
  for (const uint32_t block : clock_blocks()) {
    INFO("block " << block);
    Runtime runtime = launch_clocks(clocks(), block);
    Client client = runtime.client();
    std::set<uint64_t> ids;
    uint64_t sum = 0, sent = 0;
    for (uint64_t round = 0; round < 150; ++round) {
      const auto long_ones = set_timers(client, 1, {.count = 8, .delay_ns = hour_ns, .bell = 2});
      const auto short_ones = set_timers(client, 1, {.count = 8, .bell = 2, .number = 8 * round + 1});
      for (uint64_t i = 0; i < 8; ++i) sum += 8 * round + 1 + i;
      sent += 8;
      ids.insert(long_ones.begin(), long_ones.end());
      ids.insert(short_ones.begin(), short_ones.end());
      for (const uint64_t timer : long_ones) REQUIRE(ask_to_cancel(client, 1, timer));
    }
    CHECK(ids.size() == 150 * 16);
    const HeardByOne all = await_rings(client, 2, sent);
    CHECK(all.sum == sum);
    CHECK(all.unordered == 0);
    const Books books = books_of_clocks(runtime);
    CHECK(books.timers.done == sent);
    CHECK(books.timers.cancelled == sent);
  }
}

TEST_CASE("a handler that fails sets no timer, and its timers' names are not given again",
          "[gpu][unified][timers]") {
  for (const uint32_t block : clock_blocks()) {
    INFO("block " << block);
    Runtime runtime = launch_clocks(clocks(), block);
    Client client = runtime.client();
    const auto before = set_timers(client, 1, {.bell = 2, .number = 1});
    const auto failed = ask_to_set(client, 1, {.count = 8, .bell = 2, .number = 10, .fails = true});
    REQUIRE_FALSE(failed);
    CHECK(failed.error().status == Status::handler_failed);
    const auto after = set_timers(client, 1, {.bell = 2, .number = 2});
    CHECK(after[0] == before[0] + 9);
    CHECK(await_rings(client, 2, 2).sum == 3);
    CHECK(books_of_clocks(runtime).timers.set == 2);
  }
}

TEST_CASE("a period of nothing is refused by name", "[gpu][unified][timers]") {
  Runtime runtime = launch_clocks(clocks());
  Client client = runtime.client();
  const auto refused = ask_to_set(client, 1, {.delay_ns = 0, .periodic = true});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().status == Status::check_failed);
  CHECK(books_of_clocks(runtime).timers.set == 0);
}

TEST_CASE("terminating counts the timers that it loses", "[gpu][unified][timers]") {
  Runtime runtime = launch_clocks(clocks());
  Client client = runtime.client();
  set_timers(client, 1, {.count = 5, .delay_ns = hour_ns});
  set_timers(client, 2, {.count = 3, .delay_ns = hour_ns, .periodic = true});
  const Books books = runtime.terminate().books;
  CHECK(books.balanced());
  CHECK(books.timers.set == 8);
  CHECK(books.timers.lost == 8);
  CHECK(books.timers.pending() == 0);
}
