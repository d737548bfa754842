// The CUDA engine on the fake driver: launch, traffic, faults, terminate.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/runtime/core/core.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre/runtime/launch_verdict.hpp>
#include <gyre_handlers_actors_sources.hpp>
#include <support/actors/handlers.official.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/actors/faulty.hpp"
#include "support/actors/handlers.hpp"
#include "support/arrivals.hpp"
#include "support/catch.hpp"
#include "support/fake_driver.hpp"
#include "support/stepped.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

ActorSet faulty_actors() { return ActorSet::of<Faulty>(gyre_test_actors::sources); }
constexpr Address<Faulty> faulty{};

ActorSet filler_actors() { return ActorSet::of<gyre_handlers::Filler>(gyre_handlers_actors::sources); }
ActorSet greedy_actors() { return ActorSet::of<gyre_handlers::Greedy>(gyre_handlers_actors::sources); }

Options on_cuda(Options options = {}) {
  options.engine = EngineKind::cuda;
  options.isolation = Isolation::in_process;
  options.slots = 8;
  return options;
}

std::string refusal(const ActorSet& actors, const Options& options) {
  try {
    Runtime runtime = Runtime::launch(actors, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "it launched";
}

// Polls: whatever comes of itself, from another thread.
template <class Holds>
bool within_a_minute(Holds holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// The signals that each of this process's threads blocks that watch an engine.
std::vector<uint64_t> watchers() {
  std::vector<uint64_t> blocked;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string line;
    std::ifstream name(task.path() / "comm");
    if (!std::getline(name, line) || line != "gyre-watcher") continue;
    std::ifstream status(task.path() / "status");
    while (std::getline(status, line)) {
      if (line.rfind("SigBlk:", 0) == 0) blocked.push_back(std::stoull(line.substr(7), nullptr, 16));
    }
  }
  return blocked;
}

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("the CUDA engine launches, answers and terminates on a driver in ordinary memory") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  for (const TransportKind transport : {TransportKind::automatic, TransportKind::unified}) {
    Runtime runtime = Runtime::launch(probe_actors(), on_cuda({.transport = transport, .workers = 3}));
    CHECK(runtime.engine() == EngineKind::cuda);
    CHECK(runtime.device_name() == "NVIDIA H200");
    CHECK(runtime.transport() ==
          (transport == TransportKind::unified ? TransportKind::unified : TransportKind::pinned));
    CHECK(fake.live().workers == 3);
    for (uint64_t key = 0; key < 30; ++key) {
      const auto reply =
          runtime.client().ask<ProbeRequest>(Address<Probe>{key}, asking(Action::ANSWER, key)).get();
      REQUIRE(reply);
      CHECK(reply.value()->getValue() == 2 * key + 1);
    }
    const Termination report = runtime.terminate();
    CHECK_FALSE(report.worker_stuck);
    CHECK(report.books.asks.answered == 30);
    CHECK(report.books.balanced());
  }
  INFO(fake.misuse());
  CHECK(fake.misuse().empty());
  CHECK(fake.live() == FakeDriver::Live{});
  CHECK(fake.reclaimed() == 0);
}

TEST_CASE("all memory that a runtime takes is in its stats by kind, beside what the device has free") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  for (const TransportKind transport : {TransportKind::pinned, TransportKind::unified}) {
    Runtime runtime = Runtime::launch(probe_actors(), on_cuda({.transport = transport, .workers = 3}));
    auto device = runtime.allocate<float>(MemoryKind::device, 1000);
    auto pinned = runtime.allocate<float>(MemoryKind::pinned, 2000);
    const MemoryStats memory = runtime.stats().memory;
    CHECK(memory.region == runtime.region_bytes());
    CHECK(memory.bar == 0);
    CHECK(memory.actors >= 3 * probe_actors().actor_bytes(Options{}.actors_per_worker));
    CHECK(memory.modules > 1000);
    CHECK(memory.buffers[0] >= 4000);
    CHECK(memory.buffers[1] >= 8000);
    CHECK(memory.buffers[2] == 0);
    // Nothing that the driver gave is missing: it counts modules by number, and regions by whole pages.
    const uint64_t counted =
        memory.region + memory.actors + memory.buffer_table + memory.buffers[0] + memory.buffers[1];
    CHECK(fake.live().bytes >= counted - (transport == TransportKind::pinned ? memory.region : 0));
    CHECK(fake.live().bytes <= counted + 8192);
    CHECK(memory.device_total == fake.device.memory_bytes);
    CHECK(memory.device_free > 0);
    CHECK(memory.device_free <= memory.device_total);
  }
  Runtime runtime = Runtime::launch(probe_actors(), on_cuda());
  fake.fault();
  CHECK(runtime.stats().memory.device_total == 0);  // of a dead context nothing is known
  runtime.terminate();
}

TEST_CASE("auto finds the fake's device, and the CPU where it has none") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  const Options automatic{.isolation = Isolation::in_process};
  CHECK(Runtime::launch(probe_actors(), automatic).engine() == EngineKind::cuda);
  fake.device.devices = 0;
  CHECK(Runtime::launch(probe_actors(), automatic).engine() == EngineKind::cpu);
  CHECK(says(refusal(probe_actors(), on_cuda()), "this machine has 0"));
}

TEST_CASE("a device that cannot keep a cooperative kernel is refused, and a better one launches") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  fake.device.attributes[CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] = 0;
  fake.device.attributes[CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT] = 1;
  const std::string refused = refusal(probe_actors(), on_cuda());
  INFO(refused);
  CHECK(says(refused, "CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH is 0"));
  CHECK(says(refused, "CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT is 1"));
  CHECK(fake.live() == FakeDriver::Live{});
  fake.device = FakeDevice{};
  CHECK_FALSE(says(refusal(probe_actors(), on_cuda()), "launching"));
  CHECK(fake.live() == FakeDriver::Live{});
}

TEST_CASE("what is wrong with options, transport, grid and device is one list") {
  FakeDriver fake({probe_actors()});
  fake.device.attributes[CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] = 0;
  Options options = on_cuda({.transport = TransportKind::heap, .workers = 3});
  options.block = 33;
  options.wait = WaitPolicy(9);
  const std::string refused = refusal(probe_actors().grid_scoped(), options);
  INFO(refused);
  for (const char* const said : {"these options are wrong:\n", "--wait 9:", "--block 33:",
                                 "--transport heap: the CUDA engine's transports are bar, pinned and unified",
                                 "--workers 3: a grid-scoped actor set is one worker",
                                 "CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH is 0"}) {
    INFO(said);
    CHECK(says(refused, said));
  }
  // Of a driver that does not work it says that, beside what is wrong with the options.
  fake.device.devices = 0;
  const std::string without_device = refusal(probe_actors(), options);
  INFO(without_device);
  CHECK(says(without_device, "--block 33:"));
  CHECK(says(without_device, "this machine has 0"));
  CHECK(fake.live() == FakeDriver::Live{});
}

TEST_CASE("memory that the machine does not have is refused with the bytes asked for") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  fake.device.host_memory_bytes = 1 << 20;
  for (const TransportKind transport : {TransportKind::pinned, TransportKind::unified}) {
    const std::string refused = refusal(probe_actors(), on_cuda({.transport = transport}));
    INFO(refused);
    CHECK(says(refused, "CUDA_ERROR_OUT_OF_MEMORY"));
    CHECK(says(refused, "memory for the region"));
    CHECK(fake.live() == FakeDriver::Live{});
    CHECK(fake.reclaimed() == 0);
  }
}

TEST_CASE(
    "unified memory is refused by name where host and device cannot both use it, or it would be large") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  const Options unified = on_cuda({.transport = TransportKind::unified});
  fake.device.attributes[CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] = 0;
  CHECK(says(refusal(probe_actors(), unified), "CONCURRENT_MANAGED_ACCESS is 0 on NVIDIA H200"));
  fake.device = FakeDevice{};
  fake.device.has_mem_advise = false;
  CHECK(says(refusal(probe_actors(), unified), "has no cuMemAdvise"));
  CHECK(fake.live() == FakeDriver::Live{});
  CHECK(fake.reclaimed() == 0);
  Options large = unified;
  large.arena_bytes = uint64_t(256) << 20;
  const std::string refused = refusal(probe_actors(), large);
  INFO(refused);
  CHECK(says(refused, "may have 268435456"));
}

TEST_CASE(
    "shared scratch memory is part of each block's, opted in to, and refused where the device has less") {
  if (without_nvrtc()) return;
  FakeDriver fake({filler_actors(), greedy_actors(), probe_actors()});
  const LaunchVerdict verdict = check_launch(filler_actors(), on_cuda());
  INFO(verdict.text());
  CHECK(verdict.ok());
  const LaunchVerdict plain = check_launch(probe_actors(), on_cuda());
  CHECK(verdict.dynamic_shared_bytes == plain.dynamic_shared_bytes + 60'032);  // a multiple of 128
  REQUIRE(verdict.kernel);
  CHECK(verdict.kernel->blocks_a_multiprocessor == 3);  // of 228 KiB
  {
    Runtime runtime = Runtime::launch(filler_actors(), on_cuda());
    const auto reply =
        runtime.client()
            .ask<gyre_handlers::Fill>(Address<gyre_handlers::Filler>{},
                                      [](gyre_handlers::Fill::Builder fill) { fill.setMore(15'000); })
            .get();
    REQUIRE(reply);
    CHECK(reply.value()->getMoreSum() == uint64_t(15'000) * 14'999 / 2);
    CHECK(runtime.terminate().books.balanced());
  }
  const std::string refused = refusal(greedy_actors(), on_cuda());
  INFO(refused);
  CHECK(says(refused,
             "for the slots in hand, the messages that a handler may send and the actors' "
             "shared_scratch_bytes"));
  CHECK(says(refused, "the device allows 232448"));
  CHECK(fake.misuse().empty());
  CHECK(fake.live() == FakeDriver::Live{});
}

TEST_CASE("a device fault in a handler ends every pending ask with its cause, and nothing hangs or throws") {
  if (without_nvrtc()) return;
  FakeDriver fake({faulty_actors()});
  {
    Runtime runtime = Runtime::launch(faulty_actors(), on_cuda());
    Client client = runtime.client();
    CHECK(client.ask<ProbeRequest>(faulty, asking(Action::ANSWER, 1)).get().value()->getValue() == 3);
    const Address<Faulty> seventh{7};
    auto fatal = client.ask<ProbeRequest>(seventh, asking(Action::FAIL, 1), 60s);
    auto behind = client.ask<ProbeRequest>(faulty, asking(Action::ANSWER, 1), 60s);
    const auto failed = fatal.get();
    CHECK(failed.error().status == Status::engine_failed);
    CHECK(std::string(failed.error().actor_name) == "gyre_test::Faulty");
    CHECK(std::string(failed.error().struct_name) == "ProbeRequest");
    CHECK(says(failed.error().message(), "last busy with gyre_test::Faulty, message ProbeRequest"));
    CHECK(behind.get().error().status == Status::engine_failed);
    CHECK(runtime.state() == Lifecycle::failed);
    CHECK(says(runtime.failure(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    CHECK(says(runtime.failure(),
               "; worker 0 was last busy with gyre_test::Faulty, key 7, message ProbeRequest"));
    CHECK(client.ask<ProbeRequest>(faulty, asking(Action::ANSWER, 1)).get().error().status ==
          Status::engine_failed);
    CHECK(runtime.drain().error().status == Status::engine_failed);
    const Termination report = runtime.terminate();
    CHECK_FALSE(report.worker_stuck);
    CHECK(report.books.balanced());
    CHECK(report.books.asks.dead_letters == 2);
    CHECK(report.books.asks.inferred == 2);
  }
  const std::string next = refusal(faulty_actors(), on_cuda());
  INFO(next);
  CHECK(says(next, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
}

TEST_CASE("a device fault between messages is found by the next ask, or by terminate") {
  if (without_nvrtc()) return;
  for (const bool ask : {true, false}) {
    FakeDriver fake({probe_actors()});
    Runtime runtime = Runtime::launch(probe_actors(), on_cuda());
    fake.hold(true);  // no poll is under way: it could answer the ask before it sees the fault
    fake.fault(CUDA_ERROR_LAUNCH_FAILED);
    if (ask) {
      const auto reply = runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 60s).get();
      REQUIRE_FALSE(reply);
      CHECK(reply.error().status == Status::engine_failed);
    }
    const Termination report = runtime.terminate();
    CHECK_FALSE(report.worker_stuck);
    CHECK(report.books.balanced());
    CHECK(runtime.state() == Lifecycle::failed);
    CHECK(says(runtime.failure(), "CUDA_ERROR_LAUNCH_FAILED (719)"));
  }
}

TEST_CASE("of several workers the last words are those of the one that died with messages in hand") {
  if (without_nvrtc()) return;
  FakeDriver fake({faulty_actors()});
  Runtime runtime = Runtime::launch(faulty_actors(), on_cuda({.workers = 3}));
  Client client = runtime.client();
  for (uint64_t key = 0; key < 3; ++key)
    REQUIRE(client.ask<ProbeRequest>(Address<Faulty>{key}, asking(Action::ANSWER, 1)).get());
  // A worker that has answered has its message in hand until it says that the slot is free.
  for (const uint32_t worker : {0, 2}) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (runtime.stats().workers[worker].depth != 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
  }
  REQUIRE(runtime.failure().empty());
  auto fatal = client.ask<ProbeRequest>(Address<Faulty>{40}, asking(Action::FAIL, 1), 60s);
  CHECK(fatal.get().error().status == Status::engine_failed);
  INFO(runtime.failure());
  CHECK(says(runtime.failure(),
             "; worker 1 was last busy with gyre_test::Faulty, key 40, message ProbeRequest"));
  CHECK_FALSE(says(runtime.failure(), "worker 0"));
  CHECK_FALSE(says(runtime.failure(), "worker 2"));
}

TEST_CASE("a device fault is noticed though nobody waits: state, metrics, callbacks and futures say so") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  Runtime runtime = Runtime::launch(probe_actors(), on_cuda());
  fake.hold(true);  // the workers take nothing any more
  auto pending = runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 60s);
  Arrivals<Said> arrived;
  runtime.client()
      .ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 60s)
      .then([&](Result<Reply<ProbeResponse>> outcome) { arrived.add(said(outcome)); });
  CHECK(runtime.stats().state == Lifecycle::active);
  fake.fault();
  CHECK(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
  CHECK(says(runtime.failure(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
  CHECK(runtime.stats().state == Lifecycle::failed);
  CHECK(within_a_minute([&] { return runtime.stats().books.asks.inferred == 2; }));
  CHECK(pending.ready());
  REQUIRE(arrived.wait_for(1));
  CHECK(arrived.take()[0].status == Status::engine_failed);
  CHECK(pending.get().error().status == Status::engine_failed);
}

TEST_CASE("a program that only tells learns of a device fault, instead of a full ring for ever") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  Runtime runtime = Runtime::launch(probe_actors(), on_cuda());
  fake.hold(true);
  Client client = runtime.client();
  const auto refusal = [&] {
    const auto told = client.try_tell<ProbeNote>(probe, noting(1));
    return told ? Status::ok : told.error().status;
  };
  while (refusal() == Status::ok) {
  }
  CHECK(refusal() == Status::ring_full);
  fake.fault(CUDA_ERROR_LAUNCH_FAILED);
  CHECK(within_a_minute([&] { return refusal() == Status::engine_failed; }));
  const Books books = runtime.terminate().books;
  CHECK(books.tells.accepted == 8);
  CHECK(books.tells.inferred == books.tells.dead_letters);
  CHECK(books.balanced());
}

TEST_CASE("the thread that watches the engine is there while the runtime lives, and takes no signals") {
  if (without_nvrtc()) return;
  STATIC_REQUIRE(detail::Watcher::interval <= 5ms);  // a fault is noticed within 10 ms
  FakeDriver fake({probe_actors()});
  const size_t before = watchers().size();
  {
    Runtime runtime = Runtime::launch(probe_actors(), on_cuda());
    const auto now = watchers();
    REQUIRE(now.size() == before + 1);
    uint64_t signals = uint64_t(1) << (SIGTERM - 1) | uint64_t(1) << (SIGUSR1 - 1);
    CHECK((now.back() & signals) == signals);
    CHECK_FALSE(runtime.terminate().worker_stuck);
    CHECK(within_a_minute([&] { return watchers().size() == before; }));
  }
  // A worker that is stuck does not keep it.
  {
    fake.device.devices = 3;  // a device with a stuck worker is not used again: one for this test alone
    Runtime runtime = Runtime::launch(probe_actors(), on_cuda({.device = 2}));
    fake.hold(true);
    CHECK(runtime.terminate(1ms).worker_stuck);
    CHECK(within_a_minute([&] { return watchers().size() == before; }));
  }
}

TEST_CASE("in a forked child nobody watches, and the parent's runtime goes on") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  Runtime runtime = Runtime::launch(probe_actors(), on_cuda());
  const pid_t child = fork();
  if (child == 0) {
    const bool alone = watchers().empty();
    { Runtime moved = std::move(runtime); }  // leaves the parent's alone
    _exit(alone ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get().value()->getValue() == 3);
  fake.fault();
  CHECK(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
}

TEST_CASE("a device fault while the runtime terminates ends it as failed, and what was pending with it") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  Runtime runtime = Runtime::launch(probe_actors(), on_cuda());
  fake.hold(true);  // the workers take nothing: terminate waits
  auto pending = runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 60s);
  Termination report;
  std::thread terminator([&] { report = runtime.terminate(60s); });
  const auto refused = [&](Status status) {
    const auto told = runtime.client().try_tell<ProbeNote>(probe, noting(1));
    return !told && told.error().status == status;
  };
  while (!refused(Status::terminated)) std::this_thread::yield();  // until it began
  fake.fault();
  terminator.join();
  CHECK_FALSE(report.worker_stuck);
  CHECK(report.books.balanced());
  CHECK(runtime.state() == Lifecycle::failed);
  CHECK(pending.get().error().status == Status::engine_failed);
}

TEST_CASE("a device fault during launch is an error of the launch") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  fake.fault_at_launch(true);
  const std::string refused = refusal(probe_actors(), on_cuda());
  INFO(refused);
  CHECK(says(refused, "launching the workers"));
  CHECK(says(refused, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
}

TEST_CASE(
    "workers that do not start or do not stop are left alone with their memory, and their context is not "
    "reused") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  fake.device.devices = 2;  // other tests use the first
  {
    Runtime runtime =
        Runtime::launch(probe_actors(), on_cuda({.device = 1, .context = CudaContext::primary}));
    auto pending = runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 60s);
    CHECK(pending.get());
    fake.hold(true);
    const Termination report = runtime.terminate(1ms);
    CHECK(report.worker_stuck);
    CHECK(report.books.balanced());
  }
  const FakeDriver::Live live = fake.live();
  CHECK(live.workers == 1);
  CHECK(live.allocations > 0);
  CHECK(live.retains == 1);
  INFO(fake.misuse());
  CHECK(fake.misuse().empty());
  CHECK(says(refusal(probe_actors(), on_cuda({.device = 1, .context = CudaContext::primary})),
             "already has workers"));
}

namespace {

bool replies_rightly(Runtime& runtime, uint64_t key = 0) {
  const auto reply = runtime.client().ask<ProbeRequest>(Address<Probe>{key}, asking(Action::ANSWER, 5)).get();
  return reply && reply.value()->getValue() == 11;
}

// A context that the program made, as other CUDA code does.
CUcontext make_context(int device) {
  const cuda::Driver driver = cuda::Driver::load();
  CUcontext context = nullptr, popped = nullptr;
  REQUIRE(driver.cuCtxCreate(&context, 0, device) == CUDA_SUCCESS);
  REQUIRE(driver.cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
  return context;
}

}  // namespace

TEST_CASE("several runtimes are on one device at once, and one starts and ends while another works") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  {
    Runtime first = Runtime::launch(probe_actors(), on_cuda({.workers = 2}));
    CHECK(fake.live().retains == 0);  // the primary context is the program's
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> wrong{0};
    std::thread load([&] {
      while (!stop) wrong += !replies_rightly(first);
    });
    for (int round = 0; round < 4; ++round) {
      Runtime second = Runtime::launch(probe_actors(), on_cuda({.workers = 3}));
      CHECK(replies_rightly(second, 2));
      CHECK(fake.live().workers == 5);
      CHECK(second.terminate().books.balanced());
      // Ending a context would wait for the first runtime's workers: it is used again.
      CHECK(fake.live().contexts == 2);
    }
    CHECK(fake.live().contexts == 2);
    stop = true;
    load.join();
    CHECK(wrong == 0);
    CHECK(first.terminate().books.balanced());
  }
  INFO(fake.misuse());
  CHECK(fake.misuse().empty());
  CHECK(fake.live() == FakeDriver::Live{});
  CHECK(fake.reclaimed() == 0);
}

TEST_CASE("the primary context has room for one runtime, beside others in contexts of their own") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  {
    const Options in_primary = on_cuda({.context = CudaContext::primary});
    Runtime first = Runtime::launch(probe_actors(), in_primary);
    CHECK(fake.live().retains == 1);
    CHECK(fake.live().contexts == 0);
    CHECK(says(refusal(probe_actors(), in_primary), "already has workers in that context"));
    Runtime second = Runtime::launch(probe_actors(), on_cuda());
    CHECK(replies_rightly(first));
    CHECK(replies_rightly(second));
    { const Runtime ended = std::move(first); }
    CHECK(fake.live().retains > 0);  // releasing the last retain would wait for the second runtime's workers
    Runtime third = Runtime::launch(probe_actors(), in_primary);
    CHECK(replies_rightly(third));
    CHECK(replies_rightly(second));
  }
  INFO(fake.misuse());
  CHECK(fake.misuse().empty());
  CHECK(fake.live() == FakeDriver::Live{});
}

TEST_CASE("a runtime runs in a context that the program gives, which stays the program's") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  fake.device.devices = 2;
  CUcontext const context = make_context(0);
  const Options in_given = on_cuda({.context = CudaContext::given, .cuda_context = context});
  {
    Runtime runtime = Runtime::launch(probe_actors(), in_given);
    CHECK(replies_rightly(runtime));
    CHECK(fake.live().contexts == 1);
    CHECK(says(refusal(probe_actors(), in_given), "already has workers in that context"));
  }
  CHECK(replies_rightly(*std::make_unique<Runtime>(Runtime::launch(probe_actors(), in_given))));
  CHECK(fake.live() == FakeDriver::Live{.contexts = 1});

  Options wrong = in_given;
  wrong.device = 1;
  CHECK(says(refusal(probe_actors(), wrong), "it is of CUDA device 0, and --device says 1"));
  wrong = in_given;
  wrong.cuda_context = &wrong;
  CHECK(says(refusal(probe_actors(), wrong), "CUDA_ERROR_INVALID_CONTEXT"));
  wrong.cuda_context = nullptr;
  CHECK(says(refusal(probe_actors(), wrong), "--context given: Options::cuda_context must be"));
  wrong = on_cuda({.cuda_context = context});
  CHECK(says(refusal(probe_actors(), wrong), "--context own: Options::cuda_context must be"));
  wrong = in_given;
  wrong.isolation = Isolation::process;
  CHECK(says(refusal(probe_actors(), wrong), "--context given: a context of this process is of no use"));
  wrong = on_cuda({.context = CudaContext(3)});
  CHECK(says(refusal(probe_actors(), wrong), "--context 3: must be own, primary or given"));
  CHECK(fake.live() == FakeDriver::Live{.contexts = 1});

  CHECK(cuda::Driver::load().cuCtxDestroy(context) == CUDA_SUCCESS);
  INFO(fake.misuse());
  CHECK(fake.misuse().empty());
  CHECK(fake.reclaimed() == 0);
}

TEST_CASE("workers that do not fit beside those of other runtimes are refused with the numbers") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  fake.device.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 2;
  fake.device.attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = 32;  // a block fills one
  const auto filling = [](uint32_t workers) { return on_cuda({.workers = workers}); };
  {
    Runtime first = Runtime::launch(probe_actors(), filling(1));
    const std::string refused = refusal(probe_actors(), filling(2));
    INFO(refused);
    CHECK(says(refused,
               "a grid of 2 blocks: 1 of the 2 blocks of 32 threads that can be resident at once "
               "fit beside the 1 blocks that other runtimes of this process hold"));
    const LaunchVerdict verdict = check_launch(probe_actors(), filling(2));
    INFO(verdict.text());
    CHECK(says(verdict.text(), "1 of the 2 blocks of 32 threads"));
    CHECK(check_launch(probe_actors(), filling(1)).ok());
    Runtime second = Runtime::launch(probe_actors(), filling(1));
    CHECK(replies_rightly(second));
    CHECK(says(refusal(probe_actors(), filling(1)), "0 of the 2 blocks"));
    CHECK(replies_rightly(first));
    // Workers that have ended hold nothing, though their runtimes are there.
    first.terminate();
    second.terminate();
    Runtime third = Runtime::launch(probe_actors(), filling(2));
    CHECK(replies_rightly(third));
  }
  INFO(fake.misuse());
  CHECK(fake.misuse().empty());
  CHECK(fake.live() == FakeDriver::Live{});
}

TEST_CASE("the fake notes that ending a context beside live workers of another would block") {
  if (without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  Runtime runtime = Runtime::launch(probe_actors(), on_cuda());
  CHECK(cuda::Driver::load().cuCtxDestroy(make_context(0)) == CUDA_SUCCESS);
  CHECK(says(fake.misuse(), "cuCtxDestroy beside a live kernel"));
}
