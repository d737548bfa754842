// Actors that send to many, on either engine.
#include <gyre/gyre.hpp>
#include <gyre_crowd_actors_sources.hpp>
#include <support/actors/crowd.official.hpp>

#include <chrono>
#include <random>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "support/actors/crowd.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_crowd;
using namespace std::chrono_literals;

namespace {

ActorSet crowd_actors(bool asks) {
  return asks ? ActorSet::of<CallerThatAsks, Hearer, Other, Chatter>(gyre_crowd_actors::sources)
              : ActorSet::of<Caller, Hearer, Other, Chatter>(gyre_crowd_actors::sources);
}
// On CUDA by one warp, which has paths of its own, and by several.
std::vector<uint32_t> crowd_blocks() {
  return engine_under_test == EngineKind::cuda ? std::vector<uint32_t>{32, 128} : std::vector<uint32_t>{32};
}
Runtime launch_crowd(bool asks, uint32_t block = 32, uint32_t workers = 3) {
  return Runtime::launch(crowd_actors(asks), on_this_engine({.workers = workers, .block = block}));
}

struct Saying {
  uint32_t count = most_said;
  uint32_t kinds = broadcast;
  uint64_t seed = 0, hearers = 1, topics = 1;
  uint32_t filler = 0;
};
// Asks a caller to say something, and returns how many notes it has sent.
uint64_t say_to_crowd(Client& client, bool asks, uint64_t caller, const Saying& saying) {
  const auto fill = [&](Say::Builder say) {
    say.setCount(saying.count);
    say.setKinds(saying.kinds);
    say.setSeed(saying.seed);
    say.setHearers(saying.hearers);
    say.setTopics(saying.topics);
    say.setFiller(saying.filler);
  };
  const auto reply = asks ? client.ask<Say>(Address<CallerThatAsks>{caller}, fill).get()
                          : client.ask<Say>(Address<Caller>{caller}, fill).get();
  REQUIRE(reply);
  return reply.value()->getNext();
}
auto ask_to_listen(Client& client, uint64_t hearer, uint64_t topic, uint32_t count = 1) {
  return client
      .ask<Listen>(Address<Hearer>{hearer},
                   [&](Listen::Builder listen) {
                     listen.setTopic(topic);
                     listen.setCount(count);
                   })
      .get();
}

struct HeardByActor {
  uint64_t notes = 0, flashes = 0, sum = 0, unordered = 0, wrong = 0;
};
template <class Actor = Hearer>
HeardByActor heard_by_actor(Client& client, uint64_t key) {
  const auto reply = client.ask<HeardRequest>(Address<Actor>{key}, [](HeardRequest::Builder) {}).get();
  REQUIRE(reply);
  const auto heard = *reply.value();
  return {heard.getNotes(), heard.getFlashes(), heard.getSum(), heard.getUnordered(), heard.getWrong()};
}
// Until all mail has ended.
MailAccounts settled_mail(Runtime& runtime, uint64_t sent) {
  const auto end = std::chrono::steady_clock::now() + 1min;
  MailAccounts mail = runtime.books().mail;
  while ((mail.sent < sent || mail.under_way() != 0) && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
    mail = runtime.books().mail;
  }
  return mail;
}

}  // namespace

TEST_CASE("a broadcast reaches each of many actors once and whole", "[gpu][unified][fanout]") {
  for (const uint32_t block : crowd_blocks()) {
    INFO("block " << block);
    constexpr uint64_t hearers = 700, broadcasts = 3;
    Runtime runtime = launch_crowd(false, block);
    Client client = runtime.client();
    for (uint64_t key = 0; key < hearers; ++key) {
      REQUIRE(client.start(Address<Hearer>{key}));
      REQUIRE(client.start(Address<Other>{3 * key}));  // all of one worker
    }
    for (uint64_t n = 0; n < broadcasts; ++n) {
      say_to_crowd(client, false, n % 2, {.count = 1, .kinds = broadcast, .filler = 40});
      say_to_crowd(client, false, n % 2, {.count = 1, .kinds = to_others, .filler = 3});
    }
    const uint64_t sent = broadcasts * 2 * (3 + hearers);
    const MailAccounts mail = settled_mail(runtime, sent);
    CHECK(mail.sent == sent);
    CHECK(mail.processed == sent);
    for (uint64_t key = 0; key < hearers; ++key) {
      const HeardByActor one = heard_by_actor(client, key);
      CHECK(one.notes == broadcasts);
      CHECK(one.wrong == 0);
      CHECK(one.unordered == 0);
      CHECK(heard_by_actor<Other>(client, 3 * key).notes == broadcasts);
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("actors of any worker hear what is told, broadcast and published in the order of sending",
          "[gpu][unified][fanout]") {
  for (const uint32_t block : crowd_blocks()) {
    for (const bool asks : {false, true}) {
      INFO("block " << block << ", asks " << asks);
      constexpr uint64_t hearers = 10, topics = 3, rounds = 60;
      Runtime runtime = launch_crowd(asks, block);
      Client client = runtime.client();
      std::mt19937_64 random(5);
      std::set<uint64_t> subscribers[topics];
      for (uint64_t key = 0; key < hearers; ++key) {
        REQUIRE(client.start(Address<Hearer>{key}));
        for (uint64_t topic = 0; topic < topics; ++topic) {
          if (random() % 2 == 0) continue;
          REQUIRE(ask_to_listen(client, key, topic));
          subscribers[topic].insert(key);
        }
      }
      HeardByActor expected[hearers];
      uint64_t numbers[callers] = {}, deliveries = 0, copies = 0;
      for (uint64_t round = 0; round < rounds; ++round) {
        const uint64_t caller = round % callers;
        const Saying saying{.kinds = told | broadcast | published,
                            .seed = random(),
                            .hearers = hearers,
                            .topics = topics,
                            .filler = uint32_t(random() % 30)};
        for (uint32_t n = 0; n < most_said; ++n) {
          const Plan plan = Plan::of(saying.kinds, saying.seed, n, hearers, topics);
          copies += plan.kind == told ? 0 : 3;
          for (uint64_t key = 0; key < hearers; ++key) {
            if (!((plan.kind == told && plan.to == key) || plan.kind == broadcast ||
                  (plan.kind == published && subscribers[plan.to].count(key) != 0))) {
              continue;
            }
            ++expected[key].notes;
            ++deliveries;
            expected[key].sum += numbers[caller] + n;
          }
        }
        numbers[caller] = say_to_crowd(client, asks, caller, saying);
        CHECK(numbers[caller] == (round / callers + 1) * most_said);
      }
      const uint64_t sent = copies + deliveries + (asks ? 2 * rounds : 0);
      const MailAccounts mail = settled_mail(runtime, sent);
      CHECK(mail.sent == sent);
      CHECK(mail.processed == sent);
      for (uint64_t key = 0; key < hearers; ++key) {
        INFO("hearer " << key);
        const HeardByActor one = heard_by_actor(client, key);
        CHECK(one.notes == expected[key].notes);
        CHECK(one.sum == expected[key].sum);
        CHECK(one.unordered == 0);
        CHECK(one.wrong == 0);
      }
      REQUIRE(runtime.drain(1min));
      CHECK(runtime.terminate().books.balanced());
    }
  }
}

TEST_CASE("actors of workers that run at once broadcast what is broadcast to them, to the end",
          "[gpu][unified][fanout]") {
  for (const uint32_t block : crowd_blocks()) {
    for (const bool publishes : {false, true}) {
      INFO("block " << block << ", publishes " << publishes);
      constexpr uint64_t chatters = 9;
      constexpr uint32_t hops = 4, workers = 4;
      Runtime runtime = launch_crowd(false, block, workers);
      Client client = runtime.client();
      for (uint64_t key = 0; key < chatters; ++key) {
        REQUIRE(client.start(Address<Chatter>{key}));
        if (publishes) REQUIRE(client.ask<Listen>(Address<Chatter>{key}, [](Listen::Builder) {}).get());
      }
      REQUIRE(client.tell<Chat>(Address<Chatter>{0}, [&](Chat::Builder chat) {
        chat.setHops(hops);
        chat.setPublished(publishes);
      }));
      uint64_t heard = 0, expected = 1, sent = 0;
      for (uint64_t hop = 1, of_hop = chatters; hop <= hops; ++hop, of_hop *= chatters) {
        expected += of_hop;
        sent += of_hop + of_hop / chatters * workers;
      }
      const MailAccounts mail = settled_mail(runtime, sent);
      CHECK(mail.sent == sent);
      CHECK(mail.processed == sent);
      for (uint64_t key = 0; key < chatters; ++key) heard += heard_by_actor<Chatter>(client, key).notes;
      CHECK(heard == expected);
      REQUIRE(runtime.drain(1min));
      CHECK(runtime.terminate().books.balanced());
    }
  }
}

TEST_CASE("actors that stop are subscribed to nothing, and others take their places among the subscriptions",
          "[gpu][unified][fanout]") {
  for (const uint32_t block : crowd_blocks()) {
    INFO("block " << block);
    Runtime runtime = launch_crowd(false, block, 2);
    Client client = runtime.client();
    for (uint64_t topic = 0; topic < 1024; topic += 32) REQUIRE(ask_to_listen(client, 0, topic, 32));
    const auto too_many = ask_to_listen(client, 2, 0);
    REQUIRE_FALSE(too_many);
    CHECK(too_many.error().status == Status::subscriptions_full);
    CHECK(too_many.error().detail == 1024);
    REQUIRE(client.stop(Address<Hearer>{0}));
    for (uint64_t key = 2; key < 42; key += 2) REQUIRE(ask_to_listen(client, key, 0));
    say_to_crowd(client, false, 0, {.count = 1, .kinds = published});
    CHECK(settled_mail(runtime, 2 + 20).sent == 2 + 20);
    for (uint64_t key = 2; key < 42; key += 2) CHECK(heard_by_actor(client, key).notes == 1);
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("a drain waits for broadcasts that are under way", "[gpu][unified][fanout]") {
  for (const uint32_t block : crowd_blocks()) {
    INFO("block " << block);
    Runtime runtime = launch_crowd(false, block);
    Client client = runtime.client();
    for (uint64_t key = 0; key < 200; ++key) REQUIRE(client.start(Address<Hearer>{key}));
    for (uint64_t n = 0; n < 10; ++n) say_to_crowd(client, false, n % callers, {.kinds = broadcast});
    REQUIRE(runtime.drain(1min));
    const Books books = runtime.terminate().books;
    CHECK(books.balanced());
    CHECK(books.mail.lost == 0);
    CHECK(books.mail.processed == 10 * most_said * (3 + 200));
  }
}

TEST_CASE("a program and its handlers choose the same members of a pool", "[gpu][unified][fanout]") {
  Runtime runtime =
      Runtime::launch(ActorSet::of<Chooser>(gyre_crowd_actors::sources), on_this_engine({.workers = 1}));
  Client client = runtime.client();
  for (const uint32_t size : {1u, 2u, 3u, 64u, 1000u, ~0u}) {
    const Pool<Hearer> pool{100, size};
    const auto reply = client
                           .ask<Choose>(Address<Chooser>{0},
                                        [&](Choose::Builder choose) {
                                          choose.setFirst(pool.first_key);
                                          choose.setSize(size);
                                          choose.setValue(~uint64_t(0) - 9);
                                          choose.setCount(20);
                                        })
                           .get();
    REQUIRE(reply);
    const auto keys = reply.value()->getKeys();
    REQUIRE(keys.size() == 20);
    for (uint32_t i = 0; i < 20; ++i) {
      CHECK(keys[i] == pool.member(~uint64_t(0) - 9 + i).key);
      CHECK(keys[i] - 100 < size);
    }
    CHECK(reply.value()->getByName() == pool.member(pool_name, sizeof pool_name - 1).key);
  }
}

TEST_CASE("a pool's members are chosen evenly, and never change", "[fanout]") {
  constexpr Pool<Hearer> pool{1000, 64};
  static_assert(pool.at(3).key == 1003);
  std::vector<uint64_t> chosen(pool.size), chosen_by_name(pool.size);
  for (uint64_t n = 0; n < 64'000; ++n) {
    ++chosen[pool.member(n << 20).key - 1000];
    const std::string name = "customer " + std::to_string(n);
    ++chosen_by_name[pool.member(name.data(), name.size()).key - 1000];
  }
  // Of 1,000 each in the mean, with a standard deviation of 32.
  for (const std::vector<uint64_t>& counts : {chosen, chosen_by_name}) {
    for (const uint64_t count : counts) {
      CHECK(count > 800);
      CHECK(count < 1200);
    }
  }
  // Programs keep what they store by them.
  CHECK(pool.member(0).key == 1056);
  CHECK(pool.member(1).key == 1036);
  CHECK(pool.member(~uint64_t(0)).key == 1057);
  CHECK(pool.member("AAPL", 4).key == 1052);
}
