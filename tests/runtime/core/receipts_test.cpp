// Receipts of tells: what became of each, with workers that move when the test says so.
#include <vector>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

uint64_t sum_of_notes(Stepped& s) {
  auto sum = s.ask(Action::SUM_OF_NOTES, 0);
  s.work();
  return sum.get().value()->getValue();
}

auto noting_many(uint32_t words) {
  return [words](ProbeNote::Builder note) {
    auto filler = note.initFiller(words);
    for (uint32_t i = 0; i < words; ++i) filler.set(i, 1);
  };
}

}  // namespace

TEST_CASE("a receipt says that the handler has ended, whether it has a response or none") {
  Stepped s;
  auto without = s.client->tell_with_receipt<ProbeNote>(probe, noting(7));
  auto with = s.client->tell_with_receipt<ProbeRequest>(probe, asking(Action::ANSWER, 1));
  CHECK_FALSE(without.ready());
  CHECK_FALSE(with.ready());
  s.work();
  CHECK(without.get());
  CHECK(with.get());
  CHECK(without.get().error().status == Status::terminated);  // taken before
  CHECK(sum_of_notes(s) == 7);
  const Books books = s.core->terminate(5s).books;
  CHECK(books.asks.accepted == 3);
  CHECK(books.asks.answered == 3);
  CHECK(books.tells.accepted == 0);
  CHECK(books.balanced());
}

TEST_CASE("a receipt brings the handler's failure") {
  Stepped s;
  auto failed = s.client->tell_with_receipt<ProbeRequest>(probe, asking(Action::FAIL, 42));
  s.work();
  const auto receipt = failed.get();
  REQUIRE_FALSE(receipt);
  CHECK(receipt.error().status == Status::handler_failed);
  CHECK(receipt.error().detail == 42);
  CHECK(s.core->terminate(5s).books.asks.error_replies == 1);
}

TEST_CASE("a message that a worker takes after its deadline is not handled, and its receipt says so") {
  Stepped s;
  auto late = s.client->tell_with_receipt<ProbeNote>(probe, noting(1000), {48h, 1ms});
  auto early = s.client->tell_with_receipt<ProbeNote>(probe, noting(20), {48h, 10s});
  auto never = s.client->tell_with_receipt<ProbeNote>(probe, noting(3), {48h, 0ms});
  pass(3ms);
  s.work();
  const auto receipt = late.get();
  REQUIRE_FALSE(receipt);
  CHECK(receipt.error().status == Status::expired);
  CHECK(receipt.error().detail >= 1000);  // us late
  CHECK(receipt.error().message().find("its deadline had passed") != std::string::npos);
  CHECK(early.get());
  CHECK(never.get());
  CHECK(sum_of_notes(s) == 23);
  const auto letters = s.core->take_dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].reason == Status::expired);
  CHECK(letters[0].message_type == "ProbeNote");
  const Books books = s.core->terminate(5s).books;
  CHECK(books.asks.timed_out == 1);
  CHECK(books.asks.answered == 3);
  CHECK(books.balanced());
}

TEST_CASE("the receipt of a handler that began in time arrives though the message's time is over by then") {
  Stepped s;
  auto receipt = s.client->tell_with_receipt<ProbeNote>(probe, noting(1), {48h, 20ms});
  s.work();
  pass(25ms);
  CHECK(receipt.get());
}

TEST_CASE("a sender waits for a receipt at most for its timeout, and the message is handled all the same") {
  Stepped s;
  auto receipt = s.client->tell_with_receipt<ProbeNote>(probe, noting(5), {1ms, 10s});
  CHECK(receipt.get().error().status == Status::timed_out);
  s.work();
  CHECK(sum_of_notes(s) == 5);
  const Books books = s.core->terminate(5s).books;
  CHECK(books.asks.timed_out == 1);
  CHECK(books.asks.late_replies == 1);
  CHECK(books.balanced());
}

TEST_CASE(
    "asks, tells and tells with receipts to an actor are handled in the order in which they were sent") {
  Stepped s({.slots = 16, .timeout = 5s});
  auto first = s.client->tell_with_receipt<ProbeNote>(probe, noting(1));
  auto sum_1 = s.ask(Action::SUM_OF_NOTES, 0);
  REQUIRE(s.client->tell<ProbeNote>(probe, noting(10)));
  auto second = s.client->tell_with_receipt<ProbeNote>(probe, noting(100));
  auto sum_2 = s.ask(Action::SUM_OF_NOTES, 0);
  s.engine->step();
  CHECK(first.ready());
  CHECK_FALSE(sum_1.ready());
  s.work();
  CHECK(sum_1.get().value()->getValue() == 1);
  CHECK(sum_2.get().value()->getValue() == 111);
  CHECK(first.get());
  CHECK(second.get());
}

TEST_CASE("a tell with a receipt that finds no room is refused by name, and nothing of it stays") {
  Stepped s;
  std::vector<Future<Receipt>> receipts;
  for (;;) {
    auto sent = s.client->try_tell_with_receipt<ProbeNote>(probe, noting(1));
    if (!sent) {
      CHECK(sent.error().status == Status::ring_full);
      break;
    }
    receipts.push_back(std::move(sent).value());
  }
  REQUIRE_FALSE(receipts.empty());
  auto refused = s.client->tell_with_receipt<ProbeNote>(probe, noting(1), {1ms, {}});
  CHECK(refused.get().error().status == Status::ring_full);
  s.work();
  for (auto& receipt : receipts) CHECK(receipt.get());
  CHECK(sum_of_notes(s) == receipts.size());
  const Books books = s.core->terminate(5s).books;
  CHECK(books.asks.accepted == receipts.size() + 1);
  CHECK(books.balanced());
}

TEST_CASE("a receipt gives its call slot back as it is taken") {
  Stepped s;
  auto future = s.client->tell_with_receipt<ProbeNote>(probe, noting(1));
  s.work();
  const auto receipt = future.get();
  CHECK(receipt);
  CHECK(s.core->calls().held() == 0);
}

TEST_CASE(
    "a large tell with a receipt frees its block of the arena, and reserves no reply without a response") {
  Stepped s;
  auto note = s.client->tell_with_receipt<ProbeNote>(probe, noting_many(1000));
  const uint64_t without_reply = s.core->arena().bytes_in_use();
  CHECK(without_reply > 8000);
  CHECK(without_reply < 16'000);
  s.work();
  CHECK(note.get());
  CHECK(s.core->arena().bytes_in_use() == 0);
  // As an ask, it makes room for a response as large as the request.
  auto echo = s.client->tell_with_receipt<ProbeRequest>(probe, [](ProbeRequest::Builder request) {
    request.setAction(Action::ECHO);
    request.initFiller(1000);
  });
  s.work();
  CHECK(echo.get());
  CHECK(s.core->arena().bytes_in_use() == 0);
  auto late = s.client->tell_with_receipt<ProbeNote>(probe, noting_many(1000), {48h, 1ms});
  pass(3ms);
  s.work();
  CHECK(late.get().error().status == Status::expired);
  CHECK(s.core->arena().bytes_in_use() == 0);
  CHECK(sum_of_notes(s) == 1000);
}

TEST_CASE("actors known by name or by numbers give receipts too") {
  Stepped s;
  const NamedAddress named{"gyre_test::Probe", 0};
  auto by_name = s.client->tell_with_receipt<ProbeNote>(named, noting(1));
  auto tried = s.client->try_tell_with_receipt<ProbeNote>(named, noting(2));
  REQUIRE(tried);
  const auto unknown = s.client->try_tell_with_receipt<ProbeNote>(NamedAddress{"my::Absent", 0}, noting(1));
  CHECK(unknown.error().status == Status::unknown_actor);
  capnp::MallocMessageBuilder message;
  message.initRoot<ProbeNote>().setValue(4);
  const auto words = message.getSegmentsForOutput()[0];
  const Encoded content{std::as_bytes(std::span(words.begin(), words.size())), Encoding::body};
  const auto numbers = s.client->numbers_of("gyre_test::Probe", capnp::typeId<ProbeNote>()).value();
  auto by_number =
      s.client->send_tell_with_receipt_by_number(numbers, 0, content, {48h, 10s}, detail::WhenFull::refuse);
  REQUIRE(by_number);
  s.work();
  CHECK(by_name.get());
  CHECK(tried.value().get());
  CHECK(by_number.value().get());
  CHECK(sum_of_notes(s) == 7);
}

TEST_CASE("an ask of a handler without a response is answered with an empty body") {
  Stepped s;
  const auto numbers = s.client->numbers_of("gyre_test::Probe", capnp::typeId<ProbeNote>()).value();
  for (const uint32_t words : {0u, 1000u}) {  // in the slot, and with room for a reply in the arena
    capnp::MallocMessageBuilder message(2000);
    noting_many(words)(message.initRoot<ProbeNote>());
    const auto body = message.getSegmentsForOutput()[0];
    auto future = s.client->send_ask_by_number(
        numbers, 0, Encoded{std::as_bytes(std::span(body.begin(), body.size())), Encoding::body}, {},
        detail::WhenFull::refuse);
    s.work();
    const auto reply = future.value().get();
    REQUIRE(reply);
    CHECK(reply.value().body().empty());
    CHECK(reply.value()->isNull());
    CHECK(reply.value()->getAs<ProbeNote>().getValue() == 0);
  }
  CHECK(sum_of_notes(s) == 1000);
}

TEST_CASE("a call of which a receipt was wanted is a common ask's afterwards") {
  Stepped s;
  for (int round = 0; round < 8; ++round) {
    auto expired = s.client->tell_with_receipt<ProbeNote>(probe, noting(1), {48h, 1us});
    auto timed_out = s.ask(Action::ANSWER, 1, 1us);
    pass(1ms);
    s.work();
    CHECK(expired.get().error().status == Status::expired);
    CHECK(timed_out.get().error().status == Status::timed_out);
  }
}
