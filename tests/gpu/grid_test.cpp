// One worker that is the whole grid.
#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/counters.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_counters;
using namespace gyre_test;

TEST_CASE("a grid-scoped actor is run by every thread of every block", "[gpu]") {
  for (const uint32_t block : {32u, 256u}) {
    for (const uint32_t blocks : {1u, 7u, 132u}) {
      INFO(fmt::format("{} blocks of {}", blocks, block));
      Runtime runtime = Runtime::launch(counter_actors().grid_scoped(),
                                        {.engine = EngineKind::cuda, .block = block, .blocks = blocks});
      Client client = runtime.client();
      for (uint64_t n = 1; n <= 200; ++n) {
        const auto reply = client.ask<Add>(counter(n % 3), adding(1)).get();
        REQUIRE(reply);
        REQUIRE(reply.value()->getGroup() == block * blocks);
        REQUIRE(reply.value()->getValue() == (n % 3 == 1 ? 100 : 0) + (n + 2) / 3);
      }
      CHECK(runtime.terminate().books.balanced());
    }
  }
}

TEST_CASE("a grid-scoped set takes one block a multiprocessor, large messages, failures and a stop under way",
          "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors().grid_scoped(), {.engine = EngineKind::cuda, .block = 128});
  Client client = runtime.client();
  const auto large = client
                         .ask<ProbeRequest>(probe,
                                            [](ProbeRequest::Builder request) {
                                              request.setAction(Action::ECHO);
                                              auto filler = request.initFiller(200'000);
                                              for (uint32_t i = 0; i < 200'000; ++i) filler.set(i, 3 * i);
                                            })
                         .get();
  REQUIRE(large);
  for (uint32_t i = 0; i < 200'000; ++i) REQUIRE(large.value()->getFiller()[i] == 3 * i);
  CHECK(client.ask<ProbeRequest>(probe, asking(Action::FAIL, 9)).get().error().detail == 9);
  CHECK(client.ask<ProbeRequest>(probe, asking(Action::FAIL_ALONE, 8)).get().error().detail == 8);
  CHECK(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 4)).get().value()->getValue() == 9);
  auto endless =
      client.ask<ProbeRequest>(probe, asking(Action::WORK, 3'600'000'000'000), std::chrono::hours(1));
  const Termination report = runtime.terminate();
  CHECK_FALSE(report.worker_stuck);
  CHECK(report.books.balanced());
}

TEST_CASE("a grid-scoped set is one worker: more are refused by name", "[gpu]") {
  CHECK_THROWS_AS(Runtime::launch(counter_actors().grid_scoped(), {.engine = EngineKind::cuda, .workers = 2}),
                  BadOptions);
}
