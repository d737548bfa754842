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

ActorSet relays() { return ActorSet::of<Relay, Sink>(gyre_relay_actors::sources); }

// On CUDA by one warp, which has paths of its own, and by several.
std::vector<uint32_t> relay_blocks() {
  return engine_under_test == EngineKind::cuda ? std::vector<uint32_t>{32, 128} : std::vector<uint32_t>{32};
}

auto bursting(uint64_t sink, uint32_t stride, uint32_t count, uint32_t filler, End end = End::WELL) {
  return [=](Burst::Builder burst) {
    burst.setSink(sink);
    burst.setStride(stride);
    burst.setCount(count);
    burst.setFiller(filler);
    burst.setEnd(end);
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
          client.ask<Burst>(Address<Relay>{random() % 6}, bursting(sink, stride, messages, filler)).get();
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
              client.ask<Burst>(Address<Relay>{0}, bursting(sink, 0, 5, 20, failing.end)).get();
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
