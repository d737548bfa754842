// Messages between actors that do not fit a slot, on either engine.
#include <gyre/gyre.hpp>
#include <gyre_bodies_actors_sources.hpp>
#include <support/actors/bodies.official.hpp>

#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "support/actors/bodies.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_bodies;

namespace {

ActorSet carriers() { return ActorSet::of<Sender, Store, Porter, Modest>(gyre_bodies_actors::sources); }
// On CUDA by one warp, which has paths of its own, and by several.
std::vector<uint32_t> carrier_blocks() {
  return engine_under_test == EngineKind::cuda ? std::vector<uint32_t>{32, 128} : std::vector<uint32_t>{32};
}
Options carrier_options(uint32_t block, uint32_t workers = 3) {
  return on_this_engine({.workers = workers,
                         .block = block,
                         .timeout = std::chrono::seconds(30),
                         .body_pool_bytes = uint64_t(8) << 20});
}

struct Ordered {
  How how = How::TELL;
  uint64_t to = 0;
  uint32_t stride = 0, count = 1, words = 200, more = 0;
  End end = End::WELL;
  uint64_t delay_ns = 0;
};
auto ordering(const Ordered& ordered) {
  return [=](Order::Builder order) {
    order.setHow(ordered.how);
    order.setTo(ordered.to);
    order.setStride(ordered.stride);
    order.setCount(ordered.count);
    order.setWords(ordered.words);
    order.setMore(ordered.more);
    order.setEnd(ordered.end);
    order.setDelayNs(ordered.delay_ns);
  };
}
struct StoreTally {
  uint64_t loads = 0, wrong = 0, words = 0;
};
StoreTally loads_of(Client& client, uint64_t store) {
  const auto reply = client.ask<Count>(Address<Store>{store}, [](Count::Builder) {}).get();
  REQUIRE(reply);
  return {reply.value()->getLoads(), reply.value()->getWrong(), reply.value()->getWords()};
}
// Asks until the store has had so many loads.
StoreTally await_loads(Client& client, uint64_t store, uint64_t loads) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  StoreTally tally = loads_of(client, store);
  while (tally.loads < loads && std::chrono::steady_clock::now() < end) tally = loads_of(client, store);
  CHECK(tally.loads == loads);
  CHECK(tally.wrong == 0);
  return tally;
}
MailStats mail_of_all(const Runtime& runtime) {
  MailStats mail;
  for (const WorkerStats& worker : runtime.stats().workers) {
    mail.bodies_taken += worker.mail.bodies_taken;
    mail.bodies_freed += worker.mail.bodies_freed;
    mail.bodies_refused += worker.mail.bodies_refused;
    mail.failed += worker.mail.failed;
  }
  return mail;
}
// Drains and terminates: every chunk that was taken was given back. Returns how many were taken.
uint64_t chunks_of_all(Runtime& runtime) {
  REQUIRE(runtime.drain(std::chrono::minutes(1)));
  CHECK(runtime.terminate().books.balanced());
  const MailStats mail = mail_of_all(runtime);
  CHECK(mail.bodies_taken == mail.bodies_freed);
  return mail.bodies_taken;
}
auto asking_sender(uint64_t store, uint64_t seed, uint32_t words, bool mirrors, bool fails = false,
                   bool tells = false) {
  return [=](Ask::Builder ask) {
    ask.setStore(store);
    ask.setSeed(seed);
    ask.setWords(words);
    ask.setMirrors(mirrors);
    ask.setFails(fails);
    ask.setTells(tells);
  };
}
// A load from the host, of sender 31.
auto loading(uint64_t number, uint32_t words) {
  return [=](Load::Builder load) {
    load.setSender(most_senders - 1);
    load.setNumber(number);
    auto list = load.initWords(words);
    auto flags = load.initFlags(words);
    auto text = load.initText(words);
    for (uint32_t i = 0; i < words; ++i) {
      list.set(i, element(most_senders - 1, number, i));
      flags.set(i, is_flag(number, i));
      if (i % 2 == 0) text[i] = char('a' + (number + i) % 26);
    }
  };
}
template <class Response>
uint32_t wrong_words(const Response& response, uint64_t seed) {
  uint32_t wrong = response.getSeed() == seed ? 0 : 1;
  const auto words = response.getWords();
  for (uint32_t i = 0; i < words.size(); ++i) wrong += words[i] == element(2, seed, i) ? 0 : 1;
  return wrong;
}

}  // namespace

TEST_CASE("messages between actors that do not fit a slot arrive once, whole, and in their order",
          "[gpu][unified][sending][bodies]") {
  for (const uint32_t block : carrier_blocks()) {
    Runtime runtime = Runtime::launch(carriers(), carrier_options(block));
    Client client = runtime.client();
    std::mt19937_64 random(91);
    constexpr uint64_t stores = 8;
    std::vector<uint64_t> loads(stores), words(stores);
    for (int round = 0; round < 200; ++round) {
      // Small ones, those just above and below a slot, and up to 16 KiB.
      const uint32_t size = uint32_t(random() % 4 == 0 ? random() % 60 : random() % 1500);
      const bool each = random() % 2 == 0;
      const Ordered ordered{.how = each ? How::TELL_EACH : How::TELL,
                            .to = random() % 2,
                            .stride = each ? 0 : uint32_t(random() % 2),
                            .count = uint32_t(random() % (Sender::most - 1)),
                            .words = size,
                            .more = uint32_t(random() % 20)};
      const auto reply = client.ask<Order>(Address<Sender>{random() % 5}, ordering(ordered)).get();
      REQUIRE(reply);
      for (uint32_t n = 0; n < ordered.count; ++n) {
        loads[ordered.to + n * ordered.stride] += 1;
        words[ordered.to + n * ordered.stride] += ordered.words + n * ordered.more;
      }
    }
    for (uint64_t store = 0; store < stores; ++store) {
      INFO("store " << store);
      CHECK(await_loads(client, store, loads[store]).words == words[store]);
    }
    CHECK(chunks_of_all(runtime) > 200);
  }
}

TEST_CASE("a handler that fails gives back the bodies that it has built, and sends none",
          "[gpu][unified][sending][bodies]") {
  for (const uint32_t block : carrier_blocks()) {
    Runtime runtime = Runtime::launch(carriers(), carrier_options(block, 2));
    Client client = runtime.client();
    uint64_t loads = 0;
    for (int round = 0; round < 20; ++round) {
      for (const End end :
           {End::FAIL_ALL, End::FAIL_IN_ONE_THREAD, End::SEND_TOO_LARGE, End::SEND_TOO_MANY}) {
        INFO("end " << int(end));
        const bool each = round % 2 == 0;
        const auto reply =
            client
                .ask<Order>(Address<Sender>{1}, ordering({.how = each ? How::TELL_EACH : How::TELL,
                                                          .to = uint64_t(round % 2),
                                                          .count = 4,
                                                          .words = 1000,
                                                          .more = 37,
                                                          .end = end}))
                .get();
        REQUIRE_FALSE(reply);
        CHECK(reply.error().status == (end == End::FAIL_ALL || end == End::FAIL_IN_ONE_THREAD
                                           ? Status::handler_failed
                                           : Status::check_failed));
      }
      // What failing handlers left would show in the gaps of these.
      REQUIRE(
          client.ask<Order>(Address<Sender>{1}, ordering({.to = 0, .stride = 1, .count = 2, .words = 1200}))
              .get());
      ++loads;
    }
    for (const uint64_t store : {0, 1}) CHECK(await_loads(client, store, loads).words == 1200 * loads);
    CHECK(chunks_of_all(runtime) > 20 * 4 * 4);
  }
}

TEST_CASE("a reply between actors that does not fit a slot reaches the asker, and the host by a promise",
          "[gpu][unified][sending][asking][bodies]") {
  for (const uint32_t block : carrier_blocks()) {
    Runtime runtime = Runtime::launch(carriers(), carrier_options(block));
    Client client = runtime.client();
    for (uint64_t seed = 1; seed < 60; ++seed) {
      for (const bool mirrors : {false, true}) {
        for (const bool tells : {false, true}) {
          const auto words = uint32_t(seed * 25);
          INFO("seed " << seed << ", mirrors " << mirrors << ", tells " << tells);
          const auto reply = client
                                 .ask<Ask>(Address<Sender>{seed % 7},
                                           asking_sender(seed % 5, seed, words, mirrors, false, tells),
                                           {.timeout = {}, .max_reply_bytes = 16'000})
                                 .get();
          REQUIRE(reply);
          CHECK(reply.value()->getStatus() == 0);
          CHECK(reply.value()->getCount() == words);
          CHECK(reply.value()->getWrong() == 0);
          CHECK(reply.value()->getWords().size() == (tells ? 0 : words));
          CHECK(wrong_words(*reply.value(), seed) == 0);
        }
        // The store's handler fails after it has built its response.
        const auto failed =
            client.ask<Ask>(Address<Sender>{seed % 7}, asking_sender(seed % 5, seed, 1000, mirrors, true))
                .get();
        REQUIRE(failed);
        CHECK(failed.value()->getStatus() == uint32_t(Status::handler_failed));
      }
    }
    // Larger than the store says its replies are: they have the whole chunk. Larger than that: refused.
    const auto more =
        client.ask<Ask>(Address<Sender>{1}, asking_sender(2, 5, 4000, false, false, true)).get();
    REQUIRE(more);
    CHECK(more.value()->getCount() == 4000);
    const auto too_much = client.ask<Ask>(Address<Sender>{1}, asking_sender(2, 5, 5000, false)).get();
    REQUIRE(too_much);
    CHECK(too_much.value()->getStatus() == uint32_t(Status::reply_too_large));
    // The host has made no room for so large an answer.
    const auto no_room = client.ask<Ask>(Address<Sender>{1}, asking_sender(2, 5, 1000, false)).get();
    REQUIRE_FALSE(no_room);
    CHECK(no_room.error().status == Status::reply_too_large);
    CHECK(chunks_of_all(runtime) > 200);
  }
}

TEST_CASE("a host's large message is forwarded with its body, and a large reply comes back",
          "[gpu][unified][sending][asking][bodies]") {
  for (const uint32_t block : carrier_blocks()) {
    Runtime runtime = Runtime::launch(carriers(), carrier_options(block));
    Client client = runtime.client();
    uint64_t number = 0, words = 0;
    for (const uint32_t size : {3u, 40u, 200u, 1500u}) {
      // By way of the porter of store 4, to stores 4 and 5, of two workers.
      for (int again = 0; again < 10; ++again, words += size) {
        REQUIRE(client.tell<Load>(Address<Porter>{4}, loading(number++, size)));
      }
      for (uint64_t seed = 1; seed < 10; ++seed) {
        const auto fill = [&](Mirror::Builder mirror) {
          mirror.setSeed(seed);
          auto list = mirror.initWords(size);
          for (uint32_t i = 0; i < size; ++i) list.set(i, element(1, seed, i));
        };
        const auto mirrored = client.ask<Mirror>(Address<Porter>{seed % 4}, fill).get();
        REQUIRE(mirrored);
        CHECK(mirrored.value()->getWords().size() == size);
        CHECK(wrong_words(*mirrored.value(), seed) == 0);
        const auto fetched = client
                                 .ask<Fetch>(Address<Porter>{seed % 4},
                                             [&](Fetch::Builder fetch) {
                                               fetch.setSeed(seed);
                                               fetch.setWords(size);
                                               fetch.initFiller(seed % 2 == 0 ? 300 : 0);
                                             },
                                             {.timeout = {}, .max_reply_bytes = 12'100})
                                 .get();
        REQUIRE(fetched);
        CHECK(fetched.value()->getWords().size() == size);
        CHECK(wrong_words(*fetched.value(), seed) == 0);
      }
      // The porter fails after it has forwarded.
      const auto failed =
          client.ask<Mirror>(Address<Porter>{1}, [&](Mirror::Builder mirror) { mirror.initWords(size); })
              .get();
      REQUIRE_FALSE(failed);
      CHECK(failed.error().status == Status::handler_failed);
    }
    for (const uint64_t store : {4, 5}) CHECK(await_loads(client, store, number).words == words);
    CHECK(chunks_of_all(runtime) > 60);
  }
}

TEST_CASE("timers send messages that do not fit a slot, and those that are cancelled leave none behind",
          "[gpu][unified][sending][timers][bodies]") {
  for (const uint32_t block : carrier_blocks()) {
    Runtime runtime = Runtime::launch(carriers(), carrier_options(block));
    Client client = runtime.client();
    const auto order = [&](uint64_t sender, const Ordered& ordered) {
      return bool(client.ask<Order>(Address<Sender>{sender}, ordering(ordered)).get());
    };
    uint64_t loads = 0;
    for (int round = 0; round < 10; ++round) {
      for (const uint64_t store : {1, 2}) {
        REQUIRE(order(
            1, {.how = How::TIMERS, .to = store, .count = 5, .words = 700, .more = 11, .delay_ns = 1000}));
      }
      loads += 5;
      REQUIRE(
          order(2, {.how = How::CANCELLED, .to = 3, .count = 4, .words = 900, .delay_ns = 60'000'000'000}));
      REQUIRE_FALSE(order(3, {.how = How::TIMERS, .to = 3, .count = 6, .words = 900, .end = End::FAIL_ALL}));
    }
    for (const uint64_t store : {1, 2}) await_loads(client, store, loads);
    // Again and again, until they are cancelled or their actor has stopped.
    REQUIRE(order(4, {.how = How::PERIODIC, .to = 4, .count = 3, .words = 800, .delay_ns = 200'000}));
    REQUIRE(order(5, {.how = How::PERIODIC, .to = 5, .count = 2, .words = 600, .delay_ns = 300'000}));
    for (const uint64_t store : {4, 5}) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      while (loads_of(client, store).loads < 20 && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
      CHECK(loads_of(client, store).loads >= 20);
      CHECK(loads_of(client, store).wrong == 0);
    }
    REQUIRE(order(4, {.how = How::CANCEL_ALL, .count = 0}));
    REQUIRE(client.stop(Address<Sender>{5}));
    // These are set when the runtime is drained, which cancels them.
    REQUIRE(order(6, {.how = How::TIMERS, .to = 6, .count = 4, .words = 900, .delay_ns = 3'600'000'000'000}));
    CHECK(chunks_of_all(runtime) > 20 * 5 + 40);
  }
}

TEST_CASE("without a pool of bodies a message must fit its slot, and the handler fails by name",
          "[gpu][unified][sending][bodies]") {
  for (const uint32_t block : carrier_blocks()) {
    Options options = carrier_options(block);
    options.body_pool_bytes = 0;
    Runtime runtime = Runtime::launch(carriers(), options);
    Client client = runtime.client();
    const auto reply = client.ask<Order>(Address<Sender>{1}, ordering({.to = 0, .words = 200})).get();
    REQUIRE_FALSE(reply);
    CHECK(reply.error().status == Status::check_failed);
    REQUIRE(client.ask<Order>(Address<Sender>{2}, ordering({.to = 0, .words = 20})).get());
    CHECK(await_loads(client, 0, 1).words == 20);
    const auto asked = client.ask<Ask>(Address<Sender>{1}, asking_sender(2, 5, 30, false, false, true)).get();
    REQUIRE(asked);
    CHECK(asked.value()->getCount() == 30);
    CHECK(chunks_of_all(runtime) == 0);
  }
}

TEST_CASE("a handler without gyre::LargeMessages fails by name where its message does not fit a slot",
          "[gpu][unified][sending][asking][bodies]") {
  for (const uint32_t block : carrier_blocks()) {
    for (const bool others_may : {false, true}) {
      INFO("others of its set may send large messages: " << others_may);
      const ActorSet modest = ActorSet::of<Modest, Store>(gyre_bodies_actors::sources);
      Runtime runtime = Runtime::launch(others_may ? carriers() : modest, carrier_options(block));
      Client client = runtime.client();
      const auto order = [&](uint32_t words) {
        return client.ask<Order>(Address<Modest>{1}, ordering({.to = 0, .words = words})).get();
      };
      const auto pass_on = [&](uint64_t number, uint32_t words) {
        return client.tell_with_receipt<Load>(Address<Modest>{4}, loading(number, words)).get();
      };
      for (int round = 0; round < 5; ++round) {
        REQUIRE(order(20));
        const auto told = order(200);
        REQUIRE_FALSE(told);
        CHECK(told.error().status == Status::check_failed);
        CHECK(told.error().message().find("device/sending.hpp") != std::string::npos);
        REQUIRE(pass_on(uint64_t(round), 10));
        const auto forwarded = pass_on(uint64_t(round), 200);
        REQUIRE_FALSE(forwarded);
        CHECK(forwarded.error().status == Status::check_failed);
        CHECK(forwarded.error().message().find("device/asking.hpp") != std::string::npos);
      }
      CHECK(await_loads(client, 0, 5).words == 5 * 20);
      CHECK(await_loads(client, 4, 5).words == 5 * 10);
      // Where no handler has the right, a response to an actor fits its slot, whatever the actor declares.
      const auto asked =
          client.ask<Ask>(Address<Modest>{2}, asking_sender(3, 5, 300, false, false, true)).get();
      REQUIRE(asked);
      CHECK(asked.value()->getCount() == (others_may ? 300 : 0));
      CHECK(asked.value()->getStatus() == uint32_t(others_may ? Status::ok : Status::reply_too_large));
      CHECK(chunks_of_all(runtime) == (others_may ? 1 : 0));
    }
  }
}
