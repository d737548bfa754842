// ask_many and tell_many: what each of a batch comes to, and what of it was sent where not all was.
#include <array>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

using ProbeFuture = Future<Reply<ProbeResponse>>;

// Request i: twice i, and one.
void ask_for(size_t i, ProbeRequest::Builder request) {
  request.setAction(Action::ANSWER);
  request.setArgument(i);
}

void check_answers(std::span<ProbeFuture> futures, size_t first = 0) {
  for (size_t i = 0; i < futures.size(); ++i) {
    const auto reply = futures[i].get();
    INFO(i);
    REQUIRE(reply);
    REQUIRE(reply.value()->getValue() == 2 * (first + i) + 1);
  }
}

}  // namespace

TEST_CASE("each request of a batch has its own answer, through rings smaller than the batch") {
  for (const uint32_t slots : {2u, 8u, 256u}) {
    Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .slots = slots});
    Client client = runtime.client();
    for (const size_t count : {size_t(0), size_t(1), size_t(16), size_t(17), size_t(300)}) {
      std::vector<ProbeFuture> futures(count);
      CHECK(client.ask_many<ProbeRequest>(probe, futures, ask_for) == count);
      check_answers(futures);
    }
    const Books books = runtime.terminate().books;
    CHECK(books.asks.accepted == 334);
    CHECK(books.asks.answered == 334);
    CHECK(books.balanced());
  }
}

TEST_CASE(
    "of a batch to several workers each message is whole, also around those that go through the arena") {
  for (const uint32_t slots : {4u, 64u}) {
    Runtime runtime =
        Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .workers = 3, .slots = slots});
    Client client = runtime.client();
    // Words of filler: of the smallest messages, of some that just fit a slot or do not, of large ones.
    const auto words_of = [](size_t i) { return uint32_t(i % 7 == 3 ? 5000 + i : i * 13 % 50); };
    for (size_t round = 0; round < 20; ++round) {
      std::vector<ProbeFuture> futures(40 + round);
      REQUIRE(client.ask_many<ProbeRequest>([](size_t i) { return Address<Probe>{i / 5 % 3}; }, futures,
                                            [&](size_t i, ProbeRequest::Builder request) {
                                              request.setAction(Action::ECHO);
                                              auto filler = request.initFiller(words_of(i));
                                              for (uint32_t k = 0; k < filler.size(); ++k)
                                                filler.set(k, i << 32 | k);
                                            }) == futures.size());
      for (size_t i = 0; i < futures.size(); ++i) {
        const auto reply = futures[i].get();
        INFO(i << " of round " << round << ", " << words_of(i) << " words");
        REQUIRE(reply);
        const auto filler = reply.value()->getFiller();
        REQUIRE(filler.size() == words_of(i));
        uint32_t wrong = 0;
        for (uint32_t k = 0; k < filler.size(); ++k) wrong += filler[k] != (i << 32 | k);
        REQUIRE(wrong == 0);
      }
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("a batch that finds room for some is exact about which") {
  Stepped s({.slots = 4});
  std::array<ProbeFuture, 7> futures;
  // Three replies may be owed of four slots. Nobody works: who waited in vain for room waited for replies,
  // too.
  REQUIRE(s.client->ask_many<ProbeRequest>(probe, futures, ask_for, {5ms, 0}) == 3);
  for (size_t i = 0; i < futures.size(); ++i) {
    const auto refused = futures[i].get();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().status == (i < 3 ? Status::timed_out : Status::ring_full));
    if (i >= 3) CHECK(refused.error().limit == 4);
  }
  s.work();
  REQUIRE(s.client->ask_many<ProbeRequest>(probe, std::span(futures).first(3), ask_for) == 3);
  CHECK_FALSE(futures[0].ready());
  s.work();
  check_answers(std::span(futures).first(3));
  const Books books = s.core->terminate(5s).books;
  CHECK(books.asks.accepted == 6);
  CHECK(books.asks.timed_out == 3);
  CHECK(books.asks.late_replies == 3);
  CHECK(books.asks.answered == 3);
  CHECK(books.balanced());
}

TEST_CASE("messages of a batch that do not fit a slot go through the arena, in their order") {
  Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .slots = 8});
  Client client = runtime.client();
  std::vector<ProbeFuture> futures(50);
  const auto words = [](size_t i) { return uint32_t(i % 3 == 0 ? 3000 + i : i % 7); };
  REQUIRE(client.ask_many<ProbeRequest>(probe, futures, [&](size_t i, ProbeRequest::Builder request) {
    request.setAction(Action::ECHO);
    auto filler = request.initFiller(words(i));
    for (uint32_t k = 0; k < filler.size(); ++k) filler.set(k, i * 10'000 + k);
  }) == futures.size());
  for (size_t i = 0; i < futures.size(); ++i) {
    const auto reply = futures[i].get();
    REQUIRE(reply);
    const auto filler = reply.value()->getFiller();
    REQUIRE(filler.size() == words(i));
    for (uint32_t k = 0; k < filler.size(); ++k) REQUIRE(filler[k] == i * 10'000 + k);
  }
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a batch may go to many actors, and so to many workers") {
  Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .workers = 3, .slots = 8});
  Client client = runtime.client();
  std::vector<ProbeFuture> futures(100);
  const auto key = [](size_t i) { return (i * i) % 41; };
  const auto to = [&](size_t i) { return Address<Probe>{key(i)}; };
  REQUIRE(client.ask_many<ProbeRequest>(to, futures, ask_for) == futures.size());
  for (size_t i = 0; i < futures.size(); ++i) {
    const auto reply = futures[i].get();
    REQUIRE(reply);
    CHECK(reply.value()->getValue() == 2 * i + 1);
    CHECK(reply.value()->getKey() == key(i));
  }
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("actors known by name take batches too, and unknown ones refuse all of it") {
  Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu});
  Client client = runtime.client();
  std::vector<ProbeFuture> futures(20);
  CHECK(client.ask_many<ProbeRequest, ProbeResponse>(NamedAddress{"gyre_test::Probe", 5}, futures, ask_for) ==
        20);
  check_answers(futures);
  CHECK(client.ask_many<ProbeRequest, ProbeResponse>(NamedAddress{"gyre_test::Nobody"}, futures, ask_for) ==
        0);
  for (auto& future : futures) CHECK(future.get().error().status == Status::unknown_actor);
  const auto note = [](size_t i, ProbeNote::Builder n) { n.setValue(i); };
  CHECK(client.tell_many<ProbeNote>(NamedAddress{"gyre_test::Probe", 5}, 3, note).sent == 3);
  const TellManyResult refused = client.tell_many<ProbeNote>(NamedAddress{"gyre_test::Nobody"}, 3, note);
  CHECK_FALSE(refused);
  CHECK(refused.sent == 0);
  CHECK(refused.failure.status == Status::unknown_actor);
}

TEST_CASE("what a batch's fill function throws passes through; what was sent before stays sent") {
  Stepped s({.slots = 64});
  std::array<ProbeFuture, 40> futures;
  const auto throwing = [](size_t i, ProbeRequest::Builder request) {
    request.setArgument(i);
    if (i == 20) throw std::string("changed my mind");
  };
  CHECK_THROWS_AS(s.client->ask_many<ProbeRequest>(probe, futures, throwing), std::string);
  s.work();
  check_answers(std::span(futures).first(16));
  for (size_t i = 16; i < futures.size(); ++i) CHECK(futures[i].get().error().status == Status::terminated);
  std::array<ProbeFuture, 3> again;
  CHECK(s.client->ask_many<ProbeRequest>(probe, again, [](size_t, ProbeRequest::Builder) {}) == 3);
  s.work();
  for (auto& future : again) CHECK(future.get().value()->getValue() == 1);  // nothing of the others is left
  const Books books = s.core->terminate(5s).books;
  CHECK(books.asks.accepted == 19);
  CHECK(books.balanced());
}

TEST_CASE("a fill function of a batch that sends is refused by name") {
  Stepped s;
  std::array<ProbeFuture, 1> inner;
  auto outer = s.client->ask<ProbeRequest>(probe, [&](ProbeRequest::Builder) {
    CHECK(s.client->ask_many<ProbeRequest>(probe, inner, ask_for) == 0);
  });
  CHECK(inner[0].get().error().status == Status::nested_fill);
  std::array<ProbeFuture, 2> batch;
  Status status = Status::ok;
  CHECK(s.client->ask_many<ProbeRequest>(probe, batch, [&](size_t i, ProbeRequest::Builder request) {
    ask_for(i, request);
    status = s.try_ask(1).error().status;
  }) == 2);
  CHECK(status == Status::nested_fill);
  s.work();
  check_answers(batch);
}

TEST_CASE("a message too large for anything ends a batch there: those before it are sent") {
  Stepped s({.slots = 64, .slot_bytes = 128, .arena_bytes = 4096});
  std::array<ProbeFuture, 30> futures;
  CHECK(s.client->ask_many<ProbeRequest>(probe, futures, [](size_t i, ProbeRequest::Builder request) {
    ask_for(i, request);
    if (i == 21) request.initFiller(10'000);
  }) == 21);
  s.work();
  check_answers(std::span(futures).first(21));
  for (size_t i = 21; i < futures.size(); ++i) CHECK(futures[i].get().error().status == Status::too_large);
}

TEST_CASE("tell_many sends all, or says how many and why not more") {
  Stepped s({.slots = 16, .timeout = 5ms});
  const auto note = [](size_t i, ProbeNote::Builder n) { n.setValue(i); };
  const TellManyResult all = s.client->tell_many<ProbeNote>(probe, 10, note);
  CHECK(all);
  CHECK(all.sent == 10);
  const TellManyResult some = s.client->tell_many<ProbeNote>(probe, 10, note);
  CHECK_FALSE(some);
  CHECK(some.sent == 6);
  CHECK(some.failure.status == Status::ring_full);
  s.work();
  auto sum = s.ask(Action::SUM_OF_NOTES, 0);
  s.work();
  CHECK(sum.get().value()->getValue() == 45 + 15);
  s.core->terminate(5s);
  CHECK(s.client->tell_many<ProbeNote>(probe, 2, note).failure.status == Status::terminated);
  std::array<ProbeFuture, 2> futures;
  CHECK(s.client->ask_many<ProbeRequest>(probe, futures, ask_for) == 0);
  for (auto& future : futures) CHECK(future.get().error().status == Status::terminated);
  const Books books = s.core->books();
  CHECK(books.tells.accepted == 16);
  CHECK(books.tells.processed == 16);
  CHECK(books.balanced());
}

TEST_CASE("a future of no ask is ready, and terminated") {
  ProbeFuture future;
  CHECK(future.ready());
  future.wait();
  CHECK(future.get().error().status == Status::terminated);
}

TEST_CASE("four threads send batches at once: every answer is the right one, and the books balance") {
  Runtime runtime =
      Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .workers = 2, .slots = 32, .timeout = 60s});
  std::vector<std::thread> threads;
  std::array<size_t, 4> wrong{};
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t, client = runtime.client()]() mutable {
      std::vector<ProbeFuture> futures(50);
      for (size_t round = 0; round < 40; ++round) {
        const size_t base = (t * 100 + round) * 1000;
        client.ask_many<ProbeRequest>([](size_t i) { return Address<Probe>{i / 5}; }, futures,
                                      [&](size_t i, ProbeRequest::Builder r) { ask_for(base + i, r); });
        for (size_t i = 0; i < futures.size(); ++i) {
          const auto reply = futures[i].get();
          if (!reply || reply.value()->getValue() != 2 * (base + i) + 1) ++wrong[t];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const size_t count : wrong) CHECK(count == 0);
  const Books books = runtime.terminate().books;
  CHECK(books.asks.answered == 4 * 40 * 50);
  CHECK(books.balanced());
}
