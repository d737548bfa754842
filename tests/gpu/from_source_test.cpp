// Actors given as source text, on a GPU.
#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include "support/catch.hpp"
#include "support/source_actors.hpp"
#include "support/stepped.hpp"
#include "support/temporary_folder.hpp"

using namespace gyre;
using namespace gyre_test;
namespace fs = std::filesystem;

namespace {
bool counts(Runtime& runtime) {
  Client client = runtime.client();
  const NamedAddress counter{"my::Counter", 5};
  for (uint64_t n = 1; n <= 10; ++n) {
    if (!client.tell<ProbeNote>(counter, noting(n))) return false;
  }
  const auto reply = client.ask<ProbeRequest, ProbeResponse>(counter, asking(Action::ANSWER, 100)).get();
  return reply && reply.value()->getValue() == 155 && reply.value()->getKey() == 5;
}
}  // namespace

TEST_CASE("actors given as source text answer, and keep their state", "[gpu]") {
  Runtime runtime =
      Runtime::launch(counter_from_source(), {.engine = EngineKind::cuda, .workers = 2, .block = 64});
  CHECK(counts(runtime));
  Client client = runtime.client();
  for (uint64_t key = 0; key < 8; ++key) {
    const auto reply =
        client.ask<ProbeRequest, ProbeResponse>(NamedAddress{"my::Doubler", key}, asking(Action::ANSWER, key))
            .get();
    REQUIRE(reply);
    CHECK(reply.value()->getValue() == 2 * key);
  }
  CHECK(client.tell<ProbeNote>(NamedAddress{"my::Doubler"}, noting(1)).error().status ==
        Status::unknown_message);
  CHECK(client.tell<ProbeNote>(NamedAddress{"my::Nobody"}, noting(1)).error().status ==
        Status::unknown_actor);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("source text that does not compile is an error with its lines, and the next launch works",
          "[gpu]") {
  std::string text = counter_text;
  const std::string good = "out.setValue(sum + in.getArgument());";
  text.replace(text.find(good), good.size(), "out.setValue(sum + in.getArgumint());");
  try {
    Runtime::launch(counter_from_source(text), {.engine = EngineKind::cuda});
    FAIL("it launched");
  } catch (const Error& error) {
    const std::string said = error.what();
    INFO(said);
    CHECK(said.find("has no member \"getArgumint\"") != std::string::npos);
    CHECK(said.find(": out.setValue(sum + in.getArgumint());\n") != std::string::npos);
  }
  Runtime runtime = Runtime::launch(counter_from_source(), {.engine = EngineKind::cuda});
  CHECK(counts(runtime));
}

TEST_CASE("a second launch finds its actors compiled, unless told not to look", "[gpu]") {
  const TemporaryFolder folder;
  const Environment cache("GYRE_CACHE_DIR", folder.path().c_str());
  const auto launch = [](Options options) {
    options.engine = EngineKind::cuda;
    Runtime runtime = Runtime::launch(counter_from_source(), options);
    CHECK(counts(runtime));
    return runtime.timings();
  };
  CHECK_FALSE(launch({}).compiled_from_cache);
  const Timings warm = launch({});
  CHECK(warm.compiled_from_cache);
  CHECK(warm.compile_ms > 0);
  CHECK_FALSE(launch({.cache = false}).compiled_from_cache);
  CHECK_FALSE(launch({.block = 64}).compiled_from_cache);
  CHECK(launch({.block = 64}).compiled_from_cache);
  {
    Runtime runtime = Runtime::launch(builtin_actors(), {.engine = EngineKind::cuda});
    CHECK_FALSE(runtime.timings().compiled_from_cache);
  }
  for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
    fs::resize_file(file.path(), fs::file_size(file.path()) - 1);
  }
  CHECK_FALSE(launch({}).compiled_from_cache);
  CHECK(launch({}).compiled_from_cache);
}

TEST_CASE("a launch keeps its program on request", "[gpu]") {
  const TemporaryFolder folder;
  Runtime runtime = Runtime::launch(
      counter_from_source(), {.engine = EngineKind::cuda, .keep_program = (folder.path() / "kept").string()});
  CHECK(counts(runtime));
  CHECK_FALSE(runtime.timings().compiled_from_cache);
  CHECK(read_file(folder.path() / "kept/kernel.cubin").substr(0, 4) == "\177ELF");
  CHECK(read_file(folder.path() / "kept/kernel.ptx").find(".entry") != std::string::npos);
  CHECK(read_file(folder.path() / "kept/kernel.cu").find("actors_from_source.hpp") != std::string::npos);
  CHECK(read_file(folder.path() / "kept/options.txt").find("--gpu-architecture=sm_") != std::string::npos);
  CHECK(read_file(folder.path() / "kept/compile.log").empty());
}
