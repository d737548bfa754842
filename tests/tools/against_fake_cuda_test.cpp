// gyre validate --against with the CUDA engine on one side, on a driver in ordinary memory.
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre/runtime/gyre.hpp>

#include "against.hpp"
#include "support/catch.hpp"
#include "support/fake_driver.hpp"
#include "support/message_schemas.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre::tools;

namespace {

// Both runtimes, and messages for them.
struct Engines {
  gyre_test::FakeDriver fake{{builtin_actors()}};
  ActorSet actors = builtin_actors();
  MessageSchemas schemas{gyre_test::vector_add_request()};
  AgainstSettings settings;
  Runtime tested = Runtime::launch(
      actors,
      {.engine = EngineKind::cuda, .transport = TransportKind::pinned, .isolation = Isolation::in_process});
  Runtime reference = Runtime::launch(actors, {.engine = EngineKind::cpu});

  EngineComparison compare(uint64_t count) {
    settings.ignored = {"processingNs"};
    MessageSource source;
    source.request = "VectorAddRequest";
    source.count = count;
    return compare_engines(tested, reference, actors, make_messages(actors, schemas, source), schemas,
                           settings);
  }
};

}  // namespace

TEST_CASE("the CUDA engine and the CPU engine answer alike") {
  if (gyre_test::without_nvrtc()) return;
  Engines engines;
  const EngineComparison result = engines.compare(100);
  CHECK(result.messages == 100);
  CHECK(result.same == 100);
  CHECK(result.comparison.differences() == 0);
  CHECK(engines.tested.terminate().books.balanced());
}

TEST_CASE("a device fault is a difference, and ends the comparison") {
  if (gyre_test::without_nvrtc()) return;
  Engines engines;
  engines.fake.fault();
  const EngineComparison result = engines.compare(100);
  CHECK(result.messages == 1);
  CHECK(result.same == 0);
  REQUIRE(result.comparison.first());
  CHECK(result.comparison.first()->path == "the outcome");
  CHECK(result.comparison.first()->tested == "engine_failed");
  CHECK_FALSE(engines.tested.failure().empty());
}
