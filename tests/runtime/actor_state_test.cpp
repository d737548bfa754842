// Actors with state by key, on either engine.
#include <atomic>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/counters.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_counters;
using namespace std::chrono_literals;

namespace {

Runtime launch_counters(Options options = {}) {
  options = gyre_test::on_this_engine(options);
  return Runtime::launch(counter_actors(), options);
}

Result<uint64_t> add(Client& client, uint64_t key, uint64_t amount) {
  auto reply = client.ask<Add>(counter(key), adding(amount)).get();
  if (!reply) return reply.error();
  return reply.value()->getValue();
}

}  // namespace

TEST_CASE("each key is an actor of its own, whichever worker has it", "[gpu]") {
  Runtime runtime = launch_counters({.workers = 3});
  Client client = runtime.client();
  for (uint64_t round = 1; round <= 3; ++round) {
    for (uint64_t key = 0; key < 500; ++key) {
      auto reply = client.ask<Add>(counter(key), adding(key + 20)).get();
      REQUIRE(reply);
      REQUIRE(reply.value()->getValue() == (key % 2 == 1 ? 100 : 0) + round * (key + 20));
      REQUIRE(reply.value()->getKey() == key);
      REQUIRE(reply.value()->getStartedAt() == (key % 2 == 1 ? 100 : 0));
    }
  }
  CHECK(add(client, ~uint64_t(0), 1).value() == 101);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("types with the same key share nothing", "[gpu]") {
  Runtime runtime = launch_counters();
  Client client = runtime.client();
  REQUIRE(client.start(Address<Guest>{8}));
  CHECK(add(client, 8, 5).value() == 5);
  CHECK(client.ask<Enter>(Address<Guest>{8}, nothing).get().value()->getValue() == 1);
  REQUIRE(client.tell<Numbered>(Address<Orderly>{8}, numbered(0, 1)));
  CHECK(client.ask<HowOrdered>(Address<Orderly>{8}, nothing).get().value()->getNumbers() == 1);
  CHECK(add(client, 8, 5).value() == 10);
  CHECK(client.ask<Enter>(Address<Guest>{8}, nothing).get().value()->getValue() == 2);
}

TEST_CASE("a stopped actor's next message begins a new life", "[gpu]") {
  Runtime runtime = launch_counters();
  Client client = runtime.client();
  CHECK(add(client, 7, 1).value() == 101);
  CHECK(add(client, 7, 1).value() == 102);
  REQUIRE(client.start(counter(7)));  // it is there: nothing happens to it
  CHECK(add(client, 7, 1).value() == 103);
  REQUIRE(client.stop(counter(7)));
  const auto again = client.stop(counter(7));
  REQUIRE_FALSE(again);
  CHECK(again.error().status == Status::no_such_actor);
  CHECK(add(client, 7, 1).value() == 101);
}

TEST_CASE("what on_start and on_stop fail with is what their messages get, and the actor is gone", "[gpu]") {
  Runtime runtime = launch_counters();
  Client client = runtime.client();
  for (int i = 0; i < 3; ++i) {
    const auto started = client.start(counter(1000003));
    REQUIRE_FALSE(started);
    CHECK(started.error().status == Status::handler_failed);
    CHECK(started.error().detail == 5);
    const auto asked = add(client, 1000003, 1);
    REQUIRE_FALSE(asked);
    CHECK(asked.error().status == Status::handler_failed);
    CHECK(client.stop(counter(1000003)).error().status == Status::no_such_actor);
  }
  CHECK(add(client, 2, 42).value() == 42);
  const auto stopped = client.stop(counter(2));
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().detail == 42);
  CHECK(add(client, 2, 1).value() == 1);
}

TEST_CASE("a type that says so is created by start alone, and as many as it says", "[gpu]") {
  Runtime runtime = launch_counters();
  Client client = runtime.client();
  const auto enter = [&](uint64_t key) { return client.ask<Enter>(Address<Guest>{key}, nothing).get(); };
  CHECK(enter(1).error().status == Status::no_such_actor);
  for (uint64_t key = 1; key <= 3; ++key) REQUIRE(client.start(Address<Guest>{key}));
  const auto fourth = client.start(Address<Guest>{4});
  REQUIRE_FALSE(fourth);
  CHECK(fourth.error().status == Status::actor_table_full);
  const std::string text = fourth.error().message();
  INFO(text);
  CHECK(text.find("all the 3 actors of type gyre_counters::Guest that the type allows (max_per_worker)") !=
        std::string::npos);
  CHECK(text.find("--actors-per-worker") == std::string::npos);  // which would not help
  CHECK(enter(3).value()->getValue() == 1);
  REQUIRE(client.stop(Address<Guest>{2}));
  REQUIRE(client.start(Address<Guest>{4}));
  CHECK(enter(4).value()->getKey() == 4);
  CHECK(enter(2).error().status == Status::no_such_actor);
}

TEST_CASE("a worker's table that is full says so, and takes actors again when some have stopped", "[gpu]") {
  Runtime runtime = launch_counters({.actors_per_worker = 16});
  Client client = runtime.client();
  for (uint64_t key = 0; key < 16; ++key) REQUIRE(add(client, 2 * key, 1));
  const Failure full = add(client, 100, 1).error();
  CHECK(full.status == Status::actor_table_full);
  CHECK(full.message().find("all the 16 actors of that type it has room for") != std::string::npos);
  CHECK(full.message().find("--actors-per-worker") != std::string::npos);
  REQUIRE(client.tell<Increment>(counter(102), incrementing(1)));
  CHECK(add(client, 30, 1).value() == 2);
  REQUIRE(client.stop(counter(8)));
  CHECK(add(client, 100, 1).value() == 1);
  const Termination report = runtime.terminate();
  CHECK(report.books.tells.dead_letters == 1);
  CHECK(report.books.balanced());
  const auto letters = runtime.take_dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].reason == Status::actor_table_full);
  CHECK(letters[0].actor == "gyre_counters::Counter");
  CHECK(letters[0].message_type == "Increment");
  CHECK(letters[0].envelope.key == 102);
}

TEST_CASE("a dead letter can be read: its address, its reason, its body", "[gpu]") {
  Runtime runtime = launch_counters();
  Client client = runtime.client();
  REQUIRE(client.tell<Numbered>(Address<Orderly>{77}, numbered(9, 123456)));  // 9: a GYRE_CHECK fails
  REQUIRE(runtime.drain());
  const auto letters = runtime.take_dead_letters();
  REQUIRE(letters.size() == 1);
  const DeadLetter& letter = letters[0];
  INFO(letter.text());
  CHECK(letter.reason == Status::check_failed);
  CHECK(letter.text().find("gyre_counters::Orderly at key 77, Numbered of ") == 0);
  CHECK(letter.text().find("counter.hpp line ") != std::string::npos);
  SegmentReader message(reinterpret_cast<const capnp::word*>(letter.body.data()),
                        letter.body.size() / sizeof(capnp::word));
  CHECK(message.getRoot<Numbered>().getSender() == 9);
  CHECK(message.getRoot<Numbered>().getNumber() == 123456);
}

TEST_CASE("a failed GYRE_CHECK is an error reply that names its line, and the actor goes on", "[gpu]") {
  Runtime runtime = launch_counters();
  Client client = runtime.client();
  CHECK(add(client, 4, 1).value() == 1);
  const auto failed = add(client, 4, 13);
  REQUIRE_FALSE(failed);
  INFO(failed.error().message());
  CHECK(failed.error().status == Status::check_failed);
  REQUIRE(failed.error().file != nullptr);
  CHECK(std::string(failed.error().file) == "support/actors/counter.hpp");
  std::string_view text;
  for (const SourceFile& file : gyre_state_actors::sources.files) {
    if (file.name == failed.error().file) text = file.text;
  }
  for (uint32_t line = 1; line < failed.error().detail; ++line) text.remove_prefix(text.find('\n') + 1);
  CHECK(text.substr(0, text.find('\n')) == "    GYRE_CHECK(in.getAmount() != 13);");
  CHECK(add(client, 4, 1).value() == 2);
}

TEST_CASE("messages of one sender to one actor keep their order, from four threads at once", "[gpu]") {
  Runtime runtime = launch_counters({.workers = 2, .slots = 16});
  constexpr uint64_t messages = 5'000, actors = 5;
  std::atomic<uint64_t> refused{0};
  std::vector<std::thread> senders;
  for (uint32_t sender = 0; sender < 4; ++sender) {
    senders.emplace_back([&, sender] {
      Client client = runtime.client();
      for (uint64_t n = 1; n <= messages; ++n) {
        for (uint64_t key = 0; key < actors; ++key) {
          if (!client.tell<Numbered>(Address<Orderly>{key}, numbered(sender, n))) ++refused;
        }
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  CHECK(refused == 0);
  Client client = runtime.client();
  for (uint64_t key = 0; key < actors; ++key) {
    const auto order = client.ask<HowOrdered>(Address<Orderly>{key}, nothing).get();
    REQUIRE(order);
    CHECK(order.value()->getWrong() == 0);
    CHECK(order.value()->getNumbers() == 4 * messages);
  }
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("asks and tells to thousands of actors from four threads: every count is right", "[gpu]") {
  constexpr uint64_t actors = 3'000, rounds = 4;
  Runtime runtime = launch_counters({.workers = 3});
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> senders;
  for (uint64_t sender = 0; sender < 4; ++sender) {
    senders.emplace_back([&, sender] {
      Client client = runtime.client();
      for (uint64_t round = 0; round < rounds; ++round) {
        for (uint64_t i = 0; i < actors; ++i) {
          const uint64_t key = 2 * ((i * 7919 + sender * 1000) % actors);
          const bool ok = (i + round) % 4 == 0
                              ? add(client, key, 3).has_value()
                              : client.tell<Increment>(counter(key), incrementing(3)).has_value();
          if (!ok) ++wrong;
        }
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  CHECK(wrong == 0);
  Client client = runtime.client();
  for (uint64_t i = 0; i < actors; ++i) REQUIRE(add(client, 2 * i, 0).value() == 4 * rounds * 3);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a deactivated runtime answers inactive, and goes on where it was when it is activated", "[gpu]") {
  Runtime runtime = launch_counters({.workers = 2});
  Client client = runtime.client();
  CHECK(add(client, 2, 5).value() == 5);
  REQUIRE(runtime.deactivate());
  CHECK(runtime.state() == Lifecycle::inactive);
  REQUIRE(client.tell<Increment>(counter(2), incrementing(1)));  // taken before the ask to the same actor
  for (uint64_t key = 2; key < 12; ++key) CHECK(add(client, key, 5).error().status == Status::inactive);
  REQUIRE(runtime.deactivate());  // it is: nothing happens
  REQUIRE(runtime.activate());
  CHECK(runtime.state() == Lifecycle::active);
  CHECK(add(client, 2, 5).value() == 10);
  REQUIRE(runtime.deactivate());
  REQUIRE(runtime.drain());
  CHECK(runtime.activate().error().status == Status::draining);
  const Termination report = runtime.terminate();
  CHECK(report.books.asks.error_replies == 10);
  CHECK(report.books.tells.dead_letters == 1);
  CHECK(report.books.balanced());
  CHECK(runtime.activate().error().status == Status::terminated);
  const auto letters = runtime.take_dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].reason == Status::inactive);
}

namespace {

// Returns once each worker has said so many times more that it is there, a millisecond apart: it was idle.
void let_idle(const Runtime& runtime, int heartbeats) {
  const size_t workers = runtime.stats().workers.size();
  for (size_t w = 0; w < workers; ++w) {
    double age_s = 0;
    for (int seen = 0; seen < heartbeats;) {
      const double now_s = runtime.stats().workers[w].heartbeat_age_s.value_or(0);
      seen += now_s < age_s ? 1 : 0;
      age_s = now_s;
    }
  }
}

}  // namespace

TEST_CASE("a worker that was idle when it was deactivated answers inactive, whatever it handled last",
          "[gpu][unified]") {
  Runtime runtime = launch_counters({.workers = 1});
  Client client = runtime.client();
  uint64_t total = 0;
  for (int round = 0; round < 5; ++round) {
    for (int message = 0; message < 4; ++message) REQUIRE(add(client, 2, 5).value() == (total += 5));
    let_idle(runtime, 4);
    REQUIRE(runtime.deactivate());
    let_idle(runtime, 4);
    for (int message = 0; message < 2; ++message) {
      REQUIRE_FALSE(add(client, 2, 5));
      REQUIRE(add(client, 2, 5).error().status == Status::inactive);
    }
    REQUIRE(runtime.activate());
  }
  CHECK(add(client, 2, 5).value() == total + 5);
  CHECK(runtime.terminate().books.balanced());
}
