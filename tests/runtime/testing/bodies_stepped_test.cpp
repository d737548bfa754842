// Messages between actors that do not fit a slot, step by step: what becomes of their bodies, however they
// end.
#include <gyre/testing.hpp>
#include <gyre_bodies_actors_sources.hpp>
#include <support/actors/bodies.official.hpp>

#include <map>
#include <random>
#include <vector>

#include "support/actors/bodies.hpp"
#include "support/catch.hpp"
#include "support/rounds.hpp"
#include "support/type_counts.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_bodies;

namespace {

constexpr uint32_t chunk_bytes = 4096;

ActorSet stepped_carriers() {
  return ActorSet::of<Sender, Store, Porter, Modest>(gyre_bodies_actors::sources);
}

// Of its handlers on_failure() alone may send large messages.
struct Complains {
  using Handles = gyre::Handles<view::Ask>;
  struct Asked {
    uint64_t seed;
  };
  using Awaits = gyre::Awaits<Asked>;
  void on(gyre::Asking<1>&, view::Ask::Reader, view::Answer::Builder) {}
  void on_reply(gyre::Context&, Asked, view::Fetched::Reader) {}
  void on_failure(gyre::Sending<1, gyre::LargeMessages>&, Asked, gyre::ErrorBody) {}
};
static_assert(rights_of<Complains>().sends_large && !rights_of<Modest>().sends_large &&
              !rights_of<Store>().sends_large);
static_assert(rights_of_any<Modest, Complains>().sends_large && !rights_of_any<Modest, Store>().sends_large);

// Workers with so many chunks for bodies.
struct Carriers {
  Carriers(uint32_t workers, uint64_t chunks, Options options = {},
           testing::Order order = testing::Order::round_robin())
      : runtime(stepped_carriers(), with(options, workers, chunks), order), client(runtime.client()) {}
  static Options with(Options options, uint32_t workers, uint64_t chunks) {
    options.workers = workers;
    options.slots = 512;
    options.timeout = std::chrono::hours(1);
    options.body_bytes = chunk_bytes;
    options.body_pool_bytes = chunks * chunk_bytes;
    return options;
  }

  struct What {
    How how = How::TELL;
    uint64_t to = 0;
    uint32_t stride = 0, count = 1, words = 100, more = 0;
    End end = End::WELL;
    uint64_t delay_ns = 0;
  };
  auto order(uint64_t sender, const What& what) {
    return client.ask<Order>(Address<Sender>{sender}, [&](Order::Builder order) {
      order.setHow(what.how);
      order.setTo(what.to);
      order.setStride(what.stride);
      order.setCount(what.count);
      order.setWords(what.words);
      order.setMore(what.more);
      order.setEnd(what.end);
      order.setDelayNs(what.delay_ns);
    });
  }
  // Until the sender has answered, without handling more than that takes.
  Status ordered(uint64_t sender, const What& what) {
    auto future = order(sender, what);
    while (!future.ready()) {
      if (!runtime.step(uint32_t(sender % runtime.workers()))) break;
    }
    REQUIRE(future.ready());
    const auto reply = future.get();
    return reply ? Status::ok : reply.error().status;
  }
  auto ask(uint64_t sender, uint64_t store, uint64_t seed, uint32_t words, bool mirrors, bool tells = true,
           bool twice = false) {
    return client.ask<Ask>(Address<Sender>{sender},
                           [&](Ask::Builder ask) {
                             ask.setStore(store);
                             ask.setSeed(seed);
                             ask.setWords(words);
                             ask.setMirrors(mirrors);
                             ask.setTells(tells);
                             ask.setTwice(twice);
                           },
                           {.timeout = {}, .max_reply_bytes = chunk_bytes});
  }
  // Asks a porter as the host.
  auto mirror(uint64_t porter, uint64_t seed, uint32_t words, std::chrono::nanoseconds timeout) {
    return client.ask<Mirror>(
        Address<Porter>{porter},
        [&](Mirror::Builder mirror) {
          mirror.setSeed(seed);
          auto list = mirror.initWords(words);
          for (uint32_t i = 0; i < words; ++i) list.set(i, element(1, seed, i));
        },
        timeout);
  }
  // Ends what is under way, and counts: no chunk is taken twice, or lost.
  uint64_t loads_at_the_end(uint64_t stores = 8) {
    runtime.run_until_idle();
    CHECK(in_use() == 0);
    uint64_t loads = 0;
    for (uint64_t store = 0; store < stores; ++store) {
      const auto reply = runtime.get(client.ask<Count>(Address<Store>{store}, [](Count::Builder) {}));
      REQUIRE(reply);
      CHECK(reply.value()->getWrong() == 0);
      loads += reply.value()->getLoads();
    }
    return loads;
  }
  MailStats mail() const {
    MailStats all;
    for (const WorkerStats& worker : runtime.stats().workers) {
      all.bodies_taken += worker.mail.bodies_taken;
      all.bodies_freed += worker.mail.bodies_freed;
      all.bodies_refused += worker.mail.bodies_refused;
      all.spilled += worker.mail.spilled;
    }
    return all;
  }
  uint64_t in_use() const { return mail().bodies_taken - mail().bodies_freed; }
  MailAccounts books() const { return runtime.books().mail; }

  testing::SteppedRuntime runtime;
  Client client;
};

}  // namespace

TEST_CASE("bodies have as many chunks as there are, and a message without one fails its handler by name") {
  const uint32_t workers = GENERATE(1u, 2u, 3u);
  constexpr uint64_t chunks = 7;
  Carriers carriers(workers, chunks);
  uint64_t loads = 0;
  for (int round = 0; round < 5; ++round) {
    // The store's worker is the last one; the senders' take chunks of all lists.
    const uint64_t store = workers - 1;
    for (uint64_t n = 0; n < chunks; ++n) {
      REQUIRE(carriers.ordered(n % 2 == 0 ? 0 : workers, {.to = store, .words = uint32_t(100 + n)}) ==
              Status::ok);
      CHECK(carriers.in_use() <= n + 1);
    }
    if (workers == 1) {  // it has handled some already
      loads += chunks;
      carriers.runtime.run_until_idle();
      continue;
    }
    CHECK(carriers.in_use() == chunks);
    auto refused = carriers.order(0, {.to = store});
    while (!refused.ready()) REQUIRE(carriers.runtime.step(0));
    const auto reply = refused.get();
    REQUIRE_FALSE(reply);
    CHECK(reply.error().status == Status::body_pool_full);
    CHECK(reply.error().detail == 0);  // the worker
    CHECK(reply.error().asked == store);
    CHECK(reply.error().message().find("--body-pool-bytes") != std::string::npos);
    // Of several messages the first ones found a chunk each, and are given back.
    CHECK(carriers.in_use() == chunks);
    CHECK(carriers.mail().bodies_refused == uint64_t(round + 1));
    // One that fits its slot needs none.
    REQUIRE(carriers.ordered(0, {.to = store, .words = 10}) == Status::ok);
    loads += chunks + 1;
    carriers.runtime.run_until_idle();
    CHECK(carriers.in_use() == 0);
  }
  CHECK(carriers.loads_at_the_end() == loads);
}

TEST_CASE("a handler that finds fewer chunks than it needs gives back those that it has taken") {
  Carriers carriers(2, 5);
  REQUIRE(carriers.ordered(0, {.to = 1, .count = 3}) == Status::ok);
  CHECK(carriers.in_use() == 3);
  CHECK(carriers.ordered(0, {.to = 3, .count = 3}) == Status::body_pool_full);
  CHECK(carriers.ordered(0, {.how = How::TELL_EACH, .to = 3, .count = 4}) == Status::body_pool_full);
  CHECK(carriers.ordered(0, {.how = How::TIMERS, .to = 3, .count = 4}) == Status::body_pool_full);
  CHECK(carriers.in_use() == 3);
  CHECK(carriers.ordered(0, {.to = 3, .count = 2}) == Status::ok);
  CHECK(carriers.in_use() == 5);
  CHECK(carriers.mail().bodies_refused == 1 + 2 + 2);
  CHECK(carriers.loads_at_the_end() == 5);
}

TEST_CASE("the bodies of messages that end without their handler are given back") {
  SECTION("their receiver has no room for its actor") {
    Carriers carriers(2, 8, {.actors_per_worker = 1});
    REQUIRE(carriers.ordered(0, {.to = 1, .stride = 2, .count = 3}) == Status::ok);
    carriers.runtime.run_until_idle();
    CHECK(carriers.books().failed == 2);
    CHECK(carriers.in_use() == 0);
  }
  SECTION("the runtime is deactivated") {
    Carriers carriers(2, 8);
    REQUIRE(carriers.ordered(0, {.to = 1, .count = 3}) == Status::ok);
    REQUIRE(carriers.runtime.runtime().deactivate());
    carriers.runtime.run_until_idle();
    CHECK(carriers.books().failed + carriers.books().processed == 3);
    CHECK(carriers.in_use() == 0);
  }
  SECTION("their deadline has passed") {
    Carriers carriers(2, 8);
    carriers.runtime.hold(1);
    auto late = carriers.mirror(1 - 1, 5, 300, std::chrono::seconds(1));  // forwarded to store 0, of worker 0
    auto forwarded = carriers.mirror(2, 6, 300, std::chrono::seconds(1));
    REQUIRE(carriers.runtime.step(0));  // one is forwarded
    CHECK(carriers.in_use() == 1);
    carriers.runtime.advance(std::chrono::seconds(5));
    CHECK_FALSE(carriers.runtime.get(late));
    CHECK_FALSE(carriers.runtime.get(forwarded));
    carriers.runtime.release(1);
    carriers.runtime.run_until_idle();
    CHECK(carriers.books().failed == 1);
    CHECK(carriers.in_use() == 0);
  }
  SECTION("there is no memory for them to wait in") {
    Carriers carriers(1, 400, {.spill_bytes = 0});
    // Each load to the porter becomes two.
    std::vector<Future<Reply<Done>>> orders;
    for (int n = 0; n < 8; ++n) {
      orders.push_back(carriers.order(0, {.how = How::TELL_PORTER, .to = 3, .count = Sender::most_sent}));
    }
    carriers.runtime.run_until_idle();
    for (auto& order : orders) REQUIRE(order.get());
    CHECK(carriers.books().refused > 0);
    CHECK(carriers.books().processed + carriers.books().refused == carriers.books().sent);
    CHECK(carriers.in_use() == 0);
  }
  SECTION("a held worker has no memory to move them to") {
    Carriers carriers(3, 800, {.spill_bytes = 0});
    carriers.runtime.hold(1);
    std::vector<Future<Reply<Done>>> orders;
    for (int n = 0; n < 40; ++n) orders.push_back(carriers.order(0, {.to = 1, .count = Sender::most}));
    for (int n = 0; n < 40; ++n) {
      orders.push_back(carriers.order(2, {.how = How::TELL_PORTER, .to = 3, .count = Sender::most}));
    }
    for (int n = 0; n < 4000; ++n) carriers.runtime.step(n % 2 == 0 ? 0 : 2);
    CHECK(carriers.books().refused > 0);
    CHECK(carriers.in_use() > 200);  // they wait for worker 1
    carriers.runtime.release(1);
    carriers.runtime.run_until_idle();
    for (auto& order : orders) REQUIRE(order.get());
    CHECK(carriers.in_use() == 0);
  }
}

TEST_CASE("messages that were moved out of a mailbox keep their bodies") {
  Carriers carriers(3, 1600);
  carriers.runtime.hold(1);
  std::vector<Future<Reply<Done>>> orders;
  for (int n = 0; n < 40; ++n) orders.push_back(carriers.order(0, {.to = 1, .count = Sender::most}));
  for (int n = 0; n < 40; ++n) {
    orders.push_back(carriers.order(2, {.how = How::TELL_PORTER, .to = 3, .count = Sender::most}));
  }
  carriers.runtime.run_until_idle();
  CHECK(carriers.mail().spilled > 0);
  carriers.runtime.release(1);
  carriers.runtime.run_until_idle();
  for (auto& order : orders) REQUIRE(order.get());
  CHECK(carriers.books().refused == 0);
  // The porter's go to two stores each.
  CHECK(carriers.loads_at_the_end() == 40 * Sender::most + 2 * 40 * Sender::most);
}

TEST_CASE("a second answer to a promise is dropped with its body") {
  Carriers carriers(2, 6);
  for (const uint64_t sender : {0, 1}) {
    const auto reply = carriers.runtime.get(carriers.ask(sender, 1, 7, 300, false, false, true));
    REQUIRE(reply);
    CHECK(reply.value()->getCount() == 300);
    CHECK(reply.value()->getWrong() == 0);
    carriers.runtime.run_until_idle();
  }
  CHECK(carriers.books().failed == 2);
  CHECK(carriers.in_use() == 0);
}

TEST_CASE("a reply to an actor that was stopped, and one that finds no chunk, leave no body behind") {
  Carriers carriers(2, 3);
  SECTION("the asker is stopped") {
    auto asked = carriers.ask(0, 1, 7, 300, true);
    REQUIRE(carriers.runtime.step(0));  // the ask is sent
    CHECK(carriers.in_use() == 1);
    carriers.runtime.hold(1);
    REQUIRE(carriers.client.stop(Address<Sender>{0}));
    carriers.runtime.release(1);
    carriers.runtime.run_until_idle();
    const auto reply = carriers.runtime.get(asked);
    REQUIRE_FALSE(reply);
    CHECK(reply.error().status == Status::actor_stopped);
    CHECK(carriers.books().failed == 1);
  }
  SECTION("no chunk is left for the response") {
    for (const bool mirrors : {true, false}) {
      auto asked = carriers.ask(0, 1, 7, mirrors ? 300 : 3, mirrors);
      REQUIRE(carriers.runtime.step(0));
      const uint32_t free = mirrors ? 2 : 3;
      REQUIRE(carriers.ordered(2, {.to = 5, .count = free}) == Status::ok);
      const auto reply = carriers.runtime.get(asked);
      REQUIRE(reply);
      CHECK(reply.value()->getStatus() == uint32_t(Status::body_pool_full));
      carriers.runtime.run_until_idle();
    }
    CHECK(carriers.mail().bodies_refused == 2);
  }
  SECTION("a periodic timer finds no chunk for one more message, and goes on") {
    REQUIRE(carriers.ordered(0, {.how = How::PERIODIC, .to = 1, .count = 1, .delay_ns = 1000}) == Status::ok);
    REQUIRE(carriers.ordered(2, {.to = 3, .count = 2}) == Status::ok);
    CHECK(carriers.in_use() == 3);
    carriers.runtime.advance(std::chrono::nanoseconds(1000));
    carriers.runtime.step(0);
    CHECK(carriers.books().refused == 1);
    carriers.runtime.run_until_idle();
    CHECK(carriers.in_use() == 1);
    for (int n = 0; n < 4; ++n) {
      carriers.runtime.advance(std::chrono::nanoseconds(1000));
      carriers.runtime.run_until_idle();
    }
    REQUIRE(carriers.ordered(0, {.how = How::CANCEL_ALL, .count = 0}) == Status::ok);
    CHECK(carriers.loads_at_the_end() == 2 + 4);
    const WorkerStats worker = carriers.runtime.stats().workers[0];
    CHECK(gyre_test::stats_of(worker.actors, "gyre_bodies::Sender").mail_sent == worker.mail.sent);
  }
  carriers.runtime.run_until_idle();
  CHECK(carriers.in_use() == 0);
}

TEST_CASE("a large message that its receiver may not forward ends there, with its body") {
  Carriers carriers(2, 6);
  REQUIRE(carriers.ordered(0, {.how = How::TELL_MODEST, .to = 1}) == Status::ok);
  CHECK(carriers.in_use() == 1);
  REQUIRE(carriers.ordered(0, {.how = How::TELL_MODEST, .to = 1, .words = 20}) == Status::ok);
  carriers.runtime.run_until_idle();
  CHECK(carriers.books().failed == 1);
  CHECK(carriers.loads_at_the_end() == 1);
}

TEST_CASE("an answer that does not fit a slot needs its handler's right, and fails it without") {
  Carriers carriers(2, 6);
  const auto ask = [&](uint32_t words, bool tells) {
    return carriers.client.ask<Ask>(Address<Modest>{0},
                                    [&](Ask::Builder ask) {
                                      ask.setStore(1);
                                      ask.setSeed(7);
                                      ask.setWords(words);
                                      ask.setTells(tells);
                                    },
                                    {.timeout = std::chrono::seconds(1), .max_reply_bytes = chunk_bytes});
  };
  // The reply that it gets needs no right of its own.
  auto told = ask(300, true);
  const auto count = carriers.runtime.get(told);
  REQUIRE(count);
  CHECK(count.value()->getCount() == 300);
  auto fits = ask(20, false);
  const auto few = carriers.runtime.get(fits);
  REQUIRE(few);
  CHECK(few.value()->getWords().size() == 20);
  CHECK(carriers.books().failed == 0);
  auto fails = ask(300, false);
  carriers.runtime.run_until_idle();
  carriers.runtime.advance(std::chrono::seconds(2));  // the promise stays open: the host's ask times out
  const auto none = carriers.runtime.get(fails);
  REQUIRE_FALSE(none);
  CHECK(none.error().status == Status::timed_out);
  CHECK(carriers.books().failed == 1);
  CHECK(carriers.in_use() == 0);
}

TEST_CASE("a large ask whose answer is promised leaves no body behind, also where its actor may send none") {
  Carriers carriers(2, 2);  // a chunk for the request, and one in case the response does not fit a slot
  for (const uint64_t modest : {2, 3}) {
    for (uint64_t seed = 1; seed < 8; ++seed) {
      auto asked = carriers.client.ask<Ask>(Address<Sender>{seed}, [&](Ask::Builder ask) {
        ask.setStore(modest);
        ask.setSeed(seed);
        ask.setWords(uint32_t(40 * seed));
        ask.setMirrors(true);
        ask.setModest(true);
      });
      const auto reply = carriers.runtime.get(asked);
      REQUIRE(reply);
      CHECK(reply.value()->getStatus() == 0);
      CHECK(reply.value()->getCount() == 40 * seed / Modest::shortens);
      CHECK(reply.value()->getWrong() == 0);
      carriers.runtime.run_until_idle();
      CHECK(carriers.in_use() == 0);
    }
  }
  CHECK(carriers.mail().bodies_taken != 0);
  CHECK(carriers.books().failed == 0);
}

TEST_CASE("a host's large asks are answered, and promised answers, where no handler sends large messages") {
  testing::SteppedRuntime runtime(
      ActorSet::of<Modest, Store>(gyre_bodies_actors::sources),
      {.workers = 2, .slots = 64, .timeout = std::chrono::hours(1), .arena_bytes = 16384});
  Client client = runtime.client();
  const auto mirror = [](uint64_t seed, uint32_t words) {
    return [=](Mirror::Builder mirror) {
      mirror.setSeed(seed);
      auto list = mirror.initWords(words);
      for (uint32_t i = 0; i < words; ++i) list.set(i, element(1, seed, i));
    };
  };
  const auto check = [](const auto& reply, uint64_t seed, uint32_t words) {
    REQUIRE(reply);
    CHECK(reply.value()->getSeed() == seed);
    const auto list = reply.value()->getWords();
    REQUIRE(list.size() == words);
    for (uint32_t i = 0; i < words; ++i) REQUIRE(list[i] == element(2, seed, i));
  };
  // Many times as many as the arena has room for: each block is free again.
  for (uint64_t seed = 1; seed < 40; ++seed) {
    const auto words = uint32_t(seed * 8);
    check(runtime.get(client.ask<Mirror>(Address<Modest>{seed % 4}, mirror(seed, words))), seed,
          words / Modest::shortens);
    check(runtime.get(client.ask<Mirror>(Address<Store>{seed % 4}, mirror(seed, words))), seed, words);
    check(runtime.get(client.ask<Fetch>(Address<Store>{seed % 4},
                                        [&](Fetch::Builder fetch) {
                                          fetch.setSeed(seed);
                                          fetch.setWords(words);
                                        },
                                        {.timeout = {}, .max_reply_bytes = 4096})),
          seed, words);
  }
  CHECK(runtime.books().mail.failed == 0);
}

TEST_CASE("a set without a handler that sends large messages reserves no pool for them") {
  const ActorSet with = stepped_carriers(),
                 without = ActorSet::of<Modest, Store>(gyre_bodies_actors::sources);
  CHECK(with.rights().sends_large);
  CHECK_FALSE(without.rights().sends_large);
  for (const uint32_t workers : {1u, 2u, 132u}) {
    Options none{.workers = workers}, some = none;
    none.body_pool_bytes = 0;
    some.body_pool_bytes = uint64_t(64) << 20;
    CHECK(without.mail_bytes(some) == without.mail_bytes(none));
    CHECK(with.mail_bytes(some) >= with.mail_bytes(none) + some.body_pool_bytes);
  }
}

TEST_CASE("bodies are given back once and arrive whole, in any order of steps and with few chunks") {
  for (int seed = 0; seed < rounds(4); ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(uint64_t(4000 + seed));
    const auto workers = uint32_t(1 + random() % 4);
    const bool has_memory = random() % 3 != 0;
    Carriers carriers(workers, 1 + random() % 20, {.spill_bytes = has_memory ? uint64_t(8) << 20 : 0},
                      testing::Order::random(uint64_t(seed)));
    std::vector<Future<Reply<Done>>> orders;
    std::vector<Future<Reply<Answer>>> asks;
    std::vector<Future<Reply<Mirrored>>> mirrors;
    const auto size = [&] { return uint32_t(random() % 3 == 0 ? random() % 40 : random() % 450); };
    uint64_t refused = 0, well = 0;
    for (int turn = 0; turn < 120; ++turn) {
      switch (random() % 8) {
        case 0:
        case 1:
        case 2: {
          const bool each = random() % 2 == 0;
          orders.push_back(carriers.order(random() % 4, {.how = each ? How::TELL_EACH : How::TELL,
                                                         .to = random() % 2,
                                                         .stride = each ? 0 : uint32_t(random() % 2),
                                                         .count = uint32_t(random() % 7),
                                                         .words = size(),
                                                         .end = End(random() % 7 < 5 ? 0 : random() % 5)}));
          break;
        }
        case 3:
          orders.push_back(carriers.order(8 + random() % 4, {.how = How(2 + random() % 4),
                                                             .to = 8,
                                                             .count = uint32_t(random() % 4),
                                                             .words = size(),
                                                             .end = End(random() % 3 == 0 ? 1 : 0),
                                                             .delay_ns = random() % 10'000}));
          break;
        case 4:
          orders.push_back(carriers.order(16 + random() % 4, {.how = How::TELL_PORTER,
                                                              .to = 10 + random() % 3,
                                                              .count = uint32_t(random() % 4),
                                                              .words = size()}));
          break;
        case 5:
          asks.push_back(carriers.ask(random() % 6, random() % 6, random() % 100 + 1, size(),
                                      random() % 2 == 0, random() % 2 == 0));
          break;
        case 6:
          mirrors.push_back(
              carriers.mirror(random() % 6, random() % 9, size(), std::chrono::milliseconds(50)));
          break;
        default:
          carriers.runtime.advance(std::chrono::microseconds(random() % 100));
          if (random() % 20 == 0) carriers.runtime.advance(std::chrono::milliseconds(40));
      }
      for (uint64_t steps = random() % 30; steps != 0; --steps) carriers.runtime.step();
    }
    for (uint64_t sender = 8; sender < 12; ++sender) (void)carriers.client.stop(Address<Sender>{sender});
    carriers.runtime.run_until_idle();
    // An answer that found no chunk leaves its promise open: that ask of the host ends by its timeout.
    carriers.runtime.advance(std::chrono::hours(2));
    carriers.runtime.run_until_idle();
    const auto count = [&](auto& futures, auto&& check) {
      for (auto& future : futures) {
        REQUIRE(future.ready());
        const auto reply = future.get();
        if (reply) check(*reply.value());
        ++(reply ? well : refused);
      }
    };
    count(orders, [](const auto&) {});
    count(asks, [](const auto& answer) {
      CHECK(answer.getWrong() == 0);
      const auto words = answer.getWords();
      for (uint32_t i = 0; i < words.size(); ++i) REQUIRE(words[i] == element(2, answer.getSeed(), i));
    });
    count(mirrors, [](const auto& mirrored) {
      const auto words = mirrored.getWords();
      for (uint32_t i = 0; i < words.size(); ++i) REQUIRE(words[i] == element(2, mirrored.getSeed(), i));
    });
    CHECK(well != 0);
    CHECK(carriers.in_use() == 0);
    // Where a message was refused for want of memory, later ones of its sender are out of turn at their
    // store.
    if (has_memory) {
      for (uint64_t store = 0; store < 8; ++store) {
        const auto reply =
            carriers.runtime.get(carriers.client.ask<Count>(Address<Store>{store}, [](Count::Builder) {}));
        REQUIRE(reply);
        CHECK(reply.value()->getWrong() == 0);
      }
    }
  }
}
