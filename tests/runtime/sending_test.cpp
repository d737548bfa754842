// Actors that send to each other, on either engine.
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre_relay_actors_sources.hpp>
#include <support/actors/relay.official.hpp>

#include <chrono>
#include <random>
#include <vector>

#include "support/actors/relay.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_relay;

namespace {

ActorSet relays() { return ActorSet::of<Relay, Sink, Node>(gyre_relay_actors::sources); }

// On CUDA by one warp, which has paths of its own, and by several.
std::vector<uint32_t> relay_blocks() {
  return engine_under_test == EngineKind::cuda ? std::vector<uint32_t>{32, 128} : std::vector<uint32_t>{32};
}

auto bursting(uint64_t sink, uint32_t stride, uint32_t count, uint32_t filler, End end = End::WELL,
              bool each = false) {
  return [=](Burst::Builder burst) {
    burst.setSink(sink);
    burst.setStride(stride);
    burst.setCount(count);
    burst.setFiller(filler);
    burst.setEnd(end);
    burst.setEach(each);
  };
}

struct Tally {
  uint64_t notes = 0, wrong = 0, fillers = 0;
};
Tally count(Client& client, uint64_t sink) {
  const auto reply = client.ask<Count>(Address<Sink>{sink}, [](Count::Builder) {}).get();
  REQUIRE(reply);
  const auto counted = *reply.value();
  return {counted.getNotes(), counted.getWrong(), counted.getFillers()};
}
// Asks until the sink has had so many notes.
Tally await(Client& client, uint64_t sink, uint64_t notes) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  Tally tally = count(client, sink);
  while (tally.notes < notes && std::chrono::steady_clock::now() < end) tally = count(client, sink);
  CHECK(tally.notes == notes);
  CHECK(tally.wrong == 0);
  return tally;
}

}  // namespace

TEST_CASE("notes of many relays arrive at many sinks once, whole, and in the order of each pair",
          "[gpu][unified][sending]") {
  for (const uint32_t block : relay_blocks()) {
    Runtime runtime = Runtime::launch(relays(), on_this_engine({.workers = 3, .block = block}));
    Client client = runtime.client();
    std::mt19937_64 random(71);
    std::vector<uint64_t> notes(most_sinks), fillers(most_sinks);
    for (int round = 0; round < 300; ++round) {
      const uint64_t sink = random() % 4;
      // Sinks 0 to 11 of three workers: of the sender's too.
      const uint32_t stride = uint32_t(random() % 2), messages = uint32_t(random() % (Relay::most + 1));
      const uint32_t filler = random() % 4 == 0 ? uint32_t(random() % 36) : uint32_t(random() % 3);
      const auto reply =
          client
              .ask<Burst>(Address<Relay>{random() % 6},
                          bursting(sink, stride, messages, filler, End::WELL, random() % 2 == 0))
              .get();
      REQUIRE(reply);
      REQUIRE(reply.value()->getCount() == messages);
      for (uint32_t i = 0; i < messages; ++i) {
        notes[sink + i * stride] += 1;
        fillers[sink + i * stride] += filler;
      }
    }
    uint64_t all = 0;
    for (uint64_t sink = 0; sink < most_sinks; ++sink) {
      INFO("sink " << sink);
      all += notes[sink];
      CHECK(await(client, sink, notes[sink]).fillers == fillers[sink]);
    }
    CHECK(runtime.terminate().books.balanced());
    MailStats mail;
    for (const WorkerStats& worker : runtime.stats().workers) {
      mail.sent += worker.mail.sent;
      mail.processed += worker.mail.processed;
      mail.failed += worker.mail.failed;
      mail.refused += worker.mail.refused;
    }
    CHECK(mail.sent == all);
    CHECK(mail.processed == all);
    CHECK(mail.failed == 0);
    CHECK(mail.refused == 0);
  }
}

TEST_CASE("a handler that fails after it has sent sends nothing", "[gpu][unified][sending]") {
  for (const uint32_t block : relay_blocks()) {
    Runtime runtime = Runtime::launch(relays(), on_this_engine({.workers = 2, .block = block}));
    Client client = runtime.client();
    struct Failing {
      End end;
      Status status;
    };
    uint64_t notes = 0;
    for (const Failing& failing : {Failing{End::FAIL_ALL, Status::handler_failed},
                                   {End::FAIL_IN_ONE_THREAD, Status::handler_failed},
                                   {End::SEND_ONE_TOO_MANY, Status::check_failed},
                                   {End::SEND_TOO_LARGE, Status::check_failed},
                                   {End::SEND_TO_STRANGER, Status::unknown_actor}}) {
      INFO("end " << int(failing.end));
      for (const uint64_t sink : {0, 1}) {  // of the sender's worker, and of the other
        for (int again = 0; again < 3; ++again) {
          const auto reply =
              client.ask<Burst>(Address<Relay>{0}, bursting(sink, 0, 5, 20, failing.end, again == 1)).get();
          REQUIRE_FALSE(reply);
          CHECK(reply.error().status == failing.status);
          REQUIRE(client.ask<Burst>(Address<Relay>{0}, bursting(sink, 0, 1, 30)).get());
        }
      }
      notes += 3;
      for (const uint64_t sink : {0, 1}) CHECK(await(client, sink, notes).fillers == 30 * notes);
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("messages travel chains across workers and within one", "[gpu][unified][sending]") {
  for (const uint32_t block : relay_blocks()) {
    Runtime runtime = Runtime::launch(relays(), on_this_engine({.workers = 4, .block = block}));
    Client client = runtime.client();
    uint64_t number = 0;
    for (const uint32_t stride : {1u, 4u, 7u}) {
      for (const uint32_t hops : {0u, 1u, 100u}) {
        REQUIRE(client.tell<Hop>(Address<Relay>{number % most_relays}, [&](Hop::Builder hop) {
          hop.setSink(2);
          hop.setStride(stride);
          hop.setHops(hops);
          hop.setNumber(number);
        }));
        await(client, 2, ++number);
      }
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("drain() waits for messages between actors, and what is under way at the end is counted as lost",
          "[gpu][unified][sending]") {
  const auto hop = [](uint32_t stride, uint32_t hops) {
    return [=](Hop::Builder hop) {
      hop.setSink(2);
      hop.setStride(stride);
      hop.setHops(hops);
    };
  };
  for (const uint32_t block : relay_blocks()) {
    {
      Runtime runtime = Runtime::launch(relays(), on_this_engine({.workers = 3, .block = block}));
      for (const uint64_t relay : {0, 1, 2}) {
        REQUIRE(runtime.client().tell<Hop>(Address<Relay>{relay}, hop(1, 5000)));
      }
      REQUIRE(runtime.drain(std::chrono::minutes(1)));
      const Books books = runtime.terminate().books;
      CHECK(books.balanced());
      CHECK(books.mail.sent == 3 * 5001);
      CHECK(books.mail.processed == 3 * 5001);
      CHECK(books.mail.lost == 0);
    }
    Runtime runtime = Runtime::launch(relays(), on_this_engine({.workers = 3, .block = block}));
    // One message that never ends: in one mailbox or another, or in its worker's own queue.
    REQUIRE(runtime.client().tell<Hop>(Address<Relay>{0}, hop(1, 4'000'000'000)));
    const auto drained = runtime.drain(std::chrono::milliseconds(50));
    REQUIRE_FALSE(drained);
    CHECK(drained.error().status == Status::worker_stuck);
    const Books books = runtime.terminate().books;
    CHECK(books.balanced());
    CHECK(books.mail.sent == books.mail.processed + 1);
    CHECK(books.mail.lost == 1);
  }
}

TEST_CASE("actors that send more than they receive come to an end, on workers that run at once",
          "[gpu][unified][sending]") {
  constexpr uint32_t copies = 3, hops = 6, nodes = Node::most;
  uint64_t visits_of_each = 0, of_hop = 1;
  for (uint32_t hop = 0; hop <= hops; ++hop, of_hop *= copies) visits_of_each += of_hop;
  for (const uint32_t block : relay_blocks()) {
    for (const Graph graph : {Graph::RING, Graph::STAR, Graph::ALL_TO_ALL, Graph::RANDOM, Graph::ITSELF}) {
      INFO("graph " << int(graph));
      Runtime runtime = Runtime::launch(
          relays(), on_this_engine({.workers = 3, .block = block, .spill_bytes = uint64_t(64) << 20}));
      Client client = runtime.client();
      for (uint64_t node = 0; node < nodes; ++node) {
        REQUIRE(client.tell<Spread>(Address<Node>{node}, [&](Spread::Builder spread) {
          spread.setFrom(nodes);
          spread.setHops(hops);
          spread.setCopies(copies);
          spread.setNodes(nodes);
          spread.setGraph(graph);
        }));
      }
      const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      uint64_t visits = 0;
      while (visits < nodes * visits_of_each && std::chrono::steady_clock::now() < end) {
        visits = 0;
        for (uint64_t node = 0; node < nodes; ++node) {
          const auto reply = client.ask<Count>(Address<Node>{node}, [](Count::Builder) {}).get();
          REQUIRE(reply);
          visits += reply.value()->getVisits();
          CHECK(reply.value()->getWrong() + reply.value()->getMissing() == 0);
        }
      }
      CHECK(visits == nodes * visits_of_each);
      REQUIRE(runtime.drain(std::chrono::minutes(1)));
      const Books books = runtime.terminate().books;
      CHECK(books.balanced());
      CHECK(books.mail.sent == nodes * (visits_of_each - 1));
      CHECK(books.mail.processed == books.mail.sent);
    }
  }
}

TEST_CASE("more workers than messages between actors can name are refused with the numbers", "[sending]") {
  CHECK(relays().problems({.workers = 32'767}).empty());
  const std::string refused = relays().problems({.workers = 32'768});
  CHECK(refused.find("--workers 32768") != refused.npos);
  CHECK(refused.find("can name 32767 workers") != refused.npos);
  CHECK(ActorSet::of<Sink>(gyre_relay_actors::sources).problems({.workers = 65'535}).empty());
}
