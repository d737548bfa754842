// A worker of one warp whose handlers ask, lane by lane on a CPU.
#include <map>
#include <random>
#include <vector>

#include "mail_warp.hpp"
#include "support/catch.hpp"
#include "support/rounds.hpp"

namespace {

using namespace gyre;
using namespace gyre_test;

// Answers twice the second number; fails where the first is 1.
struct Doubler {
  void on(Context& ctx, Letter::Reader in, Letter::Builder out) {
    if (in[0] == 1) ctx.fail(uint32_t(in[1]));
    out.fields.set<uint64_t>(1, in[1] * 2);
  }
};

// Asks in[0] doublers at once, number i for in[1] + i; answers the sum of their answers and of their failures
// once all have come. If in[0] is `forwards`, doubler in[1] answers; if it is `fails`, it asks and fails.
struct Asker {
  static constexpr uint64_t forwards = 100, fails = 101, most = 64;  // a call asks no more
  static constexpr uint64_t failing = 7;  // a doubler is told to fail if its number is a multiple of it

  struct Number {
    uint64_t place;
  };
  using Awaits = gyre::Awaits<Number>;
  struct Open {
    Promise<Letter> promise;
    uint64_t left, sum;
  };
  Open open[16];

  void on(Asking<most>& ctx, Letter::Reader in, Letter::Builder) {
    if (in[0] == forwards) return ctx.forward(Address<Doubler>{in[1]}, in);
    const auto promise = ctx.later<Letter>();
    uint64_t place = 0;
    while (open[place].left != 0) ++place;
    ctx.sync();
    const uint64_t count = in[0] == fails ? 3 : in[0];
    if (ctx.rank() == 0 && in[0] != fails) open[place] = {promise, count, 0};
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t number = in[1] + i;
      ctx.ask<Letter>(
          Address<Doubler>{number % 4},
          [&](Letter::Builder letter) {
            letter.fields.set<uint64_t>(0, number % failing == 0);
            letter.fields.set<uint64_t>(1, number);
          },
          Number{place});
    }
    if (in[0] == fails && ctx.rank() == ctx.size() - 1) ctx.fail(5);
  }
  void on_reply(Asking<1>& ctx, Number number, Letter::Reader in) { add(ctx, open[number.place], in[1]); }
  void on_failure(Asking<1>& ctx, Number number, ErrorBody error) {
    add(ctx, open[number.place], error.detail);
  }

 private:
  static void add(Asking<1>& ctx, Open& one, uint64_t value) {
    ctx.sync();
    if (ctx.rank() == 0) {
      one.sum += value;
      --one.left;
    }
    ctx.sync();
    if (one.left != 0) return;
    ctx.answer(one.promise, [&](Letter::Builder letter) { letter.fields.set<uint64_t>(1, one.sum); });
  }
};

constexpr uint16_t asker = 0, doubler = 1;

uint64_t expected_of(uint64_t number) { return number % Asker::failing == 0 ? number : 2 * number; }

// The doublers of the other worker.
class AskingWarp : public MailWarp<Asker, Doubler> {
 public:
  using MailWarp::MailWarp;
  // Answers up to one ask of those that came, in any order.
  void answer_one(std::mt19937_64& random) {
    Envelope envelope;
    std::vector<uint64_t> body;
    while (take(envelope, body)) {
      REQUIRE(envelope.actor_type == doubler);
      REQUIRE(envelope.flags == envelope_flags::ask);
      waiting_.push_back({envelope.correlation, body[1], body[2]});
    }
    if (waiting_.empty()) return;
    std::swap(waiting_[random() % waiting_.size()], waiting_.back());
    const Waiting one = waiting_.back();
    waiting_.pop_back();
    if (one.fails == 1) return reply_error(one.id, uint32_t(one.number), random);
    reply(one.id, 2 * one.number, random);
  }
  bool has_waiting() const { return !waiting_.empty(); }

 private:
  struct Waiting {
    uint64_t id, fails, number;
  };
  std::vector<Waiting> waiting_;
};

}  // namespace

TEST_CASE(
    "a warp's actors ask those of both workers, and each ask of the host is answered once all have come") {
  const uint32_t slot_bytes = GENERATE(128, 512);
  AskingWarp worker({64, slot_bytes, 1});
  std::mt19937_64 random(81);
  struct Expected {
    uint64_t asks, sum;
  };
  std::map<uint64_t, Expected> expected;  // by correlation
  uint64_t asks = 0, open = 0;
  const auto take_answers = [&] {
    AskingWarp::Answer answer{};
    while (worker.try_take_answer(answer)) {
      REQUIRE(expected.count(answer.correlation) == 1);
      CHECK(answer.status == Status::ok);
      CHECK(answer.value == expected[answer.correlation].sum);
      open -= expected[answer.correlation].asks;
      expected.erase(answer.correlation);
    }
  };
  for (int round = 0; round < rounds(300); ++round) {
    const uint64_t count = round % 8 == 0 ? Asker::most : 1 + random() % 8, first = random() % 1000;
    // Key 0 is of this worker, which has no others. It has 256 open calls, one of them for each promise.
    while (expected.size() >= 12 || open + count > 240) {
      worker.answer_one(random);
      worker.let_run(5);
      take_answers();
    }
    worker.ask(asker, count, first);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; ++i) sum += expected_of(first + i);
    expected[worker.asked()] = {count, sum};
    asks += count;
    open += count;
    if (random() % 3 == 0) worker.answer_one(random);
    if (random() % 50 == 0) worker.let_run(6000);
    take_answers();
  }
  while (!expected.empty()) {
    worker.answer_one(random);
    worker.let_run(5);
    take_answers();
  }
  worker.let_run(6000);
  const WorkerLine& line = worker.line();
  CHECK(line.mail_refused == 0);
  CHECK(line.answered == uint64_t(rounds(300)));
  // The asks, the replies of this worker's doublers, and an answer a round.
  CHECK(line.mail_sent > asks + uint64_t(rounds(300)));
  CHECK(line.mail_sent < 2 * asks + uint64_t(rounds(300)));
}

TEST_CASE("a warp forwards the host's asks, and a handler that fails asks nobody") {
  AskingWarp worker({64, 512, 1});
  std::mt19937_64 random(82);
  for (int round = 0; round < rounds(200); ++round) {
    worker.ask(asker, Asker::fails, random() % 100);
    const AskingWarp::Answer failed = worker.take_answer();
    CHECK(failed.status == Status::handler_failed);
    CHECK(failed.detail == 5);
    const uint64_t key = random() % 4;
    worker.ask(asker, Asker::forwards, key);
    AskingWarp::Answer answer{};
    while (!worker.try_take_answer(answer)) {
      worker.answer_one(random);
      worker.let_run(1);
    }
    CHECK(answer.correlation == worker.asked());
    CHECK(answer.status == Status::ok);
    CHECK(answer.value == 2 * key);
  }
  CHECK_FALSE(worker.has_waiting());
}

TEST_CASE("a warp answers the asks of another worker's actors, each once and in their order") {
  AskingWarp worker({64, 512, 1});
  std::mt19937_64 random(83);
  uint64_t sent = 0, got = 0;
  const auto take_replies = [&] {
    AskingWarp::Answer answer{};
    while (worker.take_reply(answer)) {
      CHECK(answer.correlation == (uint64_t(1) << 48 | (got + 1)));
      CHECK(answer.status == Status::ok);
      CHECK(answer.value == 2 * got);
      ++got;
    }
  };
  while (sent < uint64_t(rounds(600))) {
    if (sent - got < 200 && worker.tell(doubler, 2, sent, uint32_t(random() % 10), random,
                                        uint64_t(1) << 48 | (sent + 1), envelope_flags::ask)) {
      ++sent;
    }
    worker.let_run(uint32_t(random() % 30));
    take_replies();
  }
  while (got < sent) {
    worker.let_run(5);
    take_replies();
  }
  worker.let_run(6000);
  CHECK(worker.line().mail_processed == sent);
  CHECK(worker.line().mail_sent == sent);
}
