// What a program reads of its actors without a message to them: states, keys and counts.
#include <gyre/device/builtin/echo.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre_relay_actors_sources.hpp>
#include <support/actors/relay.official.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "support/actors/relay.hpp"
#include "support/catch.hpp"
#include "support/counters.hpp"
#include "support/engine_under_test.hpp"
#include "support/type_counts.hpp"

using namespace gyre;

namespace {

using gyre_counters::adding;
using gyre_counters::Counter;
using gyre_counters::Guest;
using gyre_relay::Relay;
using gyre_relay::Sink;

Runtime launch_counters_to_read(Options options = {}) {
  return Runtime::launch(gyre_counters::counter_actors(), gyre_test::on_this_engine(options));
}
Runtime launch_relays_to_read(Options options = {}) {
  return Runtime::launch(ActorSet::of<Relay, Sink, gyre_relay::Node>(gyre_relay_actors::sources),
                         gyre_test::on_this_engine(options));
}
void add_to(Client& client, uint64_t key, uint64_t amount) {
  REQUIRE(client.ask<gyre_counters::Add>(Address<Counter>{key}, adding(amount)).get());
}
// To sinks 0 to 3.
auto short_burst(uint32_t count, uint32_t filler) {
  return [=](gyre_relay::Burst::Builder burst) {
    burst.setSink(0);
    burst.setStride(1);
    burst.setCount(count);
    burst.setFiller(filler);
  };
}
// All keys of a type, `most` a page.
std::vector<uint64_t> list_all(const Client& client, ActorName type, size_t most) {
  std::vector<uint64_t> keys;
  std::optional<ActorCursor> at = ActorCursor{};
  while (at) {
    const auto page = client.list_actors(type, *at, most);
    REQUIRE(page);
    REQUIRE(page.value().keys.size() <= most);
    keys.insert(keys.end(), page.value().keys.begin(), page.value().keys.end());
    at = page.value().next;
  }
  return keys;
}
using gyre_test::stats_of;

}  // namespace

TEST_CASE("an actor's state is read as its messages left it, typed and as bytes", "[gpu][read_state]") {
  Runtime runtime = launch_counters_to_read({.workers = 3});
  Client client = runtime.client();
  for (const uint64_t key : {uint64_t(0), uint64_t(7), uint64_t(8), ~uint64_t(0)}) {
    add_to(client, key, 5);
    REQUIRE(client.tell<gyre_counters::Increment>(Address<Counter>{key}, gyre_counters::incrementing(3)));
    const auto state = client.read_state(Address<Counter>{key});
    REQUIRE(state);
    CHECK(state.value().key == key);
    CHECK(state.value().started_at == (key % 2 == 1 ? 100 : 0));
    CHECK(state.value().value == state.value().started_at + 8);
    const auto bytes = client.read_state(NamedAddress{"gyre_counters::Counter", key});
    REQUIRE(bytes);
    REQUIRE(bytes.value().size() == sizeof(Counter));
    CHECK(std::memcmp(bytes.value().data(), &state.value(), sizeof(Counter)) == 0);
  }
  // The actor does not notice.
  add_to(client, 7, 1);
  CHECK(client.read_state(Address<Counter>{7}).value().value == 109);
  const Termination ended = runtime.terminate();
  CHECK(ended.books.balanced());
  CHECK(ended.books.asks.answered == 4 + 8 + 1 + 1);
}

TEST_CASE("reading creates no actor, and says what is not there", "[gpu][read_state]") {
  Runtime runtime = launch_counters_to_read({.workers = 2});
  Client client = runtime.client();
  const auto absent = client.read_state(Address<Counter>{4});
  REQUIRE_FALSE(absent);
  CHECK(absent.error().status == Status::no_such_actor);
  CHECK(absent.error().message().find("reading creates none") != std::string::npos);
  CHECK(client.count_actors("gyre_counters::Counter").value() == 0);
  CHECK(client.list_actors("gyre_counters::Counter").value().keys.empty());
  const auto stranger = client.read_state(NamedAddress{"gyre_counters::Stranger", 4});
  REQUIRE_FALSE(stranger);
  CHECK(stranger.error().status == Status::unknown_actor);

  add_to(client, 4, 1);
  REQUIRE(client.read_state(Address<Counter>{4}));
  REQUIRE(client.stop(Address<Counter>{4}));
  CHECK(client.read_state(Address<Counter>{4}).error().status == Status::no_such_actor);

  add_to(client, 4, 2);
  REQUIRE(runtime.deactivate());
  CHECK(client.read_state(Address<Counter>{4}).value().value == 2);
  REQUIRE(runtime.activate());
  REQUIRE(runtime.drain());
  CHECK(client.read_state(Address<Counter>{4}).error().status == Status::draining);
  CHECK(runtime.terminate().books.balanced());
  CHECK(client.read_state(Address<Counter>{4}).error().status == Status::terminated);
}

TEST_CASE("a type without state has nothing to read", "[gpu][read_state][actors]") {
  Runtime runtime = Runtime::launch(builtin_actors(), gyre_test::on_this_engine({.workers = 2}));
  const Client client = runtime.client();
  const auto state = client.read_state(Address<actors::Echo>{1});
  REQUIRE_FALSE(state);
  CHECK(state.error().status == Status::no_such_actor);
  CHECK(state.error().message().find("no state") != std::string::npos);
  CHECK(client.list_actors("gyre::actors::Echo").error().status == Status::no_such_actor);
  CHECK(client.count_actors("gyre::actors::Echo").error().status == Status::no_such_actor);
  CHECK_FALSE(stats_of(runtime.stats().actors(), "gyre::actors::Echo").has_state);
}

TEST_CASE("a state that messages change meanwhile is never read in the middle of one", "[gpu][read_state]") {
  Runtime runtime = launch_relays_to_read({.workers = 3});
  Client client = runtime.client();
  REQUIRE(client.ask<gyre_relay::Burst>(Address<Relay>{0}, short_burst(4, 0)).get());
  std::atomic<bool> stop{false};
  std::vector<std::thread> senders;
  for (uint64_t relay = 0; relay < 2; ++relay) {
    senders.emplace_back([&, relay] {
      while (!stop) {
        if (!client.ask<gyre_relay::Burst>(Address<Relay>{relay}, short_burst(4, 3)).get()) return;
      }
    });
  }
  uint64_t torn = 0, failed = 0, before = 0, fewer = 0;
  for (int n = 0; n < 300; ++n) {
    const auto sink = client.read_state(Address<Sink>{0});
    if (!sink) {
      failed += sink.error().status == Status::no_such_actor ? 0 : 1;
      continue;
    }
    // A handler writes one of the numbers, then their sum.
    uint64_t sum = 0;
    for (const uint64_t next : sink.value().next) sum += next;
    torn += sum == sink.value().notes ? 0 : 1;
    fewer += sink.value().notes < before ? 1 : 0;
    before = sink.value().notes;
  }
  stop = true;
  for (std::thread& sender : senders) sender.join();
  CHECK(torn == 0);
  CHECK(failed == 0);
  CHECK(fewer == 0);
  CHECK(before > 0);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a state that fits neither a slot nor the arena is refused with the numbers", "[gpu][read_state]") {
  Runtime runtime = launch_relays_to_read({.slot_bytes = 256, .arena_bytes = 0});
  Client client = runtime.client();
  const auto state = client.read_state(Address<Sink>{0});
  REQUIRE_FALSE(state);
  CHECK(state.error().status == Status::too_large);
  CHECK(state.error().asked == 16 + (sizeof(Sink) + 15) / 16 * 16);
  CHECK(state.error().limit == runtime.options().ring_shape().body_capacity());
}

TEST_CASE("a listing names each actor once, in pages of any size", "[gpu][actors]") {
  Runtime runtime = launch_counters_to_read({.workers = 3, .actors_per_worker = 2000});
  Client client = runtime.client();
  std::mt19937_64 random(29);
  std::set<uint64_t> keys{0, ~uint64_t(0)};
  while (keys.size() < 1200) keys.insert(random());
  keys.erase(1000003);
  for (const uint64_t key : keys)
    REQUIRE(client.tell<gyre_counters::Increment>(Address<Counter>{key}, gyre_counters::incrementing(1)));
  for (const size_t most : {size_t(1), size_t(7), size_t(1000), size_t(5000)}) {
    std::vector<uint64_t> listed = list_all(client, "gyre_counters::Counter", most);
    std::sort(listed.begin(), listed.end());
    CHECK(listed == std::vector<uint64_t>(keys.begin(), keys.end()));
  }
  CHECK(client.count_actors("gyre_counters::Counter").value() == keys.size());
  CHECK(client.count_actors("gyre_counters::Guest").value() == 0);
  CHECK(list_all(client, "gyre_counters::Guest", 10).empty());
  CHECK(client.list_actors("gyre_counters::Stranger").error().status == Status::unknown_actor);
  CHECK(client.list_actors("gyre_counters::Counter", ActorCursor{99, 0, 0}).value().keys.empty());
  CHECK(client.list_actors("gyre_counters::Counter", ActorCursor{0, 4'000'000'000, 0}).value().keys.size() >
        0);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("tables that are full, and slots that hold few of their places, are listed whole",
          "[gpu][actors]") {
  // An answer in a slot of 128 bytes holds three places; one for a long row of actors comes by the arena.
  Runtime runtime = launch_counters_to_read(
      {.workers = 1, .slot_bytes = 128, .arena_bytes = 8192, .actors_per_worker = 64});
  Client client = runtime.client();
  for (uint64_t key = 0; key < 64; ++key) add_to(client, key * key, 1);
  std::vector<uint64_t> listed = list_all(client, "gyre_counters::Counter", 10);
  std::sort(listed.begin(), listed.end());
  REQUIRE(listed.size() == 64);
  for (uint64_t key = 0; key < 64; ++key) CHECK(listed[key] == key * key);
}

TEST_CASE("an actor that stays is listed once, whatever is created and stopped between pages",
          "[gpu][actors]") {
  Runtime runtime = launch_counters_to_read({.workers = 2, .actors_per_worker = 400});
  Client client = runtime.client();
  std::mt19937_64 random(31);
  constexpr uint64_t staying = 300;  // keys below it stay
  for (uint64_t key = 0; key < staying; ++key) add_to(client, key, 1);
  std::vector<uint64_t> others;
  for (int round = 0; round < 3; ++round) {
    std::vector<uint64_t> times(staying);
    std::optional<ActorCursor> at = ActorCursor{};
    while (at) {
      const auto page = client.list_actors("gyre_counters::Counter", *at, 20);
      REQUIRE(page);
      for (const uint64_t key : page.value().keys) {
        if (key < staying) ++times[key];
      }
      at = page.value().next;
      // Others come and go, and those that stay move in their table.
      for (int n = 0; n < 40; ++n) {
        if (others.size() < 150 && random() % 2 == 0) {
          others.push_back(staying + 2 * (random() % 100'000));
          add_to(client, others.back(), 1);
        } else if (!others.empty()) {
          std::swap(others[random() % others.size()], others.back());
          (void)client.stop(Address<Counter>{others.back()});
          others.pop_back();
        }
      }
    }
    CHECK(times == std::vector<uint64_t>(staying, 1));
  }
}

TEST_CASE("the stats count actors by their type, those that are there and those that ever were",
          "[gpu][actors]") {
  Runtime runtime = launch_counters_to_read({.workers = 2});
  Client client = runtime.client();
  for (uint64_t key = 0; key < 20; ++key) add_to(client, key, 1);
  for (uint64_t key = 0; key < 5; ++key) REQUIRE(client.stop(Address<Counter>{key}));
  CHECK_FALSE(client.stop(Address<Counter>{0}));         // is gone already
  CHECK_FALSE(client.start(Address<Counter>{1000003}));  // fails to start
  REQUIRE(client.start(Address<Guest>{3}));
  CHECK(client.count_actors("gyre_counters::Counter").value() == 15);
  runtime.terminate();
  const std::vector<ActorStats> actors = runtime.stats().actors();
  const ActorStats& counters = stats_of(actors, "gyre_counters::Counter");
  CHECK(counters.has_state);
  CHECK(counters.living == 15);
  CHECK(counters.created == 21);
  CHECK(stats_of(actors, "gyre_counters::Guest").living == 1);
  CHECK(stats_of(actors, "gyre_counters::Orderly").created == 0);
  for (const WorkerStats& worker : runtime.stats().workers) CHECK(worker.actors.size() == actors.size());
}

TEST_CASE("the stats say which types sent messages and which handled them",
          "[gpu][unified][sending][actors]") {
  Runtime runtime = launch_relays_to_read({.workers = 3});
  Client client = runtime.client();
  uint64_t sent = 0;
  for (uint64_t n = 0; n < 60; ++n) {
    const auto count = uint32_t(n % 5);
    REQUIRE(client.ask<gyre_relay::Burst>(Address<Relay>{n % 4}, short_burst(count, 1)).get());
    sent += count;
  }
  REQUIRE(runtime.drain());
  const Stats stats = runtime.stats();  // exact after a drain
  const std::vector<ActorStats> actors = stats.actors();
  CHECK(stats_of(actors, "gyre_relay::Relay").mail_sent == sent);
  CHECK(stats_of(actors, "gyre_relay::Relay").mail_processed == 0);
  CHECK(stats_of(actors, "gyre_relay::Sink").mail_sent == 0);
  CHECK(stats_of(actors, "gyre_relay::Sink").mail_processed == sent);
  CHECK(stats_of(actors, "gyre_relay::Sink").living == 4);
  gyre_test::check_types_add_up(stats);
  CHECK(runtime.terminate().books.balanced());
}
