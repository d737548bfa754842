// A device fault while actors send to each other.
#include <gyre/gyre.hpp>
#include <gyre_relay_actors_sources.hpp>
#include <support/actors/relay.official.hpp>

#include <chrono>

#include "support/actors/relay.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_relay;

TEST_CASE("a trap while actors send to each other ends asks by name, and the books balance",
          "[gpu][sending]") {
  if (isolation_under_test != Isolation::process) return;  // the fault would end this process's use of CUDA
  for (const uint32_t block : {32, 128}) {
    Runtime runtime = Runtime::launch(ActorSet::of<Relay, Sink, Node, Trap>(gyre_relay_actors::sources),
                                      on_this_engine({.workers = 3, .block = block}));
    Client client = runtime.client();
    constexpr uint32_t nodes = 6;
    for (uint64_t node = 0; node < nodes; ++node) {  // goes round for ever
      REQUIRE(client.tell<Spread>(Address<Node>{node}, [&](Spread::Builder spread) {
        spread.setFrom(nodes);
        spread.setHops(0xffffffff);
        spread.setCopies(1);
        spread.setNodes(nodes);
        spread.setGraph(Graph::RING);
      }));
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    uint64_t visits = 0;
    while (visits < 1000 && std::chrono::steady_clock::now() < end) {
      const auto reply = client.ask<Count>(Address<Node>{2}, [](Count::Builder) {}).get();
      REQUIRE(reply);
      visits = reply.value()->getVisits();
      CHECK(reply.value()->getWrong() + reply.value()->getMissing() == 0);
    }
    CHECK(visits >= 1000);
    const auto trapped = client.ask<Count>(Address<Trap>{1}, [](Count::Builder) {}).get();
    REQUIRE_FALSE(trapped);
    CHECK(trapped.error().status == Status::engine_failed);
    CHECK(runtime.failure().find("CUDA_ERROR_LAUNCH_FAILED") != std::string::npos);
    CHECK(runtime.failure().find("gyre_relay::Trap") != std::string::npos);
    const Books books = runtime.terminate().books;
    CHECK(books.balanced());
    CHECK(books.asks.accepted == books.asks.answered + 1);
    // By the last counts that workers published, which they do when they have nothing to do.
    CHECK(books.mail.sent <= books.mail.processed + books.mail.failed + books.mail.refused + books.mail.lost);
  }
}
