// What only a GPU can show.
#include <fmt/format.h>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/engine.hpp>

#include <deque>

#include "gpu/transport.hpp"
#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {
Options on_cuda(Options options = {}) {
  options.engine = EngineKind::cuda;
  return options;
}
bool echoes(Runtime& runtime) {
  const auto reply = runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 21)).get();
  return reply && reply.value()->getValue() == 43;
}
}  // namespace

TEST_CASE("auto chooses the GPU where there is one", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::automatic});
  CHECK(runtime.engine() == EngineKind::cuda);
  // BAR, or pinned and why; or what the whole run is to be over.
  const TransportKind best = runtime.transport_reason().empty() ? TransportKind::bar : TransportKind::pinned;
  CHECK(runtime.transport() == transport_of_environment().value_or(best));
  CHECK(runtime.timings().compile_ms > 0);
  CHECK(echoes(runtime));
}

TEST_CASE("blocks of one to thirty-two warps answer alike", "[gpu]") {
  for (const uint32_t block : {32u, 64u, 96u, 256u, 512u}) {
    Runtime runtime = Runtime::launch(probe_actors(), on_cuda({.block = block}));
    CHECK(echoes(runtime));
    const auto reply = runtime.client().ask<ProbeRequest>(probe, asking(Action::GROW, 40)).get();
    REQUIRE(reply);
    for (uint32_t i = 0; i < 40; ++i) REQUIRE(reply.value()->getFiller()[i] == i);
  }
}

TEST_CASE("a second launch beside live workers is refused by name, and the first goes on", "[gpu]") {
  Runtime first = Runtime::launch(probe_actors(), on_cuda());
  try {
    Runtime::launch(probe_actors(), on_cuda());
    FAIL("it launched");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("already has workers") != std::string::npos);
  }
  CHECK(echoes(first));
}

TEST_CASE("a grid that cannot be resident is refused with numbers, and the next launch works", "[gpu]") {
  try {
    Runtime::launch(probe_actors(), on_cuda({.workers = 60'000, .slots = 2}));
    FAIL("it launched");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("60000 blocks") != std::string::npos);
    CHECK(std::string(error.what()).find("a multiprocessor") != std::string::npos);
  }
  Runtime runtime = Runtime::launch(probe_actors(), on_cuda());
  CHECK(echoes(runtime));
}

TEST_CASE("a device that is not there is refused with the number of those that are", "[gpu]") {
  CHECK_THROWS_AS(Runtime::launch(probe_actors(), on_cuda({.device = 63})), EngineUnavailable);
}

TEST_CASE("ten launches, one after another, in one process", "[gpu]") {
  for (int i = 0; i < 10; ++i) {
    Runtime runtime = Runtime::launch(probe_actors(), on_cuda({.workers = 4}));
    CHECK(echoes(runtime));
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("a worker on every multiprocessor, each asked", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_cuda({.workers = 132}));
  Client client = runtime.client();
  for (uint64_t key = 0; key < 132; ++key) {
    const auto reply = client.ask<ProbeRequest>(Address<Probe>{key}, asking(Action::ANSWER, key)).get();
    REQUIRE(reply);
    CHECK(reply.value()->getValue() == 2 * key + 1);
    CHECK(reply.value()->getKey() == key);
  }
}

TEST_CASE("actors compiled from a source of other types do not start, and the next launch works", "[gpu]") {
  const std::string id = fmt::format("{:#018x}", ViewOf<ProbeNote>::type::type_id),
                    other = "0x0123456789abcdef";
  const ActorSources& sources = gyre_test_actors::sources;
  std::vector<SourceFile> files(sources.files.begin(), sources.files.end());
  std::deque<std::string> changed;
  for (SourceFile& file : files) {
    const size_t at = file.text.find(id);
    if (at == std::string_view::npos) continue;
    changed.emplace_back(file.text).replace(at, id.size(), other);
    file.text = changed.back();
  }
  REQUIRE(changed.size() == 1);
  const ActorSet stale = ActorSet::of<Probe>({files, sources.actor_headers});
  try {
    Runtime runtime = Runtime::launch(stale, {.engine = EngineKind::cuda});
    FAIL("launched");
  } catch (const Error& error) {
    const std::string message = error.what();
    INFO(message);
    CHECK(message.find("handler 1 of actor 0") != std::string::npos);
    CHECK(message.find(id) != std::string::npos);
  }
  Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::cuda});
  CHECK(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get().value()->getValue() == 3);
}
