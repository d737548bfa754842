// The test kit: workers that move, and time that passes, when a test says so.
#include <gyre/runtime/log.hpp>
#include <gyre/testing.hpp>
#include <gyre_clock_actors_sources.hpp>
#include <gyre_telling_actors_sources.hpp>
#include <gyre_test_actors_sources.hpp>
#include <support/actors/clock.official.hpp>
#include <support/actors/probe.official.hpp>
#include <support/actors/telling.official.hpp>

#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/actors/clock.hpp"
#include "support/actors/probe.hpp"
#include "support/actors/telling.hpp"
#include "support/catch.hpp"
#include "support/counters.hpp"
#include "support/detached.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace std::chrono_literals;
using gyre::testing::Order;
using gyre::testing::Step;
using gyre::testing::SteppedRuntime;

namespace {

Address<Probe> probe_at(uint64_t key) { return {key}; }
auto asking(Action action, uint64_t argument = 0) {
  return [action, argument](ProbeRequest::Builder request) {
    request.setAction(action);
    request.setArgument(argument);
  };
}
auto noting(uint64_t value) {
  return [value](ProbeNote::Builder note) { note.setValue(value); };
}
ActorSet probes() { return ActorSet::of<Probe>(gyre_test_actors::sources); }
ActorSet speakers() {
  using namespace gyre_telling;
  return ActorSet::of<Speaker, Singer, Chorus>(gyre_telling_actors::sources);
}

size_t threads_of_process() {
  size_t threads = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++threads;
  return threads;
}

// Until the machine's clock has passed the time.
void pass(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

std::vector<std::string> trace(SteppedRuntime& kit) {
  std::vector<std::string> steps;
  while (const auto step = kit.step()) steps.push_back(step->text());
  return steps;
}

// An actor of the CPU alone.
struct Thrower {
  using Handles = gyre::Handles<view::ProbeNote>;
  static constexpr bool cuda_only = false;
  void on(gyre::Context&, view::ProbeNote::Reader) { throw std::runtime_error("no such note"); }
};

}  // namespace

TEST_CASE("a test reads an actor's state, as all messages before it left it", "[read_state][actors]") {
  SteppedRuntime kit(probes(), {.workers = 2});
  Client client = kit.client();
  for (const uint64_t value : {5, 7}) REQUIRE(client.tell<ProbeNote>(probe_at(2), noting(value)));
  const auto state = client.read_state(probe_at(2));
  REQUIRE(state);
  CHECK(state.value().sum == 12);
  CHECK(kit.waiting(0) == 0);
  kit.hold(0);
  const auto held = client.read_state(probe_at(2), 10ms);
  REQUIRE_FALSE(held);
  CHECK(held.error().status == Status::timed_out);
  kit.release(0);
  CHECK(kit.step()->text() == "worker 0: gyre_test::Probe 2, read_state");
  CHECK(client.list_actors("gyre_test::Probe").value().keys == std::vector<uint64_t>{2});
  CHECK(client.count_actors("gyre_test::Probe").value() == 1);
}

TEST_CASE("a step is one message of one worker, and says which") {
  SteppedRuntime kit(probes(), {.workers = 2});
  Client client = kit.client();
  REQUIRE(client.tell<ProbeNote>(probe_at(0), noting(5)));
  REQUIRE(client.tell<ProbeNote>(probe_at(3), noting(7)));
  REQUIRE(client.tell<ProbeNote>(probe_at(2), noting(1)));
  auto sum = client.ask<ProbeRequest>(probe_at(2), asking(Action::SUM_OF_NOTES));
  CHECK(kit.waiting(0) == 3);
  CHECK(kit.waiting(1) == 1);
  const auto first = kit.step();
  REQUIRE(first);
  CHECK(first->worker == 0);
  CHECK(first->actor == "gyre_test::Probe");
  CHECK(first->key == 0u);
  CHECK(first->message == "ProbeNote");
  CHECK(first->messages == 1);
  CHECK(kit.waiting(0) == 2);
  CHECK(kit.step()->text() == "worker 1: gyre_test::Probe 3, ProbeNote");
  CHECK(kit.step(0)->text() == "worker 0: gyre_test::Probe 2, ProbeNote");
  CHECK_FALSE(sum.ready());
  CHECK_FALSE(kit.step(1));
  CHECK(kit.step()->text() == "worker 0: gyre_test::Probe 2, ProbeRequest");
  CHECK_FALSE(kit.step());
  REQUIRE(sum.ready());
  CHECK(sum.get().value()->getValue() == 1);
}

TEST_CASE("an outcome is awaited by steps, and what else waits moves too") {
  SteppedRuntime kit(probes(), {.workers = 3});
  Client client = kit.client();
  for (uint64_t key = 0; key < 9; ++key) REQUIRE(client.tell<ProbeNote>(probe_at(key), noting(key)));
  CHECK(kit.get(client.ask<ProbeRequest>(probe_at(4), asking(Action::SUM_OF_NOTES))).value()->getValue() ==
        4);
  CHECK(kit.books().tells.processed == 9);
  auto failing = client.ask<ProbeRequest>(probe_at(4), asking(Action::FAIL, 31));
  const auto failed = kit.get(failing);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().status == Status::handler_failed);
  CHECK(failed.error().detail == 31);
  CHECK(kit.get(failing).error().status == Status::terminated);  // it was taken
  CHECK(kit.now() == 0ns);
}

TEST_CASE("equal seeds give equal orders") {
  const auto order_of = [](Order order) {
    SteppedRuntime kit(probes(), {.workers = 4}, order);
    Client client = kit.client();
    for (uint64_t key = 0; key < 40; ++key) REQUIRE(client.tell<ProbeNote>(probe_at(key), noting(key)));
    return trace(kit);
  };
  const auto first = order_of(Order::random(7));
  CHECK(first.size() == 40);
  CHECK(order_of(Order::random(7)) == first);
  std::set<std::vector<std::string>> orders;
  for (uint64_t seed = 0; seed < 8; ++seed) orders.insert(order_of(Order::random(seed)));
  CHECK(orders.size() == 8);
  const auto in_turns = order_of(Order::round_robin());
  for (uint64_t key = 0; key < 40; ++key)
    CHECK(in_turns[key] ==
          "worker " + std::to_string(key % 4) + ": gyre_test::Probe " + std::to_string(key) + ", ProbeNote");
  // By the standard's generator: the same everywhere.
  CHECK(first.front() == "worker 3: gyre_test::Probe 3, ProbeNote");
}

TEST_CASE("a worker that is held does not move, and its ring fills up") {
  SteppedRuntime kit(probes(), {.workers = 2, .slots = 4});
  Client client = kit.client();
  kit.hold(1);
  CHECK(kit.is_held(1));
  for (uint64_t n = 0; n < 4; ++n) REQUIRE(client.try_tell<ProbeNote>(probe_at(1), noting(1)));
  CHECK(client.try_tell<ProbeNote>(probe_at(1), noting(1)).error().status == Status::ring_full);
  REQUIRE(client.tell<ProbeNote>(probe_at(0), noting(1)));
  CHECK(kit.run_until_idle() == 1);
  CHECK(kit.waiting(1) == 4);
  // The call that waits for room ends at its own deadline, in virtual time.
  const auto late = client.tell<ProbeNote>(probe_at(1), noting(1), TellOptions{.timeout = 3s});
  REQUIRE_FALSE(late);
  CHECK(late.error().status == Status::ring_full);
  CHECK(kit.now() == 3s);
  CHECK(kit.step(1));
  REQUIRE(client.try_tell<ProbeNote>(probe_at(1), noting(1)));
  kit.release(1);
  CHECK(kit.run_until_idle() == 4);
  CHECK(kit.books().tells.processed == 6);
}

TEST_CASE("a tell that finds the ring full steps the workers until there is room") {
  SteppedRuntime kit(probes(), {.slots = 4});
  Client client = kit.client();
  for (uint64_t n = 0; n < 50; ++n) REQUIRE(client.tell<ProbeNote>(probe_at(0), noting(n)));
  CHECK(kit.get(client.ask<ProbeRequest>(probe_at(0), asking(Action::SUM_OF_NOTES))).value()->getValue() ==
        49 * 50 / 2);
  CHECK(kit.now() == 0ns);
}

TEST_CASE("deadlines are judged by virtual time alone") {
  SteppedRuntime kit(probes());
  Client client = kit.client();
  auto patient = client.ask<ProbeRequest>(probe_at(1), asking(Action::ANSWER, 4), 1ms);
  pass(5ms);
  CHECK_FALSE(patient.ready());
  CHECK(kit.get(patient).value()->getValue() == 9);

  auto late = client.ask<ProbeRequest>(probe_at(1), asking(Action::ANSWER, 5), 10s);
  REQUIRE(client.tell<ProbeNote>(probe_at(1), noting(3), TellOptions{{}, 4s}));
  kit.advance(10s - 1ns);
  CHECK_FALSE(late.ready());
  kit.advance(1ns);
  REQUIRE(late.ready());
  const auto outcome = late.get();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().status == Status::timed_out);
  CHECK(outcome.error().limit == 10'000'000);
  kit.advance(1ms);
  CHECK(kit.run_until_idle() == 2);  // the worker refuses both
  const auto letters = kit.runtime().take_dead_letters();
  REQUIRE(letters.size() == 2);
  CHECK(letters[0].reason == Status::expired);
  CHECK(letters[0].detail == 1000);  // µs late
  CHECK(letters[1].reason == Status::expired);
  CHECK(letters[1].detail == 6'001'000);
  CHECK(kit.now() == 10s + 1ms);
  const Books books = kit.books();
  CHECK(books.asks.timed_out == 1);
  CHECK(books.asks.answered == 1);
  CHECK(books.tells.dead_letters == 1);
  CHECK(books.balanced());
}

TEST_CASE("a call that blocks steps the workers, and lets time pass where none can move") {
  SteppedRuntime kit(probes(), {.workers = 2});
  Client client = kit.client();
  CHECK(client.ask<ProbeRequest>(probe_at(1), asking(Action::ANSWER, 1)).get().value()->getValue() == 3);
  CHECK(kit.now() == 0ns);
  kit.hold(1);
  auto held = client.ask<ProbeRequest>(probe_at(1), asking(Action::ANSWER, 1), 2s);
  CHECK_FALSE(held.wait_for(500ms));
  CHECK(kit.now() == 500ms);
  const auto outcome = held.get();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().status == Status::timed_out);
  CHECK(kit.now() == 2s);
  const auto drained = kit.runtime().drain(1s);
  REQUIRE_FALSE(drained);
  CHECK(drained.error().status == Status::worker_stuck);
  CHECK(kit.now() == 3s);
  kit.release(1);
  CHECK(kit.runtime().drain(1s));
  CHECK(kit.now() == 3s);
}

TEST_CASE("an outcome that cannot come fails by name, and says what each worker waits for") {
  SteppedRuntime kit(probes(), {.workers = 2});
  Client client = kit.client();
  kit.hold(1);
  auto held = client.ask<ProbeRequest>(probe_at(1), asking(Action::ANSWER, 1));
  CHECK_THROWS_WITH(kit.get(held), containing("waiting for an outcome: no worker can move: worker 0 has "
                                              "nothing to do, worker 1 is held and has 1 messages of the "
                                              "host; release() a worker that is held"));
  CHECK_THROWS_WITH(kit.run_until([] { return false; }), containing("waiting for a condition of the test"));
  kit.release(1);
  CHECK(kit.get(held).value()->getValue() == 3);
}

TEST_CASE("handlers read virtual time, and may wait for it to pass") {
  const auto read = [] {
    SteppedRuntime kit(probes());
    Client client = kit.client();
    kit.advance(7s);
    CHECK(kit.get(client.ask<ProbeRequest>(probe_at(0), asking(Action::TIME, 20'000))));
    return kit.now();
  };
  const auto first = read();
  CHECK(first >= 7s + 20'000ns);
  CHECK(first < 7s + 20'010ns);
  CHECK(read() == first);
}

TEST_CASE("workers are activated, deactivated, started, stopped and drained without a thread") {
  using namespace gyre_counters;
  SteppedRuntime kit(counter_actors(), {.workers = 2});
  Client client = kit.client();
  REQUIRE(client.start(Address<Guest>{4}));
  CHECK(kit.get(client.ask<Enter>(Address<Guest>{4}, nothing)).value()->getValue() == 1);
  REQUIRE(client.stop(Address<Guest>{4}));
  CHECK(kit.get(client.ask<Enter>(Address<Guest>{4}, nothing)).error().status == Status::no_such_actor);
  REQUIRE(kit.runtime().deactivate());
  CHECK(kit.get(client.ask<Add>(counter(1), adding(1))).error().status == Status::inactive);
  REQUIRE(kit.runtime().activate());
  CHECK(kit.get(client.ask<Add>(counter(1), adding(1))).value()->getValue() == 101);
  REQUIRE(client.tell<Increment>(counter(1), incrementing(1)));
  REQUIRE(kit.runtime().drain());
  CHECK(client.tell<Increment>(counter(1), incrementing(1)).error().status == Status::draining);
  CHECK(kit.now() == 0ns);
  const Termination end = kit.runtime().terminate();
  CHECK(end.books.balanced());
  CHECK_FALSE(end.worker_stuck);
  CHECK_FALSE(kit.step());
}

TEST_CASE("callbacks, coroutines and handlers of what actors tell the host run on the test's thread") {
  const size_t threads = threads_of_process();
  using namespace gyre_telling;
  SteppedRuntime kit(speakers(), {.workers = 2});
  Client client = kit.client();
  std::vector<uint64_t> numbers, answers;
  std::set<std::thread::id> threads_of_calls;
  kit.runtime().on<Number>([&](const FromActor& from, Number::Reader number) {
    threads_of_calls.insert(std::this_thread::get_id());
    numbers.push_back(100 * from.key + number.getNumber());
  });
  const auto speak = [](Speak::Builder message) { message.setCount(2); };
  client.ask<Speak>(Address<Speaker>{3}, speak).then([&](Result<Reply<Spoken>> outcome) {
    threads_of_calls.insert(std::this_thread::get_id());
    answers.push_back(outcome.value()->getTold());
  });
  const auto await = [&](Future<Reply<Spoken>> future) -> Detached {
    const auto reply = co_await std::move(future);
    threads_of_calls.insert(std::this_thread::get_id());
    answers.push_back(10 * reply.value()->getTold());
  };
  await(client.ask<Speak>(Address<Speaker>{4}, speak));
  CHECK(answers.empty());
  CHECK(kit.step());
  CHECK(answers == std::vector<uint64_t>{20});
  CHECK(numbers == std::vector<uint64_t>{400, 401});
  CHECK(kit.run_until_idle() == 1);
  CHECK(answers == std::vector<uint64_t>{20, 2});
  CHECK(numbers == std::vector<uint64_t>{400, 401, 300, 301});
  CHECK(threads_of_calls == std::set{std::this_thread::get_id()});
  CHECK(threads_of_process() == threads);
  // A callback that asks again, while drain() waits.
  uint64_t last = 0;
  client.ask<Speak>(Address<Speaker>{4}, speak).then([&](Result<Reply<Spoken>>) {
    client.ask<Speak>(Address<Speaker>{4}, speak).then([&](Result<Reply<Spoken>> outcome) {
      last = outcome.value()->getTold();
    });
  });
  CHECK(kit.step());
  REQUIRE(kit.runtime().drain());
  CHECK(last == 2);
  CHECK(kit.runtime().terminate().books.balanced());
  CHECK(threads_of_process() == threads);
}

TEST_CASE("a callback is called with timed_out when its deadline passes, and with terminated at the end") {
  std::vector<Status> statuses;
  const auto note = [&](Result<Reply<ProbeResponse>> outcome) { statuses.push_back(outcome.error().status); };
  {
    SteppedRuntime kit(probes());
    Client client = kit.client();
    client.ask<ProbeRequest>(probe_at(1), asking(Action::ANSWER), 1s).then(note);
    client.ask<ProbeRequest>(probe_at(1), asking(Action::ANSWER), 3s).then(note);
    kit.advance(2s);
    CHECK(statuses == std::vector{Status::timed_out});
  }
  CHECK(statuses == std::vector{Status::timed_out, Status::terminated});
}

TEST_CASE("messages between actors are steps of their own, and each step leaves exact counts") {
  using namespace gyre_telling;
  SteppedRuntime kit(speakers(), {.workers = 2});
  Client client = kit.client();
  uint64_t sung = 0;
  kit.runtime().on<Number>([&](const FromActor&, Number::Reader) { ++sung; });
  REQUIRE(client.tell<Conduct>(Address<Chorus>{0}, [](Conduct::Builder conduct) {
    conduct.setSpeakers(2);
    conduct.setCount(2);
  }));
  CHECK(kit.step()->text() == "worker 0: gyre_telling::Chorus 0, Conduct");
  CHECK(kit.books().mail.sent == 4);
  CHECK(kit.books().mail.processed == 0);
  CHECK(kit.step()->text() == "worker 1: gyre_telling::Singer 1, Speak");
  CHECK(kit.books().mail.processed == 1);
  CHECK(sung == 1);
  CHECK(kit.step()->text() == "worker 0: gyre_telling::Singer 2, Speak");
  CHECK(kit.run_until_idle() == 2);
  CHECK(sung == 4);
  CHECK(kit.books().balanced());
  const Stats stats = kit.stats();
  uint64_t spoken = 0;
  for (const HandlerStats& handler : stats.handlers()) {
    if (handler.actor == "gyre_telling::Singer" && handler.message == "Speak") spoken = handler.processed;
  }
  CHECK(spoken == 4);
  CHECK(stats.workers[1].mail.processed == 2);
}

TEST_CASE("actors that send each other messages for ever are noticed") {
  SteppedRuntime kit(probes());
  Client client = kit.client();
  for (uint64_t n = 0; n < 3; ++n) REQUIRE(client.tell<ProbeNote>(probe_at(0), noting(1)));
  CHECK_THROWS_WITH(kit.run_until_idle(2), containing("some still do after 2 steps"));
}

TEST_CASE("an engine that a test lets die ends its asks by name, and is launched again") {
  using namespace gyre_counters;
  SteppedRuntime kit(counter_actors(), {.workers = 2});
  Client client = kit.client();
  REQUIRE(kit.get(client.ask<Add>(counter(3), adding(5))));
  auto lost = client.ask<Add>(counter(3), adding(5));
  auto other = client.ask<Add>(counter(4), adding(5));
  CHECK_THROWS_WITH(kit.fail_engine_at(7, "a fault"), containing("worker 7: there are 2 workers"));
  kit.fail_engine_at(1, "a fault of the test");
  REQUIRE(lost.ready());
  const auto outcome = lost.get();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().status == Status::engine_failed);
  CHECK(outcome.error().actor_name == std::string("gyre_counters::Counter"));
  CHECK(outcome.error().struct_name == std::string("Add"));
  CHECK(other.get().error().status == Status::engine_failed);
  CHECK(kit.runtime().state() == Lifecycle::failed);
  CHECK_THAT(kit.runtime().failure(), containing("a fault of the test; worker 1 was last busy with "
                                                 "gyre_counters::Counter, key 3, message Add"));
  CHECK_FALSE(kit.step());
  CHECK(client.tell<Increment>(counter(3), incrementing(1)).error().status == Status::engine_failed);

  kit.runtime().relaunch();
  CHECK(kit.get(client.ask<Add>(counter(3), adding(1))).value()->getValue() == 101);  // begun anew
  CHECK(kit.stats().restarts == 1);
  const Books books = kit.runtime().terminate().books;
  CHECK(books.balanced());
  CHECK(books.asks.accepted == 4);
  CHECK(books.asks.answered == 2);
  CHECK(books.asks.dead_letters == 2);
}

TEST_CASE("an engine dies at no message where none waits") {
  SteppedRuntime kit(probes());
  CHECK_THROWS_WITH(kit.fail_engine_at(0, "a fault"), containing("its ring is empty; send it one first"));
  kit.fail_engine("a fault");
  CHECK(kit.runtime().failure() == "a fault");
}

TEST_CASE("what a handler throws passes through the step, and its engine has failed") {
  SteppedRuntime kit(ActorSet::of<Thrower>(gyre_test_actors::sources));
  Client client = kit.client();
  REQUIRE(client.tell<ProbeNote>(Address<Thrower>{}, noting(1)));
  CHECK_THROWS_WITH(kit.step(), "no such note");
  CHECK_THAT(kit.runtime().failure(), containing("a handler of worker 0 threw an exception"));
}

TEST_CASE("lines of handlers are logged after their step") {
  std::vector<std::string> lines;
  set_logger([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  set_log_level(LogLevel::info);
  SteppedRuntime kit(probes());
  Client client = kit.client();
  REQUIRE(kit.get(client.ask<ProbeRequest>(probe_at(6), asking(Action::LOG, 12))));
  set_log_level(LogLevel::warning);
  set_logger({});
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], containing("0 numbers, -12 and 3.00 of all"));
}

TEST_CASE("options that a stepped runtime cannot have are refused by name, all at once") {
  const Options wrong{
      .engine = EngineKind::cuda, .transport = TransportKind::pinned, .slots = 3, .publish_stats = true};
  try {
    const SteppedRuntime kit(probes(), wrong);
    FAIL("launched");
  } catch (const BadOptions& error) {
    const std::string text = error.what();
    CHECK_THAT(text, containing("--slots 3: must be a power of two"));
    CHECK_THAT(text, containing("--engine cuda: a stepped runtime has the CPU engine's workers"));
    CHECK_THAT(text, containing("--transport pinned: a stepped runtime's only transport is heap"));
    CHECK_THAT(text, containing("publish_stats: a stepped runtime has no thread that writes them"));
  }
  SteppedRuntime kit(probes());
  CHECK_THROWS_WITH(kit.advance(-1ns), containing("it does not go back"));
  CHECK_THROWS_WITH(kit.step(1), containing("stepping worker 1: there are 1 workers"));
}

TEST_CASE("futures may outlive their stepped runtime, and bodies larger than a slot are as usual") {
  Future<Reply<ProbeResponse>> open;
  std::optional<Result<Reply<ProbeResponse>>> large;
  {
    SteppedRuntime kit(probes());
    Client client = kit.client();
    auto request = client.ask<ProbeRequest>(probe_at(0), [](ProbeRequest::Builder request) {
      request.setAction(Action::ECHO);
      auto filler = request.initFiller(5000);
      for (uint32_t i = 0; i < 5000; ++i) filler.set(i, 3 * i);
    });
    large.emplace(kit.get(request));
    open = client.ask<ProbeRequest>(probe_at(0), asking(Action::ANSWER));
  }
  REQUIRE(*large);
  CHECK(large->value()->getFiller()[4999] == 3 * 4999);
  CHECK(open.get().error().status == Status::terminated);
}

TEST_CASE("two stepped runtimes have their own time") {
  SteppedRuntime first(probes()), second(probes());
  Client client = first.client(), other = second.client();
  auto of_first = client.ask<ProbeRequest>(probe_at(0), asking(Action::ANSWER), 1s);
  auto of_second = other.ask<ProbeRequest>(probe_at(0), asking(Action::ANSWER), 1s);
  first.advance(1s);
  CHECK(of_first.get().error().status == Status::timed_out);
  CHECK(second.now() == 0ns);
  CHECK(second.get(of_second).value()->getValue() == 1);
}

namespace {
// Clock 0, of worker 0, and a timer for a bell.
void set_timer(SteppedRuntime& kit, std::chrono::nanoseconds delay, bool periodic, uint64_t bell) {
  auto future =
      kit.client().ask<gyre_clock::Set>(Address<gyre_clock::Clock>{0}, [&](gyre_clock::Set::Builder set) {
        set.setCount(1);
        set.setDelayNs(uint64_t(delay.count()));
        set.setPeriodic(periodic);
        set.setBell(bell);
      });
  REQUIRE(kit.get(future));
}
auto ask_bell(SteppedRuntime& kit, uint64_t bell, std::chrono::milliseconds timeout) {
  return kit.client().ask<gyre_clock::HeardRequest>(
      Address<gyre_clock::Bell>{bell}, [](gyre_clock::HeardRequest::Builder) {},
      AskOptions{.timeout = timeout});
}
uint64_t rings_of(SteppedRuntime& kit, uint64_t bell) {
  auto future = ask_bell(kit, bell, 1min);
  const auto reply = kit.get(future);
  REQUIRE(reply);
  return reply.value()->getCount();
}
ActorSet clocks() {
  using namespace gyre_clock;
  return ActorSet::of<Clock, Bell, Metronome>(gyre_clock_actors::sources);
}
}  // namespace

TEST_CASE("timers of actors send when the test lets their time pass, and not before") {
  SteppedRuntime kit(clocks(), {.workers = 2});
  set_timer(kit, 1h, false, 1);
  set_timer(kit, 1min, true, 0);
  kit.run_until_idle();
  CHECK(rings_of(kit, 1) == 0);
  for (uint64_t minute = 1; minute < 60; ++minute) {
    kit.advance(1min);
    kit.run_until_idle();
    REQUIRE(rings_of(kit, 0) == minute);
  }
  CHECK(rings_of(kit, 1) == 0);
  kit.advance(1min);
  kit.run_until_idle();
  CHECK(rings_of(kit, 1) == 1);
  CHECK(kit.books().timers.done == 1);
  kit.advance(1h);
  kit.run_until_idle();
  CHECK(rings_of(kit, 0) == 61);  // the times that passed at once are one
}

TEST_CASE("a call that blocks lets no more time pass than until the next timer") {
  SteppedRuntime kit(clocks(), {.workers = 2});
  set_timer(kit, 1s, true, 0);
  kit.hold(1);
  const auto reply = ask_bell(kit, 1, 10500ms).get();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().status == Status::timed_out);
  CHECK(rings_of(kit, 0) == 10);
}

TEST_CASE("a call that blocks passes its deadline beside a held worker whose timer is due") {
  SteppedRuntime kit(clocks(), {.workers = 2});
  set_timer(kit, 1us, false, 1);
  kit.hold(0);  // after 1 us its timer is due, and cannot send
  const auto reply = ask_bell(kit, 0, 1h).get();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().status == Status::timed_out);
  kit.release(0);
  kit.run_until_idle();
  CHECK(rings_of(kit, 1) == 1);
}

namespace {
// Sends 64 rings of number n - 1 for one of number n, in turns to itself and to the actor with the next key.
struct Avalanche {
  void on(Sending<64>& ctx, gyre_clock::view::Ring::Reader in) {
    if (in.getNumber() == 0) return;
    for (uint64_t i = 0; i < 64; ++i) {
      ctx.tell<gyre_clock::view::Ring>(
          Address<Avalanche>{ctx.key() + i % 2},
          [&](gyre_clock::view::Ring::Builder ring) { ring.setNumber(in.getNumber() - 1); });
    }
  }
};
}  // namespace

TEST_CASE("workers that wait for each other's room go on, in any order") {
  for (const uint32_t seed : {0, 1, 2, 3}) {
    INFO("seed " << seed);
    SteppedRuntime kit(ActorSet::of<Avalanche>(ActorSources{}), {.workers = 2},
                       seed == 0 ? Order::round_robin() : Order::random(seed));
    REQUIRE(kit.client().tell<gyre_clock::Ring>(Address<Avalanche>{0},
                                                [](gyre_clock::Ring::Builder ring) { ring.setNumber(3); }));
    for (int step = 0; step < 5000; ++step) REQUIRE(kit.step());
  }
}
