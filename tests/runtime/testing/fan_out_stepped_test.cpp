// Actors that send to many, step by step, in many orders.
#include <gyre/testing.hpp>
#include <gyre_crowd_actors_sources.hpp>
#include <support/actors/crowd.official.hpp>

#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/actors/crowd.hpp"
#include "support/catch.hpp"
#include "support/rounds.hpp"

using namespace gyre;
using namespace gyre_crowd;
using namespace std::chrono_literals;
using gyre::testing::Order;
using gyre::testing::SteppedRuntime;

namespace {

ActorSet crowd() { return ActorSet::of<Caller, Hearer, Other, Chatter, Herald>(gyre_crowd_actors::sources); }
ActorSet crowd_that_asks() {
  return ActorSet::of<CallerThatAsks, Hearer, Other, Chatter, Herald>(gyre_crowd_actors::sources);
}

struct ToSay {
  uint32_t count = 1;
  uint32_t kinds = broadcast;
  uint64_t seed = 0, hearers = 1, topics = 1;
  uint32_t filler = 0;
  Then then = Then::NOTHING;
  bool fails = false;
};

// What a hearer should have heard.
struct Expected {
  uint64_t notes = 0, flashes = 0, sum = 0;
};

// A runtime with hearers 0 to `hearers` - 1, which are there, and what they should hear.
struct Crowd {
  Crowd(bool callers_ask, uint32_t workers, uint64_t hearer_count, Order order, Options options = {})
      : asks(callers_ask),
        hearers(hearer_count),
        kit(callers_ask ? crowd_that_asks() : crowd(), with(options, workers), order),
        client(kit.client()),
        expected(hearer_count) {
    for (uint64_t key = 0; key < hearers; ++key) {
      REQUIRE(client.start(Address<Hearer>{key}));
      REQUIRE(client.start(Address<Other>{key}));
    }
  }
  static Options with(Options options, uint32_t workers) {
    options.workers = workers;
    return options;
  }

  template <class Fill>
  auto ask_caller(uint64_t caller, Fill&& fill) {
    return asks ? client.ask<Say>(Address<CallerThatAsks>{caller}, fill)
                : client.ask<Say>(Address<Caller>{caller}, fill);
  }
  auto say(uint64_t caller, const ToSay& said) {
    return ask_caller(caller, [&](Say::Builder say) {
      say.setCount(said.count);
      say.setKinds(said.kinds);
      say.setSeed(said.seed);
      say.setHearers(said.hearers);
      say.setTopics(said.topics);
      say.setFiller(said.filler);
      say.setThen(said.then);
      say.setFails(said.fails);
    });
  }
  // say(), and notes who is to hear it: subscribers are those of now, so only where nothing is under way that
  // changes them.
  auto say_and_expect(uint64_t caller, const ToSay& said) {
    for (uint32_t n = 0; n < said.count; ++n) {
      const Plan plan = Plan::of(said.kinds, said.seed, n, said.hearers, said.topics);
      const uint64_t number = numbers[caller] + n;
      for (uint64_t key = 0; key < hearers; ++key) {
        const bool heard = (plan.kind == told && plan.to == key) || plan.kind == broadcast ||
                           (plan.kind == published && note_subscribers[plan.to].count(key) != 0) ||
                           (plan.kind == flashed && flash_subscribers[plan.to].count(key) != 0);
        if (!heard) continue;
        ++(plan.kind == flashed ? expected[key].flashes : expected[key].notes);
        expected[key].sum += number;
        ++deliveries;
      }
      if (plan.kind == to_others) deliveries += hearers;
      copies += plan.kind == told ? 0 : kit.workers();
    }
    numbers[caller] += said.count;
    return say(caller, said);
  }
  auto listen(uint64_t hearer, uint64_t topic, bool ends = false, bool flashes = false, uint32_t count = 1,
              bool fails = false, bool twice = false) {
    return client.ask<Listen>(Address<Hearer>{hearer}, [&](Listen::Builder listen) {
      listen.setTopic(topic);
      listen.setCount(count);
      listen.setEnds(ends);
      listen.setFlashes(flashes);
      listen.setFails(fails);
      listen.setTwice(twice);
    });
  }
  void listen_now(uint64_t hearer, uint64_t topic, bool ends = false, bool flashes = false) {
    REQUIRE(listen(hearer, topic, ends, flashes).get());
    auto& subscribers = (flashes ? flash_subscribers : note_subscribers)[topic];
    if (ends) {
      subscribers.erase(hearer);
    } else {
      subscribers.insert(hearer);
    }
  }
  template <class Actor = Hearer>
  Heard::Reader heard(uint64_t key) {
    auto reply = kit.get(client.ask<HeardRequest>(Address<Actor>{key}, [](HeardRequest::Builder) {}));
    REQUIRE(reply);
    replies.push_back(std::move(reply.value()));
    return *replies.back();
  }
  void check_hearers() {
    for (uint64_t key = 0; key < hearers; ++key) {
      INFO("hearer " << key);
      const Heard::Reader one = heard(key);
      CHECK(one.getNotes() == expected[key].notes);
      CHECK(one.getFlashes() == expected[key].flashes);
      CHECK(one.getSum() == expected[key].sum);
      CHECK(one.getUnordered() == 0);
      CHECK(one.getWrong() == 0);
    }
  }
  // Of a kit that is idle: all that was sent has ended.
  void check_books() {
    const Books books = kit.books();
    CHECK(books.balanced());
    CHECK(books.mail.under_way() == 0);
    CHECK(books.mail.refused == 0);
    CHECK(books.mail.failed == 0);
  }

  bool asks;
  uint64_t hearers;
  SteppedRuntime kit;
  Client client;
  std::vector<Expected> expected;
  std::map<uint64_t, std::set<uint64_t>> note_subscribers, flash_subscribers;
  std::array<uint64_t, callers> numbers{};
  uint64_t deliveries = 0, copies = 0;
  std::vector<Reply<Heard>> replies;
};

}  // namespace

TEST_CASE("a broadcast reaches each actor of its type once, whatever the order of the workers", "[fanout]") {
  for (uint64_t seed = 0; seed < uint64_t(gyre_test::rounds(20)); ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    Crowd crowd(seed % 2 != 0, 1 + uint32_t(random() % 5), random() % 24, Order::random(seed));
    for (int n = 0; n < 12; ++n) {
      REQUIRE(crowd
                  .say_and_expect(random() % callers, {.count = 1 + uint32_t(random() % most_said),
                                                       .kinds = broadcast | to_others,
                                                       .seed = random(),
                                                       .filler = uint32_t(random() % 9)})
                  .get());
    }
    crowd.kit.run_until_idle();
    crowd.check_hearers();
    crowd.check_books();
    uint64_t others = 0;
    for (uint64_t key = 0; key < crowd.hearers; ++key) others += crowd.heard<Other>(key).getNotes();
    uint64_t notes = 0;
    for (const Expected& one : crowd.expected) notes += one.notes;
    CHECK(crowd.deliveries == notes + others);
  }
}

TEST_CASE("what one actor tells, broadcasts and publishes reaches another in the order of sending",
          "[fanout]") {
  for (uint64_t seed = 0; seed < uint64_t(gyre_test::rounds(20)); ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const uint64_t hearers = 1 + random() % 12;
    Crowd crowd(seed % 2 != 0, 1 + uint32_t(random() % 5), hearers, Order::random(seed), {.slots = 64});
    for (int change = 0; change < 3; ++change) {
      for (int n = 0; n < 8; ++n)
        crowd.listen_now(random() % hearers, random() % 3, random() % 3 == 0, random() % 2 == 0);
      std::vector<Future<Reply<Said>>> under_way;
      for (int n = 0; n < 20; ++n) {
        under_way.push_back(crowd.say_and_expect(random() % callers,
                                                 {.count = 1 + uint32_t(random() % most_said),
                                                  .kinds = told | broadcast | published | flashed | to_others,
                                                  .seed = random(),
                                                  .hearers = hearers,
                                                  .topics = 4,
                                                  .filler = uint32_t(random() % 40)}));
      }
      for (auto& one : under_way) REQUIRE(one.get());
      crowd.kit.run_until_idle();
    }
    crowd.check_hearers();
    crowd.check_books();
    const Books books = crowd.kit.books();
    uint64_t replies = 0;
    if (crowd.asks) {
      for (uint64_t key = 0; key < callers; ++key) {
        replies += crowd.kit
                       .get(crowd.client.ask<HeardRequest>(Address<CallerThatAsks>{key},
                                                           [](HeardRequest::Builder) {}))
                       .value()
                       ->getReplies();
      }
      CHECK(replies == 60);
    }
    // A copy to each worker, each message to one actor, and each ask with its reply.
    CHECK(books.mail.sent == crowd.copies + crowd.deliveries + 2 * replies);
  }
}

TEST_CASE(
    "copies that find no slot wait in order, and a worker without room for more handles nothing that sends",
    "[fanout]") {
  for (uint64_t seed = 0; seed < uint64_t(gyre_test::rounds(8)); ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const uint64_t hearers = 9;
    Crowd crowd(seed % 2 != 0, 3, hearers, Order::random(seed), {.slots = 256});
    for (uint64_t key = 0; key < hearers; ++key) crowd.listen_now(key, 0);
    crowd.kit.hold(1);
    std::vector<Future<Reply<Said>>> under_way;
    for (int n = 0; n < 120; ++n) {
      under_way.push_back(crowd.say_and_expect(0, {.count = most_said,
                                                   .kinds = told | broadcast | published,
                                                   .seed = random(),
                                                   .hearers = hearers,
                                                   .filler = 3}));
    }
    crowd.kit.run_until_idle();
    const uint64_t handled = crowd.kit.books().asks.answered;
    CHECK(handled < 120);  // the outbox of worker 0 holds 256 messages, and asks come after that
    CHECK(handled >= 256 / most_said);
    CHECK(crowd.kit.stats().workers[0].mail.outbox_high_water > 256 - 32);  // a hearer may send 32
    crowd.kit.release(1);
    crowd.kit.run_until_idle();
    for (auto& one : under_way) REQUIRE(one.get());
    crowd.check_hearers();
    crowd.check_books();
  }
}

TEST_CASE("actors that broadcast what is broadcast to them come to an end, and nothing is lost", "[fanout]") {
  for (uint64_t seed = 0; seed < uint64_t(gyre_test::rounds(24)); ++seed) {
    const bool publishes = seed % 2 != 0;
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const uint32_t workers = 1 + uint32_t(random() % 6);
    SteppedRuntime kit(crowd(), {.workers = workers, .slots = 64}, Order::random(seed));
    Client client = kit.client();
    const uint64_t chatters = 2 + random() % 6;
    const uint32_t hops = chatters > 5 ? 3 : 4;
    for (uint64_t key = 0; key < chatters; ++key) {
      REQUIRE(client.start(Address<Chatter>{key}));
      if (publishes) REQUIRE(client.ask<Listen>(Address<Chatter>{key}, [](Listen::Builder) {}).get());
    }
    REQUIRE(client.tell<Chat>(Address<Chatter>{0}, [&](Chat::Builder chat) {
      chat.setHops(hops);
      chat.setPublished(publishes);
    }));
    kit.run_until_idle();
    uint64_t heard = 0, expected = 0, of_hop = 1, sent = 0;
    for (uint32_t hop = 0; hop <= hops; ++hop, of_hop *= chatters) {
      expected += of_hop;
      if (hop != 0) sent += of_hop + of_hop / chatters * workers;
    }
    for (uint64_t key = 0; key < chatters; ++key) {
      heard += kit.get(client.ask<HeardRequest>(Address<Chatter>{key}, [](HeardRequest::Builder) {}))
                   .value()
                   ->getNotes();
    }
    CHECK(heard == expected);
    const Books books = kit.books();
    CHECK(books.mail.sent == sent);
    CHECK(books.mail.processed == sent);
    CHECK(books.balanced());
  }
}

TEST_CASE("actors that are created meanwhile do not keep a broadcast from its end", "[fanout]") {
  for (uint64_t seed = 0; seed < uint64_t(gyre_test::rounds(10)); ++seed) {
    INFO("seed " << seed);
    SteppedRuntime kit(crowd(), {.workers = 2}, Order::random(seed));
    Client client = kit.client();
    for (uint64_t key = 0; key < 4; ++key) REQUIRE(client.start(Address<Chatter>{key}));
    REQUIRE(client.tell<Chat>(Address<Chatter>{0}, [](Chat::Builder chat) {
      chat.setHops(3);
      chat.setGrows(true);
    }));
    kit.run_until_idle();
    for (uint64_t key = 0; key < 4; ++key) {
      const auto reply =
          kit.get(client.ask<HeardRequest>(Address<Chatter>{key}, [](HeardRequest::Builder) {}));
      CHECK(reply.value()->getNotes() >= 21);
    }
    const Books books = kit.books();
    CHECK(books.mail.under_way() == 0);
    CHECK(books.mail.sent == books.mail.processed);
  }
}

TEST_CASE("actors that stop while a broadcast is handed out, and those that take their places, do no harm",
          "[fanout]") {
  for (uint64_t seed = 0; seed < uint64_t(gyre_test::rounds(12)); ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const uint64_t hearers = 30;
    Crowd crowd(false, 2, hearers, Order::random(seed), {.slots = 64, .actors_per_worker = 40});
    std::set<uint64_t> stay;
    for (uint64_t key = 0; key < hearers; ++key) stay.insert(key);
    for (int n = 0; n < 10; ++n) {
      auto said = crowd.say_and_expect(n % 2, {.count = 2, .kinds = broadcast, .filler = 2});
      for (int change = 0; change < 6; ++change) {
        for (uint64_t steps = random() % 8; steps != 0; --steps) crowd.kit.step();
        const uint64_t key = random() % 50;
        if (stay.size() > 12) stay.erase(key);
        if (stay.count(key) != 0) continue;
        // By a tell, without its outcome: the broadcast goes on meanwhile.
        if (random() % 2 == 0) {
          (void)crowd.client.stop(Address<Hearer>{key});
        } else {
          (void)crowd.client.start(Address<Hearer>{key});
        }
      }
      REQUIRE(said.get());
      crowd.kit.run_until_idle();
    }
    CHECK(stay.size() >= 12);
    for (const uint64_t key : stay) {
      if (key >= hearers) continue;
      INFO("hearer " << key);
      const Heard::Reader one = crowd.heard(key);
      CHECK(one.getNotes() == crowd.expected[key].notes);
      CHECK(one.getSum() == crowd.expected[key].sum);
      CHECK(one.getUnordered() == 0);
    }
    const Books books = crowd.kit.books();
    CHECK(books.mail.under_way() == 0);
    CHECK(books.mail.failed == 0);
  }
}

TEST_CASE("actors that a broadcast stops each get it once, and the next one reaches nobody", "[fanout]") {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    INFO("seed " << seed);
    Crowd crowd(seed % 2 != 0, 3, 20, Order::random(seed));
    for (uint64_t key = 0; key < 20; ++key) crowd.listen_now(key, 0);
    const uint64_t replies = crowd.asks ? 2 : 0;
    REQUIRE(crowd.say(0, {.then = Then::STOP}).get());
    crowd.kit.run_until_idle();
    CHECK(crowd.kit.books().mail.sent == 3 + 20 + 20 + replies);  // copies, notes, stops
    REQUIRE(crowd.say(1, {.count = 2, .kinds = broadcast}).get());
    crowd.kit.run_until_idle();
    REQUIRE(crowd.say(1, {.count = 1, .kinds = published}).get());
    crowd.kit.run_until_idle();
    CHECK(crowd.kit.books().mail.sent == 3 + 20 + 20 + 3 * 3 + 3 * replies);
    CHECK(crowd.kit.books().mail.under_way() == 0);
  }
}

TEST_CASE("a subscriber that leaves, or leaves and comes back, in a topic's message gets that message once",
          "[fanout]") {
  for (const Then then : {Then::LEAVE, Then::TURN}) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      INFO("seed " << seed);
      Crowd crowd(false, 2, 12, Order::random(seed));
      for (uint64_t key = 0; key < 12; ++key) crowd.listen_now(key, 0);
      for (int n = 0; n < 3; ++n) REQUIRE(crowd.say(0, {.kinds = published, .then = then}).get());
      crowd.kit.run_until_idle();
      for (uint64_t key = 0; key < 12; ++key)
        CHECK(crowd.heard(key).getNotes() == (then == Then::TURN ? 3 : 1));
      crowd.check_books();
    }
  }
}

TEST_CASE("topics of different messages differ, though their numbers are equal", "[fanout]") {
  Crowd crowd(false, 2, 4, Order::round_robin());
  crowd.listen_now(0, 7, false, false);
  crowd.listen_now(1, 7, false, true);
  crowd.listen_now(2, 7, false, false);
  crowd.listen_now(2, 7, false, true);
  REQUIRE(crowd.say_and_expect(0, {.kinds = published, .topics = 1}).get());  // topic 0: for nobody
  for (uint64_t seed = 0; seed < 40; ++seed)
    REQUIRE(crowd.say_and_expect(0, {.kinds = published | flashed, .seed = seed, .topics = 8}).get());
  crowd.kit.run_until_idle();
  crowd.check_hearers();
  CHECK(crowd.expected[0].notes != 0);
  CHECK(crowd.expected[1].flashes != 0);
  crowd.check_books();
}

TEST_CASE("a worker has room for 1,024 subscriptions, and a handler that wants more fails by name",
          "[fanout]") {
  Crowd crowd(false, 2, 5, Order::round_robin());
  for (uint64_t topic = 0; topic < 1024; topic += 32) REQUIRE(crowd.listen(0, topic, false, false, 32).get());
  const auto too_many = crowd.listen(2, 5).get();
  REQUIRE_FALSE(too_many);
  CHECK(too_many.error().status == Status::subscriptions_full);
  CHECK(too_many.error().detail == 1024);
  CHECK_FALSE(crowd.listen(0, 5).get());  // also of a topic that it has subscribed to
  REQUIRE(crowd.listen(1, 5).get());      // of the other worker
  REQUIRE(crowd.listen(0, 100, true).get());
  REQUIRE(crowd.listen(2, 0).get());
  CHECK_FALSE(crowd.listen(4, 0).get());
  REQUIRE(crowd.client.stop(Address<Hearer>{0}));
  for (uint64_t topic = 0; topic < 1023 - 31; topic += 31)
    REQUIRE(crowd.listen(4, topic, false, false, 31).get());
  // 2 listens to topic 0 still, and 4 to 0 and others.
  REQUIRE(crowd.say(0, {.kinds = published}).get());
  crowd.kit.run_until_idle();
  CHECK(crowd.heard(2).getNotes() == 1);
  CHECK(crowd.heard(4).getNotes() == 1);
  CHECK(crowd.heard(0).getNotes() == 0);
}

TEST_CASE(
    "subscribing twice is subscribing once, and a handler that fails changes no subscription and sends "
    "nothing",
    "[fanout]") {
  Crowd crowd(false, 2, 3, Order::round_robin());
  REQUIRE(crowd.listen(0, 0, false, false, 1, false, true).get());
  REQUIRE(crowd.listen(0, 0).get());
  CHECK_FALSE(crowd.listen(1, 0, false, false, 1, true).get());
  CHECK_FALSE(crowd.listen(0, 0, true, false, 1, true).get());
  REQUIRE(crowd.say(0, {.kinds = published}).get());
  const auto failed = crowd.say(0, {.count = 7, .kinds = told | broadcast | published, .fails = true}).get();
  REQUIRE_FALSE(failed);
  CHECK(failed.error().status == Status::handler_failed);
  crowd.kit.run_until_idle();
  CHECK(crowd.heard(0).getNotes() == 1);
  CHECK(crowd.heard(1).getNotes() == 0);
  CHECK(crowd.kit.books().mail.sent == 3);  // two copies and one note
  REQUIRE(crowd.listen(0, 0, true).get());
  REQUIRE(crowd.say(0, {.kinds = published}).get());
  crowd.kit.run_until_idle();
  CHECK(crowd.heard(0).getNotes() == 1);
  crowd.check_books();
}

TEST_CASE("an actor without state subscribes by its key, until it is stopped", "[fanout]") {
  Crowd crowd(false, 3, 1, Order::round_robin());
  const auto listen = [&](uint64_t herald, bool ends) {
    return crowd.client
        .ask<Listen>(Address<Herald>{herald}, [&](Listen::Builder listen) { listen.setEnds(ends); })
        .get();
  };
  for (uint64_t herald = 0; herald < 3; ++herald) REQUIRE(listen(herald, false));
  REQUIRE(crowd.say(0, {.kinds = flashed}).get());
  crowd.kit.run_until_idle();
  CHECK(crowd.heard(0).getFlashes() == 3);
  REQUIRE(crowd.client.stop(Address<Herald>{1}));
  REQUIRE(listen(2, true));
  REQUIRE(crowd.say(0, {.kinds = flashed}).get());
  crowd.kit.run_until_idle();
  CHECK(crowd.heard(0).getFlashes() == 4);
  crowd.check_books();
}

TEST_CASE("a drain waits for a broadcast that is under way", "[fanout]") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    Crowd crowd(seed % 2 != 0, 3, 30, Order::random(seed));
    auto said = crowd.say_and_expect(0, {.count = 5, .kinds = broadcast, .filler = 1});
    for (uint64_t steps = 0; steps < seed; ++steps) crowd.kit.step();
    REQUIRE(crowd.kit.runtime().drain(1h));
    REQUIRE(said.ready());
    const Books books = crowd.kit.runtime().terminate().books;
    CHECK(books.balanced());
    CHECK(books.mail.lost == 0);
    CHECK(books.mail.processed == crowd.copies + crowd.deliveries + (crowd.asks ? 2 : 0));
  }
}

TEST_CASE("what is not handed out when the runtime ends is counted as lost", "[fanout]") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    Crowd crowd(false, 3, 30, Order::random(seed));
    auto said = crowd.say_and_expect(0, {.count = 5, .kinds = broadcast});
    crowd.kit.run_until([&] { return said.ready(); });
    for (uint64_t steps = 0; steps < seed; ++steps) crowd.kit.step();
    const Books books = crowd.kit.runtime().terminate().books;
    CHECK(books.balanced());
    CHECK(books.mail.sent == books.mail.processed + books.mail.lost);
    CHECK(books.mail.lost >= 1);
    CHECK(books.mail.lost <= 15);  // copies
  }
}

TEST_CASE("without memory for them, copies are counted as refused", "[fanout]") {
  SteppedRuntime kit(crowd(), {.workers = 1, .slots = 64, .spill_bytes = 0});
  Client client = kit.client();
  for (uint64_t key = 0; key < 8; ++key) REQUIRE(client.start(Address<Chatter>{key}));
  REQUIRE(client.tell<Chat>(Address<Chatter>{0}, [](Chat::Builder chat) { chat.setHops(4); }));
  kit.run_until_idle();
  const Books books = kit.books();
  CHECK(books.mail.refused > 0);
  CHECK(books.mail.sent == books.mail.processed + books.mail.refused);
  CHECK(books.mail.under_way() == 0);
}

TEST_CASE("deactivated, a worker refuses a broadcast for each of its actors", "[fanout]") {
  Crowd crowd(false, 2, 8, Order::round_robin());
  auto said = crowd.say_and_expect(0, {.kinds = broadcast});
  crowd.kit.run_until([&] { return said.ready(); });
  REQUIRE(crowd.kit.runtime().deactivate(1h));
  crowd.kit.run_until_idle();
  Books books = crowd.kit.books();
  CHECK(books.mail.failed + books.mail.processed == 2 + 8);
  CHECK(books.mail.failed >= 4);
  REQUIRE(crowd.kit.runtime().activate(1h));
  REQUIRE(crowd.say(0, {.kinds = broadcast}).get());
  crowd.kit.run_until_idle();
  books = crowd.kit.books();
  CHECK(books.mail.failed + books.mail.processed == 2 * (2 + 8));
}

TEST_CASE("the host has its turn while a message is handed to many", "[fanout]") {
  Crowd crowd(false, 1, 200, Order::round_robin());
  REQUIRE(crowd.say_and_expect(0, {.kinds = broadcast}).get());
  // The broadcast is under way: 200 notes wait, and this ask comes after some of them.
  const auto report = crowd.client.ask<HeardRequest>(Address<Other>{0}, [](HeardRequest::Builder) {});
  uint64_t steps = 0;
  for (; !report.ready(); ++steps) REQUIRE(crowd.kit.step());
  CHECK(steps <= 2 * MailLimits::most_in_a_row);
  crowd.kit.run_until_idle();
  crowd.check_hearers();
}

TEST_CASE(
    "an actor that subscribes while a topic's message is handed out does not get that message, or again",
    "[fanout]") {
  constexpr uint64_t subscribers = 300;
  Crowd crowd(false, 1, subscribers + 1, Order::round_robin());
  for (uint64_t key = 0; key < subscribers; ++key) crowd.listen_now(key, 0);
  crowd.listen_now(250, 0, true);
  REQUIRE(crowd.say_and_expect(0, {.kinds = published}).get());
  while (crowd.kit.books().mail.sent < 1 + 3) REQUIRE(crowd.kit.step());
  // Hearer 0 has had it. The other one takes its place among the subscriptions, and it takes that of
  // hearer 250.
  REQUIRE(crowd.listen(0, 0, true).get());
  REQUIRE(crowd.listen(subscribers, 0).get());
  REQUIRE(crowd.listen(0, 0).get());
  CHECK(crowd.kit.books().mail.sent < subscribers);  // it is under way still
  crowd.kit.run_until_idle();
  crowd.check_hearers();
  CHECK(crowd.expected[0].notes == 1);
  CHECK(crowd.expected[subscribers].notes == 0);
  crowd.check_books();
}

TEST_CASE("an actor that was stopped and created again in another place gets a broadcast once", "[fanout]") {
  Crowd crowd(false, 1, 6, Order::round_robin());
  REQUIRE(crowd.client.stop(Address<Hearer>{2}));
  REQUIRE(crowd.client.stop(Address<Hearer>{4}));
  REQUIRE(crowd.client.start(Address<Hearer>{2}));  // in the place that was freed last
  REQUIRE(crowd.say(0, {.kinds = broadcast}).get());
  crowd.kit.run_until_idle();
  for (const uint64_t key : {0, 1, 2, 3, 5}) CHECK(crowd.heard(key).getNotes() == 1);
  CHECK(crowd.kit.books().mail.sent == 1 + 5);
  crowd.check_books();
}

TEST_CASE(
    "a worker without room to send goes on with a broadcast when it has room, and takes in mail meanwhile",
    "[fanout]") {
  constexpr uint64_t chatters = 260;  // of worker 0
  SteppedRuntime kit(crowd(), {.workers = 3, .slots = 64});
  Client client = kit.client();
  for (uint64_t n = 0; n < chatters; ++n) REQUIRE(client.start(Address<Chatter>{3 * n}));
  for (const uint64_t key : {1, 2}) REQUIRE(client.start(Address<Chatter>{key}));
  const auto chat = [&](uint64_t key, uint32_t hops) {
    REQUIRE(client.tell<Chat>(Address<Chatter>{key}, [&](Chat::Builder chat) { chat.setHops(hops); }));
  };
  const auto heard_by = [&](uint64_t key) {
    return kit.get(client.ask<HeardRequest>(Address<Chatter>{key}, [](HeardRequest::Builder) {}))
        .value()
        ->getNotes();
  };
  kit.hold(1);
  chat(0, 2);  // each of worker 0 passes it on, and worker 1 takes nothing
  kit.run_until_idle();
  const MailStats full = kit.stats().workers[0].mail;
  CHECK(full.outbox_high_water > 256 - 32);
  CHECK(full.outbox_high_water <= 256);
  for (int n = 0; n < 20; ++n) chat(2, 1);  // worker 0 has to take them in, in the middle of its broadcast
  kit.run_until_idle();
  CHECK(kit.stats().workers[0].mail.spilled > 0);
  kit.release(1);
  kit.run_until_idle();
  const uint64_t all = chatters + 2;
  uint64_t heard = 0;
  for (uint64_t n = 0; n < chatters; ++n) heard += heard_by(3 * n);
  heard += heard_by(1) + heard_by(2);
  CHECK(heard == 1 + all + all * all + 20 + 20 * all);
  const Books books = kit.books();
  CHECK(books.mail.sent == books.mail.processed);
  CHECK(books.mail.sent == 3 * (1 + all + 20) + all + all * all + 20 * all);
}
