// How long the first reply takes, from nothing. Not among the tests that run by default: gyre-gpu-tests
// "[launch-time]", in a process of its own; cold with an empty cache folder ($GYRE_CACHE_DIR), warm with the
// folder of the run before.
#include <fmt/format.h>
#include <gyre/runtime/builtin_actors.hpp>

#include <chrono>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using messages::VectorAddRequest;

TEST_CASE("from nothing to the first checked reply, and to the end", "[.][launch-time]") {
  const auto begin = std::chrono::steady_clock::now();
  Runtime runtime = Runtime::launch(builtin_actors(), {.engine = EngineKind::cuda});
  const auto reply = runtime.client()
                         .ask<VectorAddRequest>(Address<actors::VectorAdd>{},
                                                [](VectorAddRequest::Builder request) {
                                                  request.setA({1, 2, 3});
                                                  request.setB({10, 20, 30});
                                                })
                         .get();
  const double first_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  REQUIRE(reply);
  REQUIRE(reply.value()->getResult().size() == 3);
  CHECK(reply.value()->getResult()[2] == 33);
  const Termination report = runtime.terminate();
  CHECK(report.books.balanced());
  WARN(fmt::format("launch to first reply {:.1f} ms, {:.1f} of them compiling; terminated in {:.2f} ms",
                   first_ms, runtime.timings().compile_ms, report.terminate_ms));
}
