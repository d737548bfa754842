// What only a GPU can show.
#include <fmt/format.h>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/engine.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>

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

namespace {
Options in_process(Options options = {}) {
  options.engine = EngineKind::cuda;
  options.isolation = Isolation::in_process;
  return options;
}
// How long the call takes, in milliseconds.
template <class Call>
double ms_of(Call call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}
}  // namespace

TEST_CASE("a second launch in the primary context is refused by name, and the first goes on", "[gpu]") {
  Runtime first = Runtime::launch(probe_actors(), in_process({.context = CudaContext::primary}));
  try {
    Runtime::launch(probe_actors(), in_process({.context = CudaContext::primary}));
    FAIL("it launched");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("already has workers in that context") != std::string::npos);
  }
  CHECK(echoes(first));
}

TEST_CASE("runtimes in contexts of their own start and end on one GPU under the load of another",
          "[gpu][contexts]") {
  for (const uint32_t workers : {1u, 132u}) {
    Runtime first = Runtime::launch(probe_actors(), in_process({.workers = workers, .block = 128}));
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> wrong{0}, right{0};
    std::thread load([&] {
      while (!stop) ++(echoes(first) ? right : wrong);
    });
    for (int round = 0; round < 3; ++round) {
      std::optional<Runtime> second;
      const double launched = ms_of(
          [&] { second.emplace(Runtime::launch(probe_actors(), in_process({.workers = 4, .block = 64}))); });
      {
        const auto pinned = second->allocate<float>(MemoryKind::pinned, 100'000);
        const auto device = second->allocate<float>(MemoryKind::device, 100'000);
        CHECK(echoes(*second));
        CHECK(second->terminate().books.balanced());
      }
      const double ended = ms_of([&] { second.reset(); });
      WARN(fmt::format("beside {} workers, round {}: launched in {:.0f} ms, ended in {:.0f} ms", workers,
                       round, launched, ended));
      CHECK(launched < 20'000);
      CHECK(ended < 2'000);
    }
    stop = true;
    load.join();
    CHECK(wrong == 0);
    CHECK(right > 0);
    CHECK(first.terminate().books.balanced());
  }
}

TEST_CASE("calls in the primary context return beside workers in a context of their own", "[gpu][contexts]") {
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::Context primary(driver, 0);
  Runtime runtime = Runtime::launch(probe_actors(), in_process({.workers = 16}));
  const cuda::Context::Current current(primary);
  CUdeviceptr memory = 0;
  CHECK(driver.cuMemAlloc(&memory, 1 << 20) == CUDA_SUCCESS);
  CHECK(ms_of([&] { CHECK(driver.cuMemFree(memory) == CUDA_SUCCESS); }) < 1'000);
  void* host = nullptr;
  CHECK(driver.cuMemHostAlloc(&host, 1 << 20, 0) == CUDA_SUCCESS);
  CHECK(ms_of([&] { CHECK(driver.cuMemFreeHost(host) == CUDA_SUCCESS); }) < 1'000);
  CHECK(echoes(runtime));
}

TEST_CASE("a runtime runs in a context that the program gives", "[gpu][contexts]") {
  const cuda::Driver driver = cuda::Driver::load();
  CUdevice device = 0;
  CUcontext context = nullptr, popped = nullptr;
  REQUIRE(driver.cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  REQUIRE(driver.cuCtxCreate != nullptr);
  REQUIRE(driver.cuCtxCreate(&context, 0, device) == CUDA_SUCCESS);
  REQUIRE(driver.cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
  for (int round = 0; round < 2; ++round) {
    Runtime runtime =
        Runtime::launch(probe_actors(), in_process({.context = CudaContext::given, .cuda_context = context}));
    CHECK(echoes(runtime));
  }
  CHECK(driver.cuCtxDestroy(context) == CUDA_SUCCESS);
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
