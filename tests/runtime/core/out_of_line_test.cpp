// Bodies and replies larger than a slot, one outcome at a time, on workers that the test steps: what each
// does with its block of the arena.
#include <vector>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

auto echoing(uint32_t words, Action action = Action::ECHO, uint64_t argument = 0) {
  return [=](ProbeRequest::Builder request) {
    request.setAction(action);
    request.setArgument(argument);
    auto filler = request.initFiller(words);
    for (uint32_t i = 0; i < words; ++i) filler.set(i, i + 1);
  };
}

void check_echo(const Reply<ProbeResponse>& reply, uint32_t words) {
  REQUIRE(reply->getFiller().size() == words);
  const auto filler = reply->getFiller();
  uint64_t wrong = 0;
  for (uint32_t i = 0; i < words; ++i) wrong += filler[i] != i + 1;
  CHECK(wrong == 0);
  CHECK(reply->getValue() == uint64_t(words) * (words + 1) / 2);
}

}  // namespace

TEST_CASE(
    "a large request and its large reply go through the arena, and their block is freed with the reply") {
  Stepped s;
  // Root pointer, two data words and a pointer are in front of the filler.
  const uint32_t most = (s.client->body_capacity() - 4 * 8) / 8;
  for (const uint32_t words : {most - 1, most, most + 1, most + 2, 100u, 10'000u, 1'000'000u}) {
    auto future = s.client->ask<ProbeRequest>(probe, echoing(words));
    s.work();
    {
      const auto reply = future.get();
      REQUIRE(reply);
      check_echo(reply.value(), words);
      CHECK((s.core->arena().bytes_in_use() != 0) == (words > most));
    }
    CHECK(s.core->arena().bytes_in_use() == 0);
  }
}

TEST_CASE(
    "a small request has a large reply if its ask makes room, and is told the room if it is too small") {
  Stepped s;
  const auto ask = [&](uint32_t words, uint32_t max_reply_bytes) {
    auto future = s.client->ask<ProbeRequest>(probe, asking(Action::GROW, words), {{}, max_reply_bytes});
    s.work();
    return future.get();
  };
  const auto without = ask(1000, 0);
  REQUIRE_FALSE(without);
  CHECK(without.error().status == Status::reply_too_large);
  CHECK(without.error().limit == s.client->body_capacity());
  const auto too_little = ask(1000, 8000);
  REQUIRE_FALSE(too_little);
  CHECK(too_little.error().status == Status::reply_too_large);
  CHECK(too_little.error().limit == 8000);
  for (const uint32_t words : {0u, 10u, 1000u}) {
    const auto with = ask(words, 8100);
    REQUIRE(with);
    REQUIRE(with.value()->getFiller().size() == words);
    for (uint32_t i = 0; i < words; ++i) REQUIRE(with.value()->getFiller()[i] == i);
  }
  CHECK(s.core->arena().bytes_in_use() == 0);
}

TEST_CASE("Options::max_reply_bytes makes room for every ask") {
  Stepped s({.slots = 4, .max_reply_bytes = 8100});
  auto future = s.ask(Action::GROW, 1000);
  s.work();
  REQUIRE(future.get().value()->getFiller().size() == 1000);
}

TEST_CASE("every outcome of a large ask frees its block: error reply, failure, dropped future") {
  Stepped s;
  for (const Action action : {Action::FAIL, Action::FAIL_ALONE}) {
    auto failing = s.client->ask<ProbeRequest>(probe, echoing(1000, action, 9));
    s.work();
    const auto reply = failing.get();
    REQUIRE_FALSE(reply);
    CHECK(reply.error().status == Status::handler_failed);
    CHECK(reply.error().detail == 9);
    CHECK(s.core->arena().bytes_in_use() == 0);
  }
  { auto dropped = s.client->ask<ProbeRequest>(probe, echoing(1000)); }
  CHECK(s.core->arena().bytes_in_use() != 0);
  s.work();
  while (s.core->books().asks.in_flight() != 0) s.core->poll(0);
  CHECK(s.core->arena().bytes_in_use() == 0);
}

TEST_CASE("a timed-out ask keeps its block until its late reply, and then it is free") {
  Stepped s;
  auto slow = s.client->ask<ProbeRequest>(probe, echoing(1000), 1ms);
  const auto reply = slow.get();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().status == Status::timed_out);
  CHECK(s.core->arena().bytes_in_use() != 0);
  s.work();
  auto next = s.client->ask<ProbeRequest>(probe, echoing(2));
  s.work();
  check_echo(next.get().value(), 2);
  CHECK(s.core->books().asks.late_replies == 1);
  CHECK(s.core->arena().bytes_in_use() == 0);
}

TEST_CASE("a full arena refuses, takes nothing, and has room again when replies are released") {
  Stepped s({.slots = 4, .arena_bytes = 64 << 10});
  auto first = s.client->ask<ProbeRequest>(probe, echoing(2500));  // 20 KiB each way
  s.work();
  auto held = first.get();
  REQUIRE(held);
  const auto refused = s.client->try_ask<ProbeRequest>(probe, echoing(2500));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().status == Status::arena_full);
  CHECK(refused.error().limit == 64 << 10);
  const auto waited = s.client->ask<ProbeRequest>(probe, echoing(2500), 2ms).get();
  REQUIRE_FALSE(waited);
  CHECK(waited.error().status == Status::arena_full);
  const auto never = s.client->ask<ProbeRequest>(probe, echoing(5000)).get();
  REQUIRE_FALSE(never);
  CHECK(never.error().status == Status::too_large);
  CHECK(s.core->books().asks.accepted == 1);
  check_echo(held.value(), 2500);
  held = Failure{};
  auto again = s.client->try_ask<ProbeRequest>(probe, echoing(2500));
  REQUIRE(again);
  s.work();
  check_echo(again.value().get().value(), 2500);
}

TEST_CASE("large tells are processed, and their blocks are freed by credit") {
  Stepped s({.slots = 8, .arena_bytes = 64 << 10});
  uint64_t sum = 0;
  for (int round = 0; round < 100; ++round) {
    const auto told = s.client->try_tell<ProbeNote>(probe, [&](ProbeNote::Builder note) {
      auto filler = note.initFiller(1000);
      for (uint32_t i = 0; i < 1000; ++i) filler.set(i, i + uint64_t(round));
    });
    REQUIRE(told);
    for (uint64_t i = 0; i < 1000; ++i) sum += i + uint64_t(round);
    if (round % 5 == 4) s.work();
  }
  s.work();
  auto total = s.ask(Action::SUM_OF_NOTES, 0);
  s.work();
  CHECK(total.get().value()->getValue() == sum);
  CHECK(s.core->terminate(5s).books.balanced());
  CHECK(s.core->arena().bytes_in_use() == 0);
}

TEST_CASE("termination frees the blocks of what no worker took") {
  Stepped s;
  std::vector<Future<Reply<ProbeResponse>>> asks;
  for (int i = 0; i < 2; ++i) asks.push_back(s.client->ask<ProbeRequest>(probe, echoing(1000)));
  REQUIRE(s.client->try_tell<ProbeNote>(probe, [](ProbeNote::Builder note) { note.initFiller(1000); }));
  CHECK(s.core->arena().bytes_in_use() != 0);
  CHECK(s.core->terminate(5s).books.balanced());
  for (auto& ask : asks) CHECK(ask.get().error().status == Status::terminated);
  CHECK(s.core->arena().bytes_in_use() == 0);
}

TEST_CASE("without an arena, or with slots too small for its heads, what does not fit a slot is too large") {
  for (const Options& options :
       {Options{.slots = 4, .arena_bytes = 0}, Options{.slots = 4, .slot_bytes = 64}}) {
    Stepped s(options);
    const auto reply = s.client->ask<ProbeRequest>(probe, echoing(1000)).get();
    REQUIRE_FALSE(reply);
    CHECK(reply.error().status == Status::too_large);
  }
}

TEST_CASE("a head that names memory outside the arena is a malformed message") {
  Stepped s;
  struct {
    Envelope envelope;
    OutOfLine head;
    uint64_t padding;  // to whole packets
  } message{{0, sizeof(OutOfLine), 0, 0, 0, 1, 0, 0, envelope_flags::out_of_line}, {}, 0};
  const uint64_t size = s.core->arena().bytes();
  const OutOfLine heads[] = {{1, size, 0, 8, 0},
                             {1, ~uint64_t(15), 0, 8, 0},
                             {1, 8, 0, 8, 0},
                             {1, size - 16, 0, 24, 0},
                             {1, 0, size, 8, 16},
                             {1, 0, size - 16, 8, 32},
                             {1, 0, ~uint64_t(15), 8, 64},
                             {1, 0, 3, 8, 16}};
  uint64_t failed = 0;
  const Bridge bridge = Bridge::of(s.engine->region(), s.core->layout(), 0);
  for (const OutOfLine& head : heads) {
    message.head = head;
    publish<Memory>(SingleThread{}, bridge.h2d, bridge.shape, failed++,
                    reinterpret_cast<const uint32_t*>(&message), sizeof(OutOfLine));
    s.work();
    CHECK(s.core->books().tells.dead_letters == failed);
  }
  for (const DeadLetter& letter : s.core->take_dead_letters()) CHECK(letter.reason == Status::malformed);
}

TEST_CASE("the last words name the actor whose message was taken up last, whichever way the message went") {
  Stepped s;
  const auto ask = [&](uint64_t key, uint32_t words) {
    auto future = s.client->ask<ProbeRequest>(Address<Probe>{.key = key}, echoing(words));
    s.work();
    REQUIRE(future.get().has_value());
    const LastWords* const said = Bridge::of(s.engine->region(), s.core->layout(), 0).last_words;
    return Memory::load(said->packet).data[0];
  };
  CHECK(ask(1, 1) == 1);
  CHECK(ask(2, 10'000) == 2);  // out of line: the special path
  CHECK(ask(1, 1) == 1);
  CHECK(ask(1, 10'000) == 1);
}
