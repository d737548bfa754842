// The message path's outcomes, one at a time, on workers that the test steps.
#include <fmt/format.h>
#include <gyre/runtime/builtin_actors.hpp>

#include <cstring>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

// Bytes that no client would build, as a message.
struct Raw {
  explicit Raw(const std::vector<uint64_t>& body) : size(body.size()), words(heads + size + 1) {
    std::copy(body.begin(), body.end(), words.begin() + heads);
  }
  detail::Outgoing message() {
    return {reinterpret_cast<capnp::word*>(words.data() + heads), uint32_t(size * 8)};
  }
  static constexpr size_t heads = detail::Outgoing::heads_bytes / 8;
  size_t size;
  std::vector<uint64_t> words;
};
Result<CallId> ask_raw(detail::Core& core, uint16_t actor_type, uint16_t message_type,
                       const std::vector<uint64_t>& body) {
  Raw raw(body);
  return core.ask({0, actor_type, message_type, 0}, raw.message(), {std::chrono::seconds(10), 0},
                  detail::WhenFull::refuse);
}
Result<void> tell_raw(detail::Core& core, uint16_t actor_type, uint16_t message_type,
                      const std::vector<uint64_t>& body, uint64_t key = 0) {
  Raw raw(body);
  return core.tell({0, actor_type, message_type, key}, raw.message(), {std::chrono::seconds(10), {}},
                   detail::WhenFull::refuse);
}

}  // namespace

TEST_CASE("an ask is answered with what its handler made of it") {
  Stepped s;
  auto future = s.ask(Action::ANSWER, 20);
  CHECK_FALSE(future.ready());
  s.work();
  CHECK(future.ready());
  const auto reply = future.get();
  REQUIRE(reply);
  CHECK(reply.value()->getValue() == 41);
}

TEST_CASE("a future gives its outcome once") {
  Stepped s;
  auto future = s.ask(Action::ANSWER, 1);
  s.work();
  REQUIRE(future.get());
  const auto again = future.get();
  REQUIRE_FALSE(again);
  CHECK(again.error().status == Status::terminated);
}

TEST_CASE(
    "a full ring refuses try_ask and try_tell, takes nothing, and has room again when the worker worked") {
  Stepped s;
  for (int i = 0; i < 4; ++i) REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(1)));
  const auto tell = s.client->try_tell<ProbeNote>(probe, noting(1));
  REQUIRE_FALSE(tell);
  CHECK(tell.error().status == Status::ring_full);
  CHECK(tell.error().limit == 4);
  const auto ask = s.try_ask(1);
  REQUIRE_FALSE(ask);
  CHECK(ask.error().status == Status::ring_full);
  CHECK(s.core->books().tells.accepted == 4);
  CHECK(s.core->books().asks.accepted == 0);
  s.work();
  auto accepted = s.try_ask(3);
  REQUIRE(accepted);
  s.work();
  CHECK(accepted.value().get().value()->getValue() == 7);
}

TEST_CASE("a blocking tell into a full ring gives up after its timeout and was not accepted") {
  Stepped s;
  for (int i = 0; i < 4; ++i) REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(1)));
  const auto refused = s.client->tell<ProbeNote>(probe, noting(1), 2ms);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().status == Status::ring_full);
  CHECK(refused.error().asked == 2000);
  CHECK(s.core->books().tells.accepted == 4);
}

TEST_CASE("asks are admitted only while their replies have room: the reply ring cannot overflow") {
  Stepped s({.slots = 4});
  // The worker takes each request at once, so the H2D ring is never full; the replies stay in the D2H ring.
  std::vector<Future<Reply<ProbeResponse>>> futures;
  for (uint64_t i = 0; i < 3; ++i) {  // four slots less one kept for control
    auto future = s.try_ask(i);
    REQUIRE(future);
    futures.push_back(std::move(future.value()));
    REQUIRE(s.engine->step() == PollOutcome::message);
  }
  // No one has read a reply. try_ask itself drains, so the next is accepted only because it made room.
  auto fourth = s.try_ask(3);
  REQUIRE(fourth);
  for (uint64_t i = 0; i < 3; ++i) CHECK(futures[i].get().value()->getValue() == 2 * i + 1);
  s.work();
  CHECK(fourth.value().get().value()->getValue() == 7);
}

TEST_CASE("with every reply promised and none come, an ask is refused though the request ring has room") {
  Stepped s({.slots = 4});
  std::vector<Future<Reply<ProbeResponse>>> futures;
  for (uint64_t i = 0; i < 3; ++i) futures.push_back(std::move(s.try_ask(i).value()));
  const auto refused = s.try_ask(9);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().status == Status::ring_full);
  CHECK(s.core->books().asks.accepted == 3);
  CHECK(s.client->try_tell<ProbeNote>(probe,
                                      noting(1)));  // a tell needs no reply: the fourth slot is there for it
}

TEST_CASE("an unread reply holds a call slot, not a ring slot") {
  Stepped s({.slots = 4});
  std::vector<Future<Reply<ProbeResponse>>> unread;
  for (uint64_t i = 0; i < 1000; ++i) {
    auto future = s.try_ask(i);
    REQUIRE(future);
    unread.push_back(std::move(future.value()));
    s.work();
  }
  for (uint64_t i = 0; i < 1000; ++i) REQUIRE(unread[i].get().value()->getValue() == 2 * i + 1);
}

TEST_CASE(
    "replies held unread for ever fill the call table: refused by name, and accepted when one is released") {
  Stepped s({.slots = 4});
  std::vector<Future<Reply<ProbeResponse>>> unread;
  Status refusal = Status::ok;
  while (refusal == Status::ok && unread.size() < 100'000) {
    auto future = s.try_ask(unread.size());
    if (future) {
      unread.push_back(std::move(future.value()));
    } else {
      refusal = future.error().status;
    }
    s.work();
  }
  CHECK(refusal == Status::call_table_full);
  CHECK(unread.size() == s.core->calls().calls());
  unread.pop_back();
  s.work();
  CHECK(s.try_ask(1));
}

TEST_CASE("a timed-out ask is counted once; its late reply is counted apart and reaches nobody") {
  Stepped s;
  auto future = s.ask(Action::ANSWER, 5, 1ms);
  const auto reply = future.get();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().status == Status::timed_out);
  CHECK(reply.error().limit == 1000);
  CHECK(s.core->books().asks.timed_out == 1);
  CHECK(s.core->books().asks.late_replies == 0);
  s.work();  // now the worker answers
  auto next = s.ask(Action::ANSWER, 6);
  s.work();
  CHECK(next.get().value()->getValue() == 13);
  const Books books = s.core->books();
  CHECK(books.asks.accepted == 2);
  CHECK(books.asks.answered == 1);
  CHECK(books.asks.timed_out == 1);
  CHECK(books.asks.late_replies == 1);
  CHECK(books.asks.in_flight() == 0);
}

TEST_CASE("a timed-out ask keeps its reply's room until the late reply has come") {
  Stepped s({.slots = 4});
  for (int i = 0; i < 3; ++i) {
    auto future = s.ask(Action::ANSWER, 5, 1ms);
    REQUIRE(future.get().error().status == Status::timed_out);
  }
  REQUIRE(s.try_ask(1).error().status == Status::ring_full);
  s.work();
  CHECK(s.try_ask(1));
}

TEST_CASE("whoever waits lets overdue calls of others expire") {
  Stepped s;
  auto forgotten = s.ask(Action::ANSWER, 5, 1ms);
  auto waited = s.ask(Action::ANSWER, 5, 20ms);
  (void)waited.get();  // nobody steps the worker: this waits its 20 ms
  CHECK(s.core->books().asks.timed_out == 2);
  CHECK(forgotten.get().error().status == Status::timed_out);
}

TEST_CASE("a dropped future's reply is counted, and its call slot comes back") {
  Stepped s({.slots = 4});
  for (uint64_t i = 0; i < 3 * s.core->calls().calls(); ++i) {
    REQUIRE(s.try_ask(i));  // the future is dropped at once
    s.work();
  }
  s.core->terminate(1s);
  const Books books = s.core->books();
  CHECK(books.asks.accepted == 3 * s.core->calls().calls());
  CHECK(books.asks.answered == books.asks.accepted);
  CHECK(books.balanced());
}

TEST_CASE("a message type without a handler is answered unknown_message, and the next message is answered") {
  Stepped s;
  const auto wrong_message = ask_raw(*s.core, 0, 77, {0});
  const auto wrong_actor = ask_raw(*s.core, 5, 0, {0});
  REQUIRE(wrong_message);
  REQUIRE(wrong_actor);
  const detail::CallHandle held[] = {{*s.core, wrong_message.value()}, {*s.core, wrong_actor.value()}};
  s.work();
  s.core->wait(wrong_message.value());
  s.core->wait(wrong_actor.value());
  CHECK(s.core->calls().failure(wrong_message.value()).status == Status::unknown_message);
  CHECK(s.core->calls().failure(wrong_actor.value()).status == Status::unknown_actor);
  auto good = s.ask(Action::ANSWER, 1);
  s.work();
  CHECK(good.get().value()->getValue() == 3);
  CHECK(s.core->books().asks.error_replies == 2);
}

TEST_CASE("a body that is no Cap'n Proto message is answered malformed, and the next message is answered") {
  Stepped s;
  const auto beyond_the_end =
      ask_raw(*s.core, 0, 0, {0x0000000500000000u});  // a struct of 5 words, and none follow
  const auto far_pointer = ask_raw(*s.core, 0, 0, {0x0000000000000002u, 0, 0});
  REQUIRE(beyond_the_end);
  REQUIRE(far_pointer);
  const detail::CallHandle held[] = {{*s.core, beyond_the_end.value()}, {*s.core, far_pointer.value()}};
  s.work();
  s.core->wait(far_pointer.value());
  CHECK(s.core->calls().failure(beyond_the_end.value()).status == Status::malformed);
  CHECK(s.core->calls().failure(far_pointer.value()).status == Status::malformed);
  CHECK(std::string(s.core->calls().failure(far_pointer.value()).struct_name) == "ProbeRequest");
  CHECK(s.core->calls().failure(far_pointer.value()).field_name == nullptr);

  // A whole request but for its filler, a list of 100 words where none follow.
  const auto bad_filler = ask_raw(*s.core, 0, 0, {0x0001000200000000u, 5, 0, 0x0000032500000001u});
  REQUIRE(bad_filler);
  const detail::CallHandle held_too(*s.core, bad_filler.value());
  s.work();
  s.core->wait(bad_filler.value());
  const Failure failure = s.core->calls().failure(bad_filler.value());
  CHECK(failure.status == Status::malformed);
  CHECK(failure.detail == 3);
  CHECK(std::string(failure.struct_name) == "ProbeRequest");
  CHECK(std::string(failure.field_name) == "filler");
  CHECK(failure.message().find(
            "field filler of ProbeRequest, at word 3 of the body, points out of the message") !=
        std::string::npos);
  auto good = s.ask(Action::ANSWER, 1);
  s.work();
  CHECK(good.get().value()->getValue() == 3);
}

TEST_CASE("a response that fits no slot is answered reply_too_large, and the next response is clean") {
  Stepped s;
  auto large = s.ask(Action::GROW, 1000);
  auto fits = s.ask(Action::GROW, 20);
  s.work();
  const auto refused = large.get();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().status == Status::reply_too_large);
  CHECK(refused.error().limit == 352);
  const auto reply = fits.get();
  REQUIRE(reply);
  REQUIRE(reply.value()->getFiller().size() == 20);
  for (uint32_t i = 0; i < 20; ++i) CHECK(reply.value()->getFiller()[i] == i);
  CHECK(reply.value()->getValue() == 0);  // nothing of the failed response is left
}

TEST_CASE("a handler's failure is answered with its code") {
  Stepped s;
  auto future = s.ask(Action::FAIL, 1234);
  s.work();
  const auto reply = future.get();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().status == Status::handler_failed);
  CHECK(reply.error().detail == 1234);
}

TEST_CASE("a request too large for a slot is refused with both sizes, and nothing is sent") {
  Stepped s({.slots = 4, .slot_bytes = 64});
  const auto refused = s.try_ask(1);  // 32 bytes of body into 16
  REQUIRE_FALSE(refused);
  CHECK(refused.error().status == Status::too_large);
  CHECK(refused.error().limit == 16);
  CHECK(refused.error().asked > 16);
  CHECK(s.core->books().asks.accepted == 0);
  CHECK(s.engine->step() == PollOutcome::nothing);
}

TEST_CASE("what a fill function throws passes through, and the next message is as if nothing had been") {
  Stepped s;
  const auto throwing = [](ProbeRequest::Builder request) {
    request.setArgument(999);
    throw std::string("changed my mind");
  };
  CHECK_THROWS_AS(s.client->ask<ProbeRequest>(probe, throwing), std::string);
  auto future = s.client->ask<ProbeRequest>(probe, [](ProbeRequest::Builder) {});
  s.work();
  CHECK(future.get().value()->getValue() == 1);  // argument 0: nothing of 999 is left
  CHECK(s.core->books().asks.accepted == 1);
}

TEST_CASE("a fill function that sends is refused by name") {
  Stepped s;
  Status inner = Status::ok;
  auto future = s.client->ask<ProbeRequest>(probe, [&](ProbeRequest::Builder request) {
    request.setArgument(4);
    inner = s.try_ask(1).error().status;
  });
  CHECK(inner == Status::nested_fill);
  s.work();
  CHECK(future.get().value()->getValue() == 9);
}

TEST_CASE("an actor that was not launched is refused by name") {
  struct Stranger {
    void on(Context&, view::ProbeRequest::Reader, view::ProbeResponse::Builder) {}
  };
  Stepped s;
  auto future = s.client->ask<ProbeRequest>(Address<Stranger>{}, asking(Action::ANSWER, 1));
  CHECK(future.ready());
  CHECK(future.get().error().status == Status::unknown_actor);
}

TEST_CASE("messages of one sender are handled in the order they were sent") {
  Stepped s({.slots = 16});
  for (uint64_t i = 1; i <= 10; ++i) REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(i)));
  auto sum = s.ask(Action::SUM_OF_NOTES, 0);
  REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(1000)));
  s.work();
  CHECK(sum.get().value()->getValue() == 55);
}

TEST_CASE("a handler sees the key it was addressed by, and a key always goes to the same worker") {
  Stepped s({.workers = 3, .slots = 16});
  for (const uint64_t key : {uint64_t(0), uint64_t(7), uint64_t(1) << 60}) {
    auto future = s.client->ask<ProbeRequest>(Address<Probe>{key}, asking(Action::ANSWER, 0));
    const auto worker = uint32_t(key % 3);
    for (uint32_t other = 0; other < 3; ++other) {
      if (other != worker) CHECK(s.engine->step(other) == PollOutcome::nothing);
    }
    CHECK(s.engine->step(worker) == PollOutcome::message);
    CHECK(future.get().value()->getKey() == key);
  }
}

TEST_CASE("failed tells are counted as dead letters and kept with their reason and address") {
  Stepped s({.slots = 64});
  REQUIRE(tell_raw(*s.core, 0, 9, {0}, 5));
  REQUIRE(tell_raw(*s.core, 0, 1, {0x0000000500000000u}, 6));
  REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(1)));
  s.work();
  s.core->terminate(1s);
  const Books books = s.core->books();
  CHECK(books.tells.accepted == 3);
  CHECK(books.tells.processed == 1);
  CHECK(books.tells.dead_letters == 2);
  const auto letters = s.core->take_dead_letters();
  REQUIRE(letters.size() == 2);
  CHECK(letters[0].reason == Status::unknown_message);
  CHECK(letters[0].envelope.key == 5);
  CHECK(letters[0].envelope.message_type == 9);
  CHECK(letters[1].reason == Status::malformed);
  CHECK(letters[1].envelope.key == 6);
  CHECK(s.core->take_dead_letters().empty());
}

TEST_CASE("every tell of a burst of failed ones is kept, though nobody asks for dead letters meanwhile") {
  for (const bool one_by_one : {false, true}) {
    Stepped s({.slots = 8});
    constexpr uint64_t count = 1000;
    for (uint64_t i = 0; i < count; ++i) {
      REQUIRE(tell_raw(*s.core, 0, 9, {0}, i));
      if (one_by_one || i % 8 == 7) s.work();
    }
    s.work();
    CHECK(s.core->books().dead_letters_dropped == 0);
    const auto letters = s.core->take_dead_letters();
    REQUIRE(letters.size() == count);
    for (uint64_t i = 0; i < count; ++i) REQUIRE(letters[i].envelope.key == i);
  }
}

TEST_CASE("failed tells that were sent in one batch are all kept") {
  Stepped s({.slots = 32});
  std::vector<Raw> bodies(20, Raw(std::vector<uint64_t>{0}));
  std::vector<detail::Addressed> messages;
  for (uint64_t i = 0; i < 20; ++i) messages.push_back({{0, 0, 9, i}, bodies[i].message()});
  for (int turn = 0; turn < 10; ++turn) {
    Failure refused{};
    REQUIRE(s.core->tell_many(messages, {std::chrono::seconds(10), {}}, refused) == messages.size());
    s.work();
  }
  CHECK(s.core->take_dead_letters().size() == 200);
  CHECK(s.core->books().dead_letters_dropped == 0);
}

TEST_CASE("dead letters beyond 1,024 are dropped, and counted") {
  Stepped s({.slots = 64});
  for (uint64_t i = 0; i < 1100; ++i) {
    REQUIRE(tell_raw(*s.core, 0, 9, {0}, i));
    s.work();
  }
  const auto letters = s.core->take_dead_letters();
  CHECK(letters.size() == 1024);
  CHECK(letters[0].envelope.key == 0);
  CHECK(s.core->books().dead_letters_dropped == 1100 - 1024);
  CHECK(s.core->books().tells.dead_letters == 1100);
}

TEST_CASE("terminate dead-letters what no worker took, asks and tells, and every future completes") {
  Stepped s({.slots = 8});
  auto answered = s.ask(Action::ANSWER, 1);
  auto buried = s.ask(Action::ANSWER, 2);
  REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(1)));
  auto abandoned = s.ask(Action::ANSWER, 3);
  { auto dropped = std::move(abandoned); }
  REQUIRE(s.engine->step() == PollOutcome::message);
  const Termination report = s.core->terminate(1s);
  CHECK_FALSE(report.worker_stuck);
  CHECK(answered.get().value()->getValue() == 3);
  CHECK(buried.get().error().status == Status::terminated);
  CHECK(report.books.asks.accepted == 3);
  CHECK(report.books.asks.answered == 1);
  CHECK(report.books.asks.dead_letters == 2);
  CHECK(report.books.tells.accepted == 1);
  CHECK(report.books.tells.dead_letters == 1);
  CHECK(report.books.balanced());
  const auto letters = s.core->take_dead_letters();
  REQUIRE(letters.size() == 3);
  for (const DeadLetter& letter : letters) CHECK(letter.reason == Status::terminated);
  CHECK(s.core->state() == Lifecycle::terminated);
}

TEST_CASE("terminate with a full ring dead-letters the whole ring") {
  Stepped s({.slots = 256});
  for (int i = 0; i < 256; ++i) REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(1)));
  const Termination report = s.core->terminate(1s);
  CHECK(report.books.tells.accepted == 256);
  CHECK(report.books.tells.dead_letters == 256);
  CHECK(report.books.tells.processed == 0);
  CHECK(s.core->take_dead_letters().size() == 256);
}

TEST_CASE("after terminate everything is refused, and terminate reports again what it did") {
  Stepped s;
  const Termination first = s.core->terminate(1s);
  CHECK(s.try_ask(1).error().status == Status::terminated);
  CHECK(s.client->try_tell<ProbeNote>(probe, noting(1)).error().status == Status::terminated);
  auto future = s.ask(Action::ANSWER, 1);
  CHECK(future.get().error().status == Status::terminated);
  CHECK(s.core->drain(1ms).error().status == Status::terminated);
  const Termination second = s.core->terminate(1s);
  CHECK(second.uptime_s == first.uptime_s);
  CHECK(second.books.asks.accepted == 0);
}

TEST_CASE(
    "drain refuses new messages, waits for the accepted ones, and may be asked again after a time-out") {
  Stepped s({.slots = 4});
  std::vector<Future<Reply<ProbeResponse>>> futures;
  for (uint64_t i = 0; i < 3; ++i) futures.push_back(s.ask(Action::ANSWER, i));
  REQUIRE(
      s.client->try_tell<ProbeNote>(probe, noting(1)));  // the ring is full: drain's own message must wait
  const auto early = s.core->drain(1ms);
  REQUIRE_FALSE(early);
  CHECK(early.error().status == Status::worker_stuck);
  CHECK(s.core->state() == Lifecycle::draining);
  CHECK(s.try_ask(1).error().status == Status::draining);
  s.work();
  CHECK_FALSE(s.core->drain(1ms));  // now its message is in the ring
  s.work();
  CHECK(s.core->drain(1s));
  CHECK(s.core->drain(1s));
  for (uint64_t i = 0; i < 3; ++i) CHECK(futures[i].get().value()->getValue() == 2 * i + 1);
  const Termination report = s.core->terminate(1s);
  CHECK(report.books.asks.answered == 3);
  CHECK(report.books.tells.processed == 1);
  CHECK(report.books.balanced());
}

TEST_CASE("a future outlives its runtime: it completes with terminated") {
  auto s = std::make_unique<Stepped>();
  auto future = s->ask(Action::ANSWER, 1);
  auto answered = s->ask(Action::ANSWER, 2);
  Client client = *s->client;
  REQUIRE(s->engine->step() == PollOutcome::message);
  s.reset();
  CHECK(future.get().value()->getValue() == 3);  // it was answered before the end
  CHECK(answered.get().error().status == Status::terminated);
  CHECK(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get().error().status ==
        Status::terminated);
}

TEST_CASE("when the engine dies every pending ask ends with engine_failed, and the cause is kept") {
  Stepped s({.slots = 8});
  auto first = s.ask(Action::ANSWER, 1);
  auto second = s.ask(Action::ANSWER, 2);
  REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(1)));
  s.engine->fail("the test pulled the plug");
  CHECK(first.get().error().status == Status::engine_failed);
  CHECK(second.get().error().status == Status::engine_failed);
  CHECK(s.core->state() == Lifecycle::failed);
  CHECK(s.core->failure() == "the test pulled the plug");
  CHECK(s.try_ask(1).error().status == Status::engine_failed);
  const Termination report = s.core->terminate(1s);
  CHECK(report.books.asks.dead_letters == 2);
  CHECK(report.books.tells.dead_letters == 1);
  CHECK(report.books.asks.inferred == 2);
  CHECK(report.books.tells.inferred == 1);
  CHECK(report.books.balanced());
  CHECK(s.core->state() == Lifecycle::failed);
}

TEST_CASE("a slot of the reply ring that holds no message ends the runtime by name") {
  Stepped s;
  auto future = s.ask(Action::ANSWER, 1);
  Packet* const ring =
      reinterpret_cast<Packet*>(static_cast<char*>(s.engine->region()) + s.core->layout().d2h_ring(0));
  Memory::store(ring[0], Packet{{0, 0, 0xffffffffu}, 1});
  CHECK(future.get().error().status == Status::engine_failed);
  CHECK(s.core->failure().find("D2H") != std::string::npos);
}

TEST_CASE("a request slot that holds no message is counted and passed over") {
  Stepped s({.slots = 4});
  Packet* const ring = reinterpret_cast<Packet*>(static_cast<char*>(s.engine->region()) +
                                                 s.core->layout().inbound() + s.core->layout().h2d_ring(0));
  auto victim = s.ask(Action::ANSWER, 1, 5ms);
  Memory::store(ring[0], Packet{{0, 0, 0xffffffffu}, 1});
  auto next = s.ask(Action::ANSWER, 2);
  s.work();
  CHECK(next.get().value()->getValue() == 5);
  CHECK(victim.get().error().status == Status::timed_out);
  CHECK_FALSE(s.core->terminate(1s).books.balanced());  // and said so
  CHECK(s.core->books().corrupt_slots == 1);
}

TEST_CASE("request slots that hold no message are passed over, alike ones in a row too") {
  for (const uint32_t size : {0xffffffffu, 0xffffffe4u, 0xffffffd5u, 0x80000000u}) {
    Stepped s({.slots = 8});
    Packet* const ring = reinterpret_cast<Packet*>(static_cast<char*>(s.engine->region()) +
                                                   s.core->layout().inbound() + s.core->layout().h2d_ring(0));
    const size_t packets = s.core->layout().shape.packets();
    INFO("bodies of " << size << " bytes");
    for (uint32_t k = 0; k < 3; ++k) {
      auto victim = s.ask(Action::ANSWER, 1, 5ms);
      Memory::store(ring[k * packets], Packet{{0, 0, size}, 1});
      s.work();
      CHECK(victim.get().error().status == Status::timed_out);
    }
    auto next = s.ask(Action::ANSWER, 2);
    s.work();
    CHECK(next.get().value()->getValue() == 5);
    CHECK_FALSE(s.core->terminate(1s).books.balanced());
    CHECK(s.core->books().corrupt_slots == 3);
  }
}

TEST_CASE("an engine that died unnoticed is found out by terminate: failed, not terminated") {
  Stepped s;
  auto future = s.ask(Action::ANSWER, 1);
  s.engine->fail("it fell off the bus");
  const Termination report = s.core->terminate(1s);
  CHECK(s.core->state() == Lifecycle::failed);
  CHECK(s.core->failure() == "it fell off the bus");
  CHECK(future.get().error().status == Status::engine_failed);
  CHECK(report.books.asks.dead_letters == 1);
}

TEST_CASE("a full call table does not hide that the runtime has ended") {
  Stepped s({.slots = 4});
  std::vector<Future<Reply<ProbeResponse>>> unread;
  for (;;) {
    auto future = s.try_ask(1);
    if (!future) break;
    unread.push_back(std::move(future.value()));
    s.work();
  }
  s.core->terminate(1s);
  CHECK(s.try_ask(1).error().status == Status::terminated);
}

TEST_CASE("timeouts below zero are none, and say so") {
  Stepped s;
  for (int i = 0; i < 4; ++i) REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(1)));
  const auto refused = s.client->tell<ProbeNote>(probe, noting(1), -5ms);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().asked == 0);
}

TEST_CASE("a held reply may be read for ever") {
  Stepped s;
  auto future = s.ask(Action::GROW, 40);
  s.work();
  const auto reply = future.get();
  REQUIRE(reply);
  uint64_t sum = 0;
  for (int i = 0; i < 400'000; ++i) sum += reply.value()->getFiller()[39];
  CHECK(sum == 400'000 * 39);
}

TEST_CASE(
    "workers whose handlers are for other types than the program's do not start, and the error says which") {
  const Options options{.slots = 4, .timeout = 50ms};
  auto engine = std::make_unique<SteppedEngine>(builtin_actors(), options);
  try {
    detail::Core core(probe_actors(), options, std::move(engine));
    FAIL("launched");
  } catch (const Error& error) {
    const std::string message = error.what();
    INFO(message);
    const Handler first = probe_actors().handlers().front();
    CHECK(message.find("handler 0 of actor 0") != std::string::npos);
    CHECK(message.find(fmt::format("{:#018x}", first.request)) != std::string::npos);
    CHECK(message.find("build it again") != std::string::npos);
  }
}

TEST_CASE("a worker that does not start in time is an error, and launching gives up") {
  class NeverStarts final : public Engine {
   public:
    explicit NeverStarts(const Options& options) : engine_(probe_actors(), options) {}
    EngineKind kind() const override { return engine_.kind(); }
    TransportKind transport() const override { return engine_.transport(); }
    std::string device_name() const override { return "nothing"; }
    void* region() override { return engine_.region(); }
    BufferMemory& buffer_memory() override { return engine_.buffer_memory(); }
    double compile_ms() const override { return 0; }
    void launch() override {}
    bool finished() override { return true; }
    std::optional<std::string> failure() override { return std::nullopt; }
    void leak() override {}

   private:
    SteppedEngine engine_;
  };
  const Options options{.slots = 4, .timeout = 5ms};
  CHECK_THROWS_AS(detail::Core(probe_actors(), options, std::make_unique<NeverStarts>(options)), Error);
}

TEST_CASE("terminate without time still lets workers that stop promptly stop") {
  Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .workers = 2});
  const Termination report = runtime.terminate(std::chrono::milliseconds(0));
  CHECK_FALSE(report.worker_stuck);
  CHECK(report.books.balanced());
}

TEST_CASE("a runtime, client, future or reply that was moved from is refused or harmless") {
  Runtime first = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu});
  Runtime second = std::move(first);
  CHECK_THROWS_AS(first.client(), Error);
  CHECK_THROWS_AS(first.drain(), Error);
  CHECK_THROWS_AS(first.terminate(), Error);
  CHECK_THROWS_AS(first.books(), Error);
  CHECK_THROWS_AS(first.state(), Error);
  try {
    (void)first.engine();
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("moved from") != std::string::npos);
  }
  Client client = second.client();
  const Client moved = std::move(client);
  auto future = client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1));
  auto taken = std::move(future);
  CHECK(future.ready());
  CHECK(future.get().error().status == Status::terminated);
  auto reply = std::move(taken.get().value());
  CHECK(reply->getValue() == 3);
  const auto kept = std::move(reply);
  CHECK(reply.body().empty());
  CHECK_FALSE(kept.body().empty());
  first = std::move(second);
  CHECK(first.terminate().books.balanced());
}
