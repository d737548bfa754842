// The CUDA engine over BAR, on the fake driver with a fake Vulkan beside it: traffic, and every step that can
// fail.
#include <gyre/bridge/cuda/bar.hpp>
#include <gyre/runtime/cuda/program.hpp>

#include <algorithm>

#include "support/catch.hpp"
#include "support/failing_driver.hpp"
#include "support/fake_driver.hpp"
#include "support/fake_vulkan.hpp"
#include "support/fault_injection.hpp"
#include "support/stepped.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

Options over(TransportKind transport) {
  return {
      .engine = EngineKind::cuda, .transport = transport, .isolation = Isolation::in_process, .slots = 32};
}

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

std::string refusal(const Options& options) {
  try {
    Runtime runtime = Runtime::launch(probe_actors(), options);
  } catch (const EngineUnavailable& error) {
    return error.what();
  }
  return "it launched";
}

// Both fakes, and that nothing is left of what was made on them.
struct Fakes {
  FakeDriver driver{std::vector<ActorSet>{probe_actors()}};
  FakeVulkan vulkan;

  void check_clean() const {
    INFO(driver.live().text() << "\n" << driver.misuse());
    CHECK(driver.misuse().empty());
    CHECK(driver.live() == FakeDriver::Live{});
    CHECK(driver.reclaimed() == 0);
    CHECK(vulkan.live() == FakeVulkan::Live{});
  }
  // With `auto`: on pinned memory, and it says why. With `bar`: refused, in the same words.
  void check_falls_back(const std::string& reason) {
    {
      Runtime runtime = Runtime::launch(probe_actors(), over(TransportKind::automatic));
      INFO(runtime.transport_reason());
      CHECK(runtime.transport() == TransportKind::pinned);
      CHECK(says(runtime.transport_reason(), reason));
      const auto reply = runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 7)).get();
      REQUIRE(reply);
      CHECK(reply.value()->getValue() == 15);
    }
    check_clean();
  }
  void check_refused(const std::string& reason) {
    const std::string refused = refusal(over(TransportKind::bar));
    INFO(refused);
    CHECK(says(refused, "launching with --transport bar: "));
    CHECK(says(refused, reason));
    CHECK(says(refused, "--transport pinned"));
    check_clean();
  }
  void check_lacks(const std::string& reason) {
    check_falls_back(reason);
    check_refused(reason);
  }
};

}  // namespace

TEST_CASE("auto is BAR where it works: workers read their rings and commands in device memory") {
  if (without_nvrtc()) return;
  Fakes fakes;
  for (const TransportKind asked : {TransportKind::automatic, TransportKind::bar}) {
    Options options = over(asked);
    options.workers = 3;
    options.first_lap = 0xfff0;  // on to laps that stamp whole slots
    Runtime runtime = Runtime::launch(probe_actors(), options);
    CHECK(runtime.transport() == TransportKind::bar);
    CHECK(runtime.transport_reason().empty());
    constexpr uint64_t large_page = uint64_t(2) << 20;
    const uint64_t inbound = options.region_layout(0).inbound_bytes_elsewhere();
    CHECK(runtime.stats().memory.bar == (inbound + large_page - 1) / large_page * large_page);
    CHECK(fakes.driver.live().imports == 1);
    CHECK(fakes.vulkan.live() == FakeVulkan::Live{1, 1, 1});
    Client client = runtime.client();
    for (uint64_t i = 0; i < 600; ++i) {
      const Address<Probe> to{i % 3};
      const uint32_t words = uint32_t(i * 7 % 120);  // out of line too
      const auto reply = client
                             .ask<ProbeRequest>(to,
                                                [&](ProbeRequest::Builder request) {
                                                  request.setAction(Action::ECHO);
                                                  auto filler = request.initFiller(words);
                                                  for (uint32_t k = 0; k < words; ++k) filler.set(k, i + k);
                                                })
                             .get();
      REQUIRE(reply);
      REQUIRE(reply.value()->getFiller().size() == words);
      for (uint32_t k = 0; k < words; ++k) REQUIRE(reply.value()->getFiller()[k] == i + k);
    }
    REQUIRE(runtime.deactivate());
    CHECK(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get().error().status ==
          Status::inactive);
    REQUIRE(runtime.activate());
    REQUIRE(runtime.drain());
    CHECK(runtime.terminate().books.balanced());
  }
  fakes.check_clean();
}

TEST_CASE("pinned and unified memory are as asked for, and nothing is asked of Vulkan") {
  if (without_nvrtc()) return;
  Fakes fakes;
  for (const TransportKind asked : {TransportKind::pinned, TransportKind::unified}) {
    Runtime runtime = Runtime::launch(probe_actors(), over(asked));
    CHECK(runtime.transport() == asked);
    CHECK(runtime.transport_reason().empty());
  }
  CHECK(fakes.vulkan.calls().empty());
}

TEST_CASE("what BAR needs and is not there is named, auto goes on without it, and bar is refused") {
  if (without_nvrtc()) return;
  Fakes fakes;
  fakes.vulkan.has_device = false;
  fakes.check_lacks("none of the 1 has its UUID");
  fakes.vulkan.has_device = true;
  fakes.vulkan.has_mappable_memory = false;
  fakes.check_lacks("DEVICE_LOCAL, HOST_VISIBLE and HOST_COHERENT");
  fakes.vulkan.has_mappable_memory = true;
  fakes.vulkan.heap_bytes = 1 << 20;
  fakes.check_lacks("the rings take 2097152 bytes, and the device has 1048576");
  fakes.vulkan.heap_bytes = 256u << 20;
  for (const char* const function :
       {"vkCreateInstance", "vkCreateDevice", "vkGetDeviceProcAddr", "vkGetMemoryFdKHR"}) {
    fakes.vulkan.missing_function = function;
    fakes.check_lacks(std::string("there is no ") + function);
  }
  fakes.vulkan.missing_function.clear();
  FakeDriver::without_vulkan();
  fakes.check_lacks("the fake driver comes without one");
}

TEST_CASE(
    "memory that does not keep what the host stores fails the test at start, with the line and the words") {
  if (without_nvrtc()) return;
  Fakes fakes;
  fakes.vulkan.loses_stores = true;
  fakes.check_lacks("stored by four 16-byte stores: line 0, word 0");
}

TEST_CASE(
    "each call of Vulkan's fails once: its result is named, auto goes on without, bar is refused, nothing "
    "leaks") {
  if (without_nvrtc()) return;
  Fakes fakes;
  { Runtime runtime = Runtime::launch(probe_actors(), over(TransportKind::bar)); }
  const std::vector<std::string> healthy = fakes.vulkan.calls();
  for (const char* const function : {"vkCreateInstance", "vkEnumeratePhysicalDevices", "vkCreateDevice",
                                     "vkAllocateMemory", "vkMapMemory", "vkGetMemoryFdKHR"}) {
    CHECK(std::count(healthy.begin(), healthy.end(), function) >= 1);
  }
  for (size_t n = 1; n <= healthy.size(); ++n) {
    INFO("call " << n << ": " << healthy[n - 1]);
    fakes.vulkan.fail(n, VK_ERROR_INCOMPATIBLE_DRIVER);
    fakes.check_falls_back("VK_ERROR_INCOMPATIBLE_DRIVER (-9): ");
    fakes.vulkan.fail(n, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    fakes.check_refused("VK_ERROR_OUT_OF_DEVICE_MEMORY (-2): ");
  }
  fakes.vulkan.fail(0, VK_SUCCESS);
  CHECK(refusal(over(TransportKind::bar)) == "it launched");
}

TEST_CASE(
    "each CUDA call of BAR's fails once at launch: auto goes on without, bar is refused, nothing leaks") {
  if (without_nvrtc()) return;
  Fakes fakes;
  FailingDriver failing;
  failing.fail(0, CUDA_SUCCESS);
  { Runtime runtime = Runtime::launch(probe_actors(), over(TransportKind::bar)); }
  const std::vector<std::string> healthy = failing.calls();
  // The first of them is called while there is no context yet.
  const auto uuid = std::find(healthy.begin(), healthy.end(), "cuDeviceGetUuid");
  const auto import = std::find(uuid, healthy.end(), "cuImportExternalMemory");
  const auto region = std::find(import, healthy.end(), "cuMemHostRegister");
  REQUIRE(region != healthy.end());
  const auto last =
      std::find(std::make_reverse_iterator(region), std::make_reverse_iterator(import), "cuMemcpyDtoH")
          .base();
  const auto current = import - 2;
  REQUIRE(*current == "cuCtxPushCurrent");
  for (auto call = uuid; call != last; ++call) {
    if (call > uuid && call < current) continue;
    if (*call == "cuCtxPopCurrent") continue;                    // leaves a context behind, whoever calls it
    if (*call == "cuThreadExchangeStreamCaptureMode") continue;  // the launch goes on in the mode it has
    if (*call == "cuMemcpyDtoH" && call - import > 8) continue;  // all alike
    const size_t n = size_t(call - healthy.begin()) + 1;
    INFO("call " << n << ": " << *call);
    failing.fail(n, CUDA_ERROR_UNKNOWN);
    fakes.check_falls_back("CUDA_ERROR_UNKNOWN");
    failing.fail(n, CUDA_ERROR_ILLEGAL_ADDRESS);
    fakes.check_refused("CUDA_ERROR_ILLEGAL_ADDRESS");
  }
}

TEST_CASE(
    "a CUDA call that fails while the engine is destroyed leaves its part to the context, and nothing of "
    "Vulkan's") {
  if (without_nvrtc()) return;
  const Options options = over(TransportKind::bar);
  const std::vector<std::string> healthy = [&] {
    Fakes fakes;
    FailingDriver failing;
    return live_with_fault(failing, Phase::destruction, 0, CUDA_SUCCESS, options).calls;
  }();
  for (const char* const function : {"cuMemFree", "cuDestroyExternalMemory"}) {
    REQUIRE(std::count(healthy.begin(), healthy.end(), function) >= 1);
  }
  for (size_t n = 1; n <= healthy.size(); ++n) {
    if (healthy[n - 1] == "cuCtxPopCurrent" || healthy[n - 1] == "cuCtxDestroy") continue;
    Fakes fakes;
    FailingDriver failing;
    const Life life = live_with_fault(failing, Phase::destruction, n, CUDA_ERROR_UNKNOWN, options);
    INFO("call " << n << ": " << life.failed << "\n" << life.error << "\n" << fakes.driver.misuse());
    REQUIRE(life.failed == healthy[n - 1]);
    CHECK(life.error.empty());
    CHECK(life.balanced);
    CHECK(fakes.vulkan.live() == FakeVulkan::Live{});
    CHECK(fakes.driver.live() == FakeDriver::Live{});
    CHECK(fakes.driver.misuse().empty());
    // Without a current context an owner's memory stays until the context goes: at most two things.
    CHECK(fakes.driver.reclaimed() <= (life.failed == "cuCtxPushCurrent" ? 2u : 1u));
  }
}

TEST_CASE("a worker that does not stop keeps its device memory, and a device fault gives it back") {
  if (without_nvrtc()) return;
  {
    Fakes fakes;
    {
      Runtime runtime = Runtime::launch(probe_actors(), over(TransportKind::bar));
      fakes.driver.fault();
      CHECK(runtime.terminate().books.balanced());
      CHECK(runtime.state() == Lifecycle::failed);
    }
    CHECK(fakes.vulkan.live() == FakeVulkan::Live{});
  }
  Fakes fakes;
  fakes.driver.device.devices = 4;  // other tests use the first
  {
    Options options = over(TransportKind::bar);
    options.device = 3;
    fakes.vulkan.device = 3;
    Runtime runtime = Runtime::launch(probe_actors(), options);
    CHECK(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 60s).get());
    fakes.driver.hold(true);
    CHECK(runtime.terminate(1ms).worker_stuck);
  }
  CHECK(fakes.vulkan.live() == FakeVulkan::Live{1, 1, 1});
  CHECK(fakes.driver.live().imports == 1);
  CHECK(fakes.driver.live().workers == 1);
  CHECK(fakes.driver.misuse().empty());
}
