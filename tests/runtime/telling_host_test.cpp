// Actors that tell the host, on either engine.
#include <gyre/gyre.hpp>
#include <gyre_telling_actors_sources.hpp>
#include <support/actors/telling.official.hpp>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/actors/telling.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_telling;

namespace {

ActorSet speakers() { return ActorSet::of<Speaker, Singer, Chorus>(gyre_telling_actors::sources); }
ActorSet askers() { return ActorSet::of<Chorus, Singer, Asker>(gyre_telling_actors::sources); }
// On CUDA by one warp, which has paths of its own, and by several.
std::vector<uint32_t> telling_blocks() {
  return engine_under_test == EngineKind::cuda ? std::vector<uint32_t>{32, 128} : std::vector<uint32_t>{32};
}
auto speaking(uint32_t count, uint32_t filler = 0, bool fails = false) {
  return [=](Speak::Builder speak) {
    speak.setCount(count);
    speak.setFiller(filler);
    speak.setFails(fails);
  };
}
template <class Done>
bool wait_until(Done&& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Takes the numbers of speakers, on the poller's thread: each speaker's must come in their order, with their
// filler, and from the worker of the speaker.
struct Listener {
  explicit Listener(Runtime& runtime) : workers(runtime.options().workers) {
    runtime.on<Number>([this](const FromActor& from, Number::Reader number) { take(from, number); });
  }
  void take(const FromActor& from, Number::Reader number) {
    bool right = from.is<Speaker>() || from.is<Asker>() || from.is<Singer>();
    right = right && from.worker == from.key % workers && number.getNumber() == next[from.key];
    const auto filler = number.getFiller();
    for (uint32_t i = 0; i < filler.size(); ++i)
      right = right && filler[i] == element(from.key, number.getNumber(), i);
    ++next[from.key];
    fillers += filler.size();
    wrong += right ? 0 : 1;
    ++count;  // last: the test reads the others once it has seen this
  }
  const uint32_t workers;
  std::map<uint64_t, uint64_t> next;  // by key
  uint64_t fillers = 0, wrong = 0;
  std::atomic<uint64_t> count{0};
};

// The books of a runtime that is drained, and whose messages to the host were all handled but for `dropped`.
ToldAccounts told_at_the_end(Runtime& runtime, uint64_t dropped = 0) {
  REQUIRE(runtime.drain(std::chrono::minutes(1)));
  const Books books = runtime.terminate().books;
  CHECK(books.balanced());
  CHECK(books.told.under_way() == 0);
  CHECK(books.told.dropped == dropped);
  CHECK(books.told.sent == books.told.handled + dropped);
  CHECK(runtime.callback_failures().count == 0);
  return books.told;
}

template <class Actor>
void hold_conversations(ActorSet actors, uint32_t block) {
  // Few slots: laps end in the middle of an answer and the messages before it.
  Runtime runtime = Runtime::launch(
      std::move(actors), on_this_engine({.workers = 3, .block = block, .slots = 32, .slot_bytes = 512}));
  Client client = runtime.client();
  Listener listener(runtime);
  uint64_t told = 0, refused = 0, fillers = 0;
  for (uint32_t round = 0; round < 600; ++round) {
    const uint32_t count = round % (Actor::most + 1), filler = round % 7 == 0 ? 40 : round % 3;
    const auto reply =
        client.template ask<Speak>(Address<Actor>{1 + round % 5}, speaking(count, filler)).get();
    REQUIRE(reply);
    REQUIRE(reply.value()->getTold() + reply.value()->getRefused() == count);
    told += reply.value()->getTold();
    refused += reply.value()->getRefused();
    fillers += uint64_t(reply.value()->getTold()) * filler;
  }
  CHECK(told > 0);
  const ToldAccounts books = told_at_the_end(runtime);
  CHECK(books.handled == told);
  CHECK(books.refused == refused);
  CHECK(listener.count == told);
  CHECK(listener.fillers == fillers);
  CHECK(listener.wrong == 0);
}

}  // namespace

TEST_CASE("what actors tell the host arrives once, whole, and in each actor's order, beside their answers",
          "[gpu][unified][telling]") {
  for (const uint32_t block : telling_blocks()) {
    INFO("block " << block);
    hold_conversations<Speaker>(speakers(), block);
    hold_conversations<Asker>(askers(), block);
  }
}

TEST_CASE("actors that other actors tell can tell the host", "[gpu][unified][telling]") {
  for (const uint32_t block : telling_blocks()) {
    Runtime runtime =
        Runtime::launch(speakers(), on_this_engine({.workers = 3, .block = block, .slots = 64}));
    Client client = runtime.client();
    Listener listener(runtime);
    for (uint32_t round = 0; round < 100; ++round) {
      REQUIRE(client.tell<Conduct>(Address<Chorus>{round % 3}, [](Conduct::Builder conduct) {
        conduct.setSpeakers(8);
        conduct.setCount(4);
      }));
    }
    const ToldAccounts books = told_at_the_end(runtime);
    CHECK(books.sent + books.refused == 100 * 32);
    CHECK(listener.count == books.sent);
    CHECK(listener.wrong == 0);
  }
}

TEST_CASE("a host that does not keep up is told no more than a quarter of a ring, and answers go past it",
          "[gpu][telling]") {
  for (const uint32_t block : telling_blocks()) {
    Runtime runtime =
        Runtime::launch(speakers(), on_this_engine({.workers = 1, .block = block, .slots = 32}));
    Client client = runtime.client();
    std::atomic<bool> may_go{false};
    std::atomic<uint64_t> handled{0};
    runtime.on<Number>([&](const FromActor&, Number::Reader) {
      while (!may_go) std::this_thread::yield();
      ++handled;
    });
    uint32_t told = 0, refused = 0;
    for (uint32_t round = 0; round < 200; ++round) {
      const auto reply = client.ask<Speak>(Address<Speaker>{1}, speaking(3)).get();
      REQUIRE(reply);
      told += reply.value()->getTold();
      refused += reply.value()->getRefused();
    }
    CHECK(told == 8);  // 32 slots / 4
    CHECK(refused == 600 - 8);
    CHECK(handled == 0);
    may_go = true;
    CHECK(wait_until([&] { return handled == 8; }));
    // There is room again.
    CHECK(wait_until([&] {
      const auto reply = client.ask<Speak>(Address<Speaker>{1}, speaking(1)).get();
      return reply && reply.value()->getTold() == 1;
    }));
    CHECK(runtime.drain(std::chrono::minutes(1)));
    const ToldAccounts books = runtime.terminate().books.told;
    CHECK(books.sent == 9);
    CHECK(books.handled == 9);
    CHECK(books.refused >= 600 - 8);
  }
}

TEST_CASE("a handler that fails tells the host nothing", "[gpu][telling]") {
  for (const uint32_t block : telling_blocks()) {
    Runtime runtime = Runtime::launch(speakers(), on_this_engine({.workers = 1, .block = block}));
    Client client = runtime.client();
    Listener listener(runtime);
    for (uint32_t round = 0; round < 20; ++round) {
      const auto failed = client.ask<Speak>(Address<Speaker>{1}, speaking(5, 30, true)).get();
      REQUIRE_FALSE(failed);
      CHECK(failed.error().status == Status::handler_failed);
      REQUIRE(client.ask<Speak>(Address<Speaker>{1}, speaking(1, 2)).get());
    }
    CHECK(told_at_the_end(runtime).handled == 20);
    CHECK(listener.wrong == 0);
    CHECK(listener.fillers == 40);
  }
}

TEST_CASE("a host's handler can answer by a message, and each type has a handler of its own",
          "[gpu][unified][telling]") {
  for (const uint32_t block : telling_blocks()) {
    Runtime runtime = Runtime::launch(speakers(), on_this_engine({.workers = 2, .block = block}));
    Client client = runtime.client();
    std::atomic<uint64_t> sum{0}, remarks{0}, remarked{0}, untold{0};
    runtime.on<Number>([&](const FromActor& from, Number::Reader number) {
      const uint64_t twice = 2 * number.getNumber();
      sum += twice;
      if (!client.tell<Hear>(from.address<Speaker>(), [&](Hear::Builder hear) { hear.setNumber(twice); }))
        ++untold;
    });
    runtime.on<Remark>([&](const FromActor&, Remark::Reader remark) {
      remarked += remark.getNumber();
      ++remarks;
    });
    uint64_t told = 0;
    for (uint32_t round = 0; round < 100; ++round) {
      const auto reply = client.ask<Speak>(Address<Speaker>{3 + round % 2}, speaking(2)).get();
      REQUIRE(reply);
      told += reply.value()->getTold();
    }
    CHECK(wait_until([&] { return remarks == told; }));
    CHECK(untold == 0);
    CHECK(remarked == sum);
    uint64_t answered = 0;
    for (const uint64_t key : {3, 4}) {
      const auto reply = client.ask<Speak>(Address<Speaker>{key}, speaking(0)).get();
      REQUIRE(reply);
      answered += reply.value()->getAnswered();
    }
    CHECK(answered == sum);
    CHECK(told_at_the_end(runtime).handled == 2 * told);
  }
}

TEST_CASE("messages to the host without a handler are dropped and counted", "[gpu][telling]") {
  for (const uint32_t block : telling_blocks()) {
    Runtime runtime =
        Runtime::launch(speakers(), on_this_engine({.workers = 1, .block = block, .slots = 16}));
    Client client = runtime.client();
    uint64_t told = 0;
    const auto speak = [&](uint32_t times) {
      for (uint32_t i = 0; i < times; ++i) {
        CHECK(wait_until([&] {
          const auto reply = client.ask<Speak>(Address<Speaker>{1}, speaking(1)).get();
          return reply && reply.value()->getTold() == 1;
        }));
        ++told;
      }
    };
    speak(20);  // more than there is room for at once
    CHECK(wait_until([&] { return runtime.books().told.dropped == 20; }));
    std::atomic<uint64_t> heard{0};
    runtime.on<Number>([&](const FromActor&, Number::Reader) { ++heard; });
    speak(5);
    CHECK(wait_until([&] { return heard == 5; }));
    runtime.on<Number>(nullptr);
    speak(3);
    CHECK(told_at_the_end(runtime, 23).handled == 5);
    CHECK(heard == 5);
  }
}

TEST_CASE("what a host's handler throws is counted, and the next message is handled", "[gpu][telling]") {
  Runtime runtime = Runtime::launch(speakers(), on_this_engine({.workers = 1}));
  Client client = runtime.client();
  std::atomic<uint64_t> heard{0};
  runtime.on<Number>([&](const FromActor&, Number::Reader number) {
    ++heard;
    if (number.getNumber() == 1) throw std::runtime_error("not one");
  });
  REQUIRE(client.ask<Speak>(Address<Speaker>{1}, speaking(4)).get());
  CHECK(wait_until([&] { return heard == 4; }));
  CHECK(runtime.drain(std::chrono::minutes(1)));
  CHECK(runtime.terminate().books.told.handled == 4);
  CHECK(runtime.callback_failures().count == 1);
  CHECK(runtime.callback_failures().first == "not one");
}

TEST_CASE("terminating handles what has arrived, and says so where a host's handler does not return",
          "[telling]") {
  Runtime runtime = Runtime::launch(speakers(), on_this_engine({.workers = 1}));
  Client client = runtime.client();
  std::atomic<bool> may_go{false};
  std::atomic<uint64_t> heard{0};
  runtime.on<Number>([&](const FromActor&, Number::Reader) {
    while (!may_go) std::this_thread::yield();
    ++heard;
  });
  REQUIRE(client.ask<Speak>(Address<Speaker>{1}, speaking(4)).get());
  const Result<void> drained = runtime.drain(std::chrono::milliseconds(20));
  CHECK_FALSE(drained);
  CHECK(drained.error().status == Status::worker_stuck);
  Termination report = runtime.terminate(std::chrono::milliseconds(250));
  CHECK(report.callback_stuck);
  CHECK(report.books.told.under_way() == 4);
  may_go = true;
  report = runtime.terminate(std::chrono::minutes(1));
  CHECK_FALSE(report.callback_stuck);
  // No call begins after terminate() has given up.
  CHECK(report.books.told.handled == 1);
  CHECK(report.books.told.dropped == 3);
  CHECK(heard == 1);
}

TEST_CASE("what a host's handler asks when the runtime ends has its callback called", "[telling]") {
  Runtime runtime = Runtime::launch(speakers(), on_this_engine({.workers = 1}));
  Client client = runtime.client();
  std::atomic<bool> may_go{false};
  std::atomic<uint64_t> heard{0}, called{0};
  runtime.on<Number>([&](const FromActor& from, Number::Reader) {
    while (!may_go) std::this_thread::yield();
    ++heard;
    client.ask<Speak>(from.address<Speaker>(), speaking(0)).then([&](auto) { ++called; });
  });
  REQUIRE(client.ask<Speak>(Address<Speaker>{1}, speaking(4)).get());
  std::atomic<bool> stuck{true};
  std::thread ending([&] { stuck = runtime.terminate(std::chrono::minutes(1)).callback_stuck; });
  CHECK(wait_until([&] { return runtime.state() == Lifecycle::terminated; }));
  may_go = true;
  ending.join();
  CHECK_FALSE(stuck);
  CHECK(heard == 4);
  CHECK(called == 4);
}

TEST_CASE("a callback that drains does not wait for handlers of messages to the host", "[telling]") {
  Runtime runtime = Runtime::launch(speakers(), on_this_engine({.workers = 1}));
  Client client = runtime.client();
  std::atomic<int> drained{-1};
  runtime.on<Number>([&](const FromActor&, Number::Reader number) {
    if (number.getNumber() == 0) drained = runtime.drain(std::chrono::minutes(1)) ? 1 : 0;
  });
  REQUIRE(client.ask<Speak>(Address<Speaker>{1}, speaking(4)).get());
  CHECK(wait_until([&] { return drained != -1; }));
  CHECK(drained == 1);
  CHECK(runtime.terminate().books.told.handled == 4);
}

TEST_CASE("a set that tells the host needs 4 slots, and on() a set that tells the host", "[telling]") {
  try {
    (void)Runtime::launch(speakers(), on_this_engine({.workers = 1, .slots = 2}));
    FAIL("it was launched");
  } catch (const BadOptions& error) {
    CHECK(std::string(error.what()).find("--slots 2") != std::string::npos);
  }
  Runtime runtime =
      Runtime::launch(ActorSet::of<Silent>(gyre_telling_actors::sources), on_this_engine({.workers = 1}));
  CHECK_THROWS_WITH(runtime.on<Number>([](const FromActor&, Number::Reader) {}), containing("gyre::ToHost"));
}
