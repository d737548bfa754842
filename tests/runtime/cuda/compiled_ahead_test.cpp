// Actors that were compiled when the program was built, on the fake driver and mostly without NVRTC.
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre/messages/vector_add.official.hpp>
#include <gyre/runtime/actors/actor_library.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/ahead.hpp>
#include <gyre/runtime/cuda/cubin_cache.hpp>
#include <gyre/runtime/launch_verdict.hpp>
#include <gyre/runtime/process/launch_message.hpp>
#include <gyre_builtin_actors_sources.hpp>
#include <gyre_grouped_actors_sources.hpp>
#include <support/actors/toolkit.official.hpp>

#include <capnp/message.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/actors/grouped.hpp"
#include "support/catch.hpp"
#include "support/fake_driver.hpp"
#include "support/fake_engine_processes.hpp"
#include "support/skip.hpp"
#include "support/stepped.hpp"
#include "support/temporary_folder.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre_test;
using actors::Echo;
using actors::VectorAdd;

namespace {

// A machine where nothing compiles, and nothing compiled was kept.
class NoCompiler {
 public:
  NoCompiler() { REQUIRE_FALSE(cuda::nvrtc_available()); }
  // What launches left in the cache's folder.
  bool cache_is_empty() const { return std::filesystem::is_empty(folder_.path()); }

 private:
  TemporaryFolder folder_;
  Environment hidden_{"GYRE_TEST_WITHOUT_NVRTC", "1"}, cache_{"GYRE_CACHE_DIR", folder_.path().c_str()};
};

Options on_cuda(Options options = {}, Isolation isolation = Isolation::in_process) {
  options.engine = EngineKind::cuda;
  options.isolation = isolation;
  options.heartbeat_timeout = 30s;
  options.slots = 8;
  return options;
}

// The fake device's compute capability: 9.0 unless it is set.
void set_capability(FakeDriver& fake, int major, int minor) {
  fake.device.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = major;
  fake.device.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = minor;
}

std::string refusal(const ActorSet& actors, const Options& options) {
  try {
    Runtime runtime = Runtime::launch(actors, options);
  } catch (const EngineUnavailable& error) {
    return error.what();
  }
  return "it launched";
}

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

// The built-in actors with these sources.
ActorSet builtin_of(const ActorSources& sources) { return ActorSet::of<Echo, VectorAdd>(sources); }
// As they would be without ARCHITECTURES.
ActorSet not_compiled() {
  ActorSources sources = gyre_builtin_actors::sources;
  sources.ahead = {};
  return builtin_of(sources);
}

bool without_ahead(const ActorSources& sources) {
  if (!sources.ahead.empty()) return false;
  skip("NVRTC, or the toolkit's headers, was not there when the tests were built");
  return true;
}

// One request to each of some keys, every element of every reply compared.
void check_answers(Runtime& runtime) {
  Client client = runtime.client();
  for (uint64_t key = 0; key < 20; ++key) {
    const auto reply =
        client
            .ask<messages::VectorAddRequest>(Address<VectorAdd>{key},
                                             [key](messages::VectorAddRequest::Builder request) {
                                               request.setOperation(messages::Operation::ADD);
                                               request.setA({1, 2, 3});
                                               request.setB({10, 20, float(key)});
                                             })
            .get();
    REQUIRE(reply);
    const auto result = reply.value()->getResult();
    REQUIRE(result.size() == 3);
    CHECK(result[0] == 11);
    CHECK(result[1] == 22);
    CHECK(result[2] == 3 + float(key));
  }
}

void check_clean(const FakeDriver& fake) {
  CHECK(fake.misuse() == "");
  CHECK(fake.live() == FakeDriver::Live{});
}

}  // namespace

TEST_CASE("actors compiled ahead launch and answer where NVRTC cannot be found and nothing is cached") {
  if (without_ahead(gyre_builtin_actors::sources)) return;
  const NoCompiler none;
  FakeDriver fake({builtin_actors()});
  for (const bool cache : {true, false}) {
    Runtime runtime = Runtime::launch(builtin_actors(), on_cuda({.cache = cache}));
    CHECK(runtime.timings().compiled_ahead);
    CHECK_FALSE(runtime.timings().compiled_from_cache);
    CHECK(how_compiled(runtime.timings()) == "compiled ahead");
    check_answers(runtime);
    CHECK(runtime.terminate().books.balanced());
  }
  CHECK(none.cache_is_empty());
  check_clean(fake);
}

TEST_CASE("an engine process launches actors compiled ahead, and needs no NVRTC") {
  if (without_ahead(gyre_builtin_actors::sources)) return;
  const NoCompiler none;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  {
    Runtime runtime = Runtime::launch(builtin_actors(), on_cuda({}, Isolation::process));
    CHECK(runtime.timings().compiled_ahead);
    check_answers(runtime);
    CHECK(runtime.terminate().books.balanced());
  }
  const std::string error = refusal(not_compiled(), on_cuda({}, Isolation::process));
  CHECK(says(error, "loading NVRTC"));
  CHECK_FALSE(says(error, "ompiled ahead"));
  CHECK(says(refusal(builtin_actors(), on_cuda({.block = 96}, Isolation::process)), "THREADS 96"));
  CHECK(none.cache_is_empty());
  CHECK(processes.reports() == "");
}

TEST_CASE("actors that include the CUDA toolkit and were compiled ahead run without it") {
  if (without_ahead(gyre_grouped_actors::sources)) return;
  const NoCompiler none;
  const Environment nowhere("CUDA_HOME", "/nowhere");
  const ActorSet grouped = ActorSet::of<gyre_toolkit::Grouped>(gyre_grouped_actors::sources);
  FakeDriver fake({grouped});
  {
    Runtime runtime = Runtime::launch(grouped, on_cuda());
    CHECK(runtime.timings().compiled_ahead);
    const auto reply = runtime.client()
                           .ask<gyre_toolkit::Numbers>(Address<gyre_toolkit::Grouped>{},
                                                       [](gyre_toolkit::Numbers::Builder request) {
                                                         request.setValues({5, 7, 11});
                                                       })
                           .get();
    REQUIRE(reply);
    CHECK(reply.value()->getSum() == 23);
    CHECK(runtime.terminate().books.balanced());
  }
  check_clean(fake);
}

TEST_CASE("a device runs what was compiled for its major version and no later minor one") {
  CHECK(cuda::runs_on(80, 80));
  CHECK(cuda::runs_on(80, 89));
  CHECK_FALSE(cuda::runs_on(89, 86));
  CHECK_FALSE(cuda::runs_on(80, 90));
  CHECK_FALSE(cuda::runs_on(90, 89));
  CHECK(cuda::runs_on(100, 103));
  CHECK_FALSE(cuda::runs_on(100, 120));

  if (without_ahead(gyre_builtin_actors::sources)) return;
  const NoCompiler none;
  FakeDriver fake({builtin_actors()});
  set_capability(fake, 9, 1);
  Runtime::launch(builtin_actors(), on_cuda()).terminate();
  set_capability(fake, 12, 0);
  const std::string error = refusal(builtin_actors(), on_cuda());
  INFO(error);
  CHECK(says(error, "loading NVRTC"));
  CHECK(says(error, "Compiled ahead were " + cuda::list_of_ahead(gyre_builtin_actors::sources.ahead) + "."));
  CHECK(says(error, "gyre::actors::Echo, gyre::actors::VectorAdd with 32 threads a block for "));
  CHECK(says(error, "for compute capability 12.0: add ARCHITECTURES 120, SETS \"gyre::actors::Echo, "));
  check_clean(fake);
}

TEST_CASE("of those that fit, the nearest below is taken") {
  const ActorSet actors = not_compiled();
  const auto entry = [&actors](int architecture, std::string_view cubin) {
    CompiledAhead compiled;
    compiled.architecture = architecture;
    compiled.block = 32;
    compiled.kernel = "gyre::worker_kernel<gyre::actors::Echo, gyre::actors::VectorAdd>";
    compiled.inputs = cuda::ahead_inputs(actors, architecture, 32);
    compiled.cubin = cubin;
    return compiled;
  };
  const CompiledAhead ahead[] = {entry(80, "eight"), entry(89, "eight nine"), entry(86, "eight six")};
  ActorSources sources = gyre_builtin_actors::sources;
  sources.ahead = ahead;
  const auto found = [&sources](int device) {
    const auto kernel = cuda::find_ahead(builtin_of(sources), device, 32);
    return kernel ? kernel->cubin : "none";
  };
  CHECK(found(80) == "eight");
  CHECK(found(87) == "eight six");
  CHECK(found(89) == "eight nine");
  CHECK(found(75) == "none");
  CHECK(found(90) == "none");
  CHECK(cuda::list_of_ahead(sources.ahead) ==
        "gyre::actors::Echo, gyre::actors::VectorAdd with 32 threads a block for 8.0, 8.9, 8.6");
}

TEST_CASE("another block, set or text is not what was compiled ahead") {
  if (without_ahead(gyre_builtin_actors::sources)) return;
  const ActorSources& sources = gyre_builtin_actors::sources;
  CHECK(cuda::find_ahead(builtin_actors(), 90, 32));
  CHECK_FALSE(cuda::find_ahead(builtin_actors(), 90, 64));
  CHECK_FALSE(cuda::find_ahead(builtin_actors().grid_scoped(), 90, 32));
  CHECK_FALSE(cuda::find_ahead(ActorSet::of<VectorAdd, Echo>(sources), 90, 32));
  CHECK_FALSE(cuda::find_ahead(ActorSet::of<Echo>(sources), 90, 32));
  CHECK_FALSE(cuda::find_ahead(not_compiled(), 90, 32));

  // Any header's text, and its name.
  for (size_t n = 0; n < sources.files.size(); ++n) {
    std::vector<SourceFile> files(sources.files.begin(), sources.files.end());
    const std::string changed = std::string(files[n].text) + " ", name = std::string(files[n].name) + "_";
    files[n].text = changed;
    CHECK_FALSE(cuda::find_ahead(builtin_of({files, sources.actor_headers, sources.ahead}), 90, 32));
    files[n] = {name, sources.files[n].text};
    CHECK_FALSE(cuda::find_ahead(builtin_of({files, sources.actor_headers, sources.ahead}), 90, 32));
  }

  const NoCompiler none;
  FakeDriver fake({builtin_actors()});
  CHECK(says(refusal(builtin_actors(), on_cuda({.block = 64})),
             "with 64 threads a block for compute capability 9.0: add ARCHITECTURES 90, SETS"));
  CHECK(says(refusal(builtin_actors().grid_scoped(), on_cuda({.workers = 1})), "another text than this"));
  std::vector<SourceFile> files(sources.files.begin(), sources.files.end());
  files[0].text = "";
  CHECK(
      says(refusal(builtin_of({files, sources.actor_headers, sources.ahead}), on_cuda()),
           "was compiled ahead with 32 threads a block, and from another text than this; build the program"));
  const TemporaryFolder kept;  // it is asked for what the compiler makes
  CHECK(says(refusal(builtin_actors(), on_cuda({.keep_program = kept.path().string()})), "loading NVRTC"));
  check_clean(fake);
}

TEST_CASE("what does not fit is compiled at launch, and found in the cache after that") {
  if (without_ahead(gyre_builtin_actors::sources) || without_nvrtc()) return;
  const TemporaryFolder folder;
  const Environment cache("GYRE_CACHE_DIR", folder.path().c_str());
  FakeDriver fake({builtin_actors()});
  set_capability(fake, 12, 0);
  for (const char* const how : {"compiled", "found compiled"}) {
    Runtime runtime = Runtime::launch(builtin_actors(), on_cuda());
    CHECK(how_compiled(runtime.timings()) == how);
    check_answers(runtime);
    CHECK(runtime.terminate().books.balanced());
  }
  check_clean(fake);
}

TEST_CASE("a library of actors carries what was compiled ahead") {
  if (without_ahead(gyre_builtin_actors::sources)) return;
  const NoCompiler none;
  const LibraryOfActors library(builtin_actors());
  const ActorSet actors = ActorSet::from_library(library.library());
  FakeDriver fake({builtin_actors()});
  {
    Runtime runtime = Runtime::launch(actors, on_cuda());
    CHECK(runtime.timings().compiled_ahead);
    check_answers(runtime);
    CHECK(runtime.terminate().books.balanced());
  }
  check_clean(fake);
}

TEST_CASE("an engine process is sent what it may launch, and the names of the rest") {
  const CompiledAhead ahead[] = {
      {90, 32, 5, "gyre::worker_kernel<gyre::actors::Echo, gyre::actors::VectorAdd>", "name", "description",
       "13.0", std::string_view("a\0b", 3)},
      {80, 64, 6, "gyre::worker_kernel<gyre::actors::Echo, gyre::actors::VectorAdd>", "n", "d", "12.9",
       "other"}};
  ActorSources sources = gyre_builtin_actors::sources;
  sources.ahead = ahead;
  capnp::MallocMessageBuilder message;
  auto launch = message.initRoot<process::control::Launch>();
  process::write_launch(launch, builtin_of(sources), {.block = 32}, 1);
  const ActorSet actors = process::actors_of(launch.asReader());
  const auto& read = actors.sources().ahead;
  REQUIRE(read.size() == 2);
  CHECK(read[0].architecture == 90);
  CHECK(read[0].inputs == 5);
  CHECK(read[0].kernel == actors.kernel());
  CHECK(read[0].lowered_name == "name");
  CHECK(read[0].lowered_description == "description");
  CHECK(read[0].compiler == "13.0");
  CHECK(read[0].cubin == std::string_view("a\0b", 3));
  CHECK(read[1].block == 64);
  CHECK(read[1].cubin.empty());
  CHECK(cuda::list_of_ahead(read) == cuda::list_of_ahead(sources.ahead));
}

TEST_CASE("a launch is judged by the kernel compiled ahead where there is no NVRTC") {
  if (without_ahead(gyre_builtin_actors::sources)) return;
  const NoCompiler none;
  FakeDriver fake({builtin_actors()});
  const LaunchVerdict verdict = check_launch(builtin_actors(), on_cuda());
  INFO(verdict.text());
  CHECK(verdict.ok());
  CHECK(verdict.kernel);
  CHECK_FALSE(check_launch(builtin_actors(), on_cuda({.block = 64})).ok());
  check_clean(fake);
}
