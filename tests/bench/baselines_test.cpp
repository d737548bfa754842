// The host's side of the CUDA baselines, whole, on a driver in ordinary memory whose bare kernels are
// threads: right replies make rows, wrong and missing ones are errors. The kernels themselves need a GPU.
#include <gyre/runtime/builtin_actors.hpp>
#include "bench/baselines/copies.hpp"
#include "bench/baselines/launches.hpp"
#include "bench/baselines/naive_ring.hpp"
#include "bench/baselines/raw.hpp"
#include "bench/baselines/raw_memory.hpp"
#include "bench/baselines/raw_stream.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/fake_driver.hpp"
#include "support/rounds.hpp"
#include "support/without_nvrtc.hpp"

namespace {

using namespace gyre;
using namespace gyre::bench;

enum class Bare { raw, naive, empty, add };
enum class Fault { none, flips_a_bit, answers_nothing };

// One at a time: the bare kernels of the wrapped driver.
struct Kernels {
  Fault fault = Fault::none;
  bool capturing = false;
  std::vector<std::function<CUresult()>> captured;      // what a graph does
  decltype(cuda::Driver::cuMemcpyHtoDAsync) copy_in{};  // the fake driver's
  decltype(cuda::Driver::cuMemcpyDtoHAsync) copy_out{};
  uint32_t launches = 0, graph_launches = 0;
  std::deque<std::thread> threads;
  std::atomic<uint32_t> running{0};

  // Does `step` now, or whenever the graph that is being captured is launched.
  CUresult do_or_capture(std::function<CUresult()> step) {
    if (!capturing) return step();
    captured.push_back(std::move(step));
    return CUDA_SUCCESS;
  }
  void join() {
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }
  template <class Run>
  void start(Run&& run) {
    ++running;
    threads.emplace_back([this, run] {
      run();
      --running;
    });
  }
};
Kernels* kernels = nullptr;

// What raw_echo and raw_stream do, for one worker.
void echo(const RawRings& rings, uint32_t worker, uint32_t packets, Fault fault) {
  for (uint64_t ticket = 0; Memory::load_acquire(rings.command_word(worker)) == 0;) {
    bool whole = fault != Fault::answers_nothing;
    for (uint32_t k = 0; k < packets && whole; ++k)
      whole = Memory::load(rings.request(worker, ticket)[k]).stamp == rings.shape.stamp(ticket);
    if (!whole) {
      std::this_thread::yield();
      continue;
    }
    for (uint32_t k = 0; k < packets; ++k) {
      Packet packet = Memory::load(rings.request(worker, ticket)[k]);
      if (fault == Fault::flips_a_bit && ticket == 50 && k == 3) packet.data[1] ^= 1u << 7;
      Memory::store(rings.reply(worker, ticket)[k], packet);
    }
    ++ticket;
  }
}

// What naive_echo does.
void echo(NaiveRings& rings, uint32_t bytes, Fault fault) {
  for (uint64_t number = 1; Memory::load_acquire(rings.command) == 0;) {
    if (fault == Fault::answers_nothing || Memory::load_acquire(rings.request.number) < number) {
      std::this_thread::yield();
      continue;
    }
    const uint32_t slot = uint32_t(number) % NaiveRing::slots;
    std::memcpy(rings.reply.payload[slot], rings.request.payload[slot], bytes);
    if (fault == Fault::flips_a_bit && number == 50) rings.reply.payload[slot][2] ^= 1;
    Memory::store_release(rings.reply.number, number);
    ++number;
  }
}

template <class T>
T argument(void** arguments, int index) {
  return *static_cast<T*>(arguments[index]);
}

CUresult find_function(CUfunction* function, CUmodule, const char* name) {
  const std::string text = name;
  for (const auto& [part, kernel] :
       {std::pair("raw_", Bare::raw), std::pair("naive_echo", Bare::naive),
        std::pair("empty_kernel", Bare::empty), std::pair("add_kernel", Bare::add)}) {
    if (text.find(part) == std::string::npos) continue;
    *function = reinterpret_cast<CUfunction>(uintptr_t(kernel) + 1);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult launch(CUfunction function, unsigned blocks, unsigned, unsigned, unsigned, unsigned, unsigned,
                unsigned, CUstream, void** arguments, void**) {
  if (kernels->capturing) {
    // A graph keeps the values that its kernel's parameters have now.
    if (Bare(reinterpret_cast<uintptr_t>(function) - 1) != Bare::add) return CUDA_SUCCESS;
    kernels->captured.push_back(
        [function, a = argument<const float*>(arguments, 0), b = argument<const float*>(arguments, 1),
         sum = argument<float*>(arguments, 2), size = argument<uint32_t>(arguments, 3)]() mutable {
          void* values[] = {&a, &b, &sum, &size};
          return launch(function, 1, 1, 1, 32, 1, 1, 0, nullptr, values, nullptr);
        });
    return CUDA_SUCCESS;
  }
  ++kernels->launches;
  const Fault fault = kernels->fault;
  switch (Bare(reinterpret_cast<uintptr_t>(function) - 1)) {
    case Bare::raw:
      for (uint32_t worker = 0; worker < blocks; ++worker) {
        kernels->start([rings = argument<RawRings>(arguments, 0), packets = argument<uint32_t>(arguments, 1),
                        worker, fault] { echo(rings, worker, packets, fault); });
      }
      break;
    case Bare::naive:
      kernels->start([rings = argument<NaiveRings*>(arguments, 0), bytes = argument<uint32_t>(arguments, 1),
                      fault] { echo(*rings, bytes, fault); });
      break;
    case Bare::empty:
      break;
    case Bare::add: {
      const auto* const a = argument<const float*>(arguments, 0);
      const auto* const b = argument<const float*>(arguments, 1);
      auto* const sum = argument<float*>(arguments, 2);
      if (fault == Fault::answers_nothing) break;
      for (uint32_t i = 0; i < argument<uint32_t>(arguments, 3); ++i) sum[i] = a[i] + b[i];
      if (fault == Fault::flips_a_bit && kernels->launches == 50) sum[7] += 1;
      break;
    }
  }
  return CUDA_SUCCESS;
}

// The fake driver with bare kernels, while it lives.
class BareDriver {
 public:
  BareDriver() : fake_({builtin_actors()}) {
    kernels = &kernels_;
    inner_ = cuda::Driver::replace_loader([] {
      cuda::Driver driver = inner_();
      driver.cuModuleGetFunction = find_function;
      driver.cuLaunchKernel = launch;
      driver.cuStreamQuery = [](CUstream) {
        return kernels->running != 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
      };
      driver.cuStreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
      kernels->copy_in = driver.cuMemcpyHtoDAsync;
      kernels->copy_out = driver.cuMemcpyDtoHAsync;
      driver.cuMemcpyHtoDAsync = [](CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
        return kernels->do_or_capture([=] { return kernels->copy_in(to, from, bytes, stream); });
      };
      driver.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
        return kernels->do_or_capture([=] { return kernels->copy_out(to, from, bytes, stream); });
      };
      driver.cuStreamBeginCapture = [](CUstream, CUstreamCaptureMode) {
        kernels->capturing = true;
        return CUDA_SUCCESS;
      };
      driver.cuStreamEndCapture = [](CUstream, CUgraph* graph) {
        kernels->capturing = false;
        *graph = reinterpret_cast<CUgraph>(kernels);
        return CUDA_SUCCESS;
      };
      driver.cuGraphInstantiateWithFlags = [](CUgraphExec* executable, CUgraph, unsigned long long) {
        *executable = reinterpret_cast<CUgraphExec>(kernels);
        return CUDA_SUCCESS;
      };
      driver.cuGraphLaunch = [](CUgraphExec, CUstream) {
        ++kernels->graph_launches;
        for (const auto& step : kernels->captured) {
          if (const CUresult result = step(); result != CUDA_SUCCESS) return result;
        }
        return CUDA_SUCCESS;
      };
      driver.cuGraphExecDestroy = [](CUgraphExec) { return CUDA_SUCCESS; };
      driver.cuGraphDestroy = [](CUgraph) { return CUDA_SUCCESS; };
      return driver;
    });
  }
  ~BareDriver() {
    kernels_.join();
    cuda::Driver::replace_loader(inner_);
    kernels = nullptr;
  }

  Kernels& operator()() { return kernels_; }
  const gyre_test::FakeDriver& fake() const { return fake_; }

 private:
  static inline std::function<cuda::Driver()> inner_;
  gyre_test::FakeDriver fake_;
  Kernels kernels_;
};

Plan small_plan() {
  Plan plan;
  plan.messages = 300;
  plan.options.timeout = std::chrono::milliseconds(10'000);
  return plan;
}

void check_row(const Row& row, const BareDriver& driver) {
  CHECK(row.summary.messages == 300);
  CHECK(row.histogram.count() == 300);
  CHECK(row.summary.p50_ns > 0);
  const auto live = driver.fake().live();
  CHECK((live.allocations == 0 && live.streams == 0 && live.modules == 0 && live.retains == 0));
}

TEST_CASE("raw's host side: every message comes back, beside idle workers, with one poller or two") {
  if (gyre_test::without_nvrtc()) return;
  for (const uint32_t workers : {1u, 3u}) {
    for (const uint32_t pollers : {1u, 2u}) {
      BareDriver driver;
      Plan plan = small_plan();
      plan.options.workers = workers;
      plan.options.slots = 16;
      plan.pollers = pollers;
      const Row row = measure_raw(plan, 64);
      check_row(row, driver);
      CHECK(row.transport == "pinned");
      CHECK(row.workers == workers);
      CHECK(driver().launches == 1);
    }
  }
}

TEST_CASE("raw and the naive ring do not believe a wrong reply, nor wait for ever for one") {
  if (gyre_test::without_nvrtc()) return;
  const auto complaint = [](Fault fault, auto&& measure_row) {
    BareDriver driver;
    driver().fault = fault;
    Plan plan = small_plan();
    if (fault == Fault::answers_nothing) plan.options.timeout = std::chrono::milliseconds(20);
    try {
      measure_row(plan);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto raw = [](const Plan& plan) { measure_raw(plan, 64); };
  const auto naive = [](const Plan& plan) { measure_naive_ring(plan, 64); };
  CHECK(complaint(Fault::flips_a_bit, raw).find("raw at 64 bytes, message 51 ") == 0);
  CHECK(complaint(Fault::flips_a_bit, naive).find("naive-ring at 64 bytes, message 50 ") == 0);
  CHECK(complaint(Fault::answers_nothing, raw).find("no reply within 20 ms") != std::string::npos);
  CHECK(complaint(Fault::answers_nothing, naive).find("no reply within 20 ms") != std::string::npos);
}

TEST_CASE("the naive ring's host side: every message comes back, over laps") {
  if (gyre_test::without_nvrtc()) return;
  BareDriver driver;
  const Row row = measure_naive_ring(small_plan(), 64);
  check_row(row, driver);
  CHECK(row.name == "naive-ring");
}

TEST_CASE("launches and graphs are made for each message, and each sum is checked") {
  if (gyre_test::without_nvrtc()) return;
  constexpr uint32_t with_warm_up = 330;
  {
    BareDriver driver;
    check_row(measure_launch_sync(small_plan()), driver);
    CHECK(driver().launches == with_warm_up);
  }
  {
    BareDriver driver;
    check_row(measure_graph_sync(small_plan()), driver);
    CHECK(driver().launches == 0);
    CHECK(driver().graph_launches == with_warm_up);
  }
  for (const auto measure_row :
       {measure_launch_pinned, measure_copies_launch_sync, measure_graph_copies_sync}) {
    {
      BareDriver driver;
      const Row row = measure_row(small_plan());
      check_row(row, driver);
      CHECK(row.work == Work::vector_add);
      CHECK(driver().launches == with_warm_up);
      CHECK(driver().graph_launches == (row.name == "graph-copies-sync" ? with_warm_up : 0));
    }
    for (const Fault fault : {Fault::flips_a_bit, Fault::answers_nothing}) {
      BareDriver driver;
      driver().fault = fault;
      CHECK_THROWS_AS(measure_row(small_plan()), Error);
    }
  }
}

TEST_CASE("raw streams: all of every worker comes back, whoever sends and takes", "[rounds]") {
  if (gyre_test::without_nvrtc()) return;
  const uint64_t messages = uint64_t(gyre_test::rounds(600));
  for (const uint32_t workers : {1u, 3u}) {
    uint64_t checksum = 0;
    for (const uint32_t threads : {1u, 2u, 6u}) {
      BareDriver driver;
      Options options;
      options.workers = workers;
      options.slot_bytes = 64;
      options.slots = 32;
      const StreamFigures figures =
          measure_raw_stream(options, 16, messages, threads, 0, threads == 2 ? 2 : 1);
      INFO(workers << " workers, " << threads << " threads");
      CHECK(figures.messages == messages);
      CHECK(figures.seconds > 0);
      CHECK(figures.threads == std::min(threads, threads >= 2 * workers ? 2 * workers : workers));
      if (checksum == 0) checksum = figures.checksum;
      CHECK(figures.checksum == checksum);  // the same messages, in whatever order
    }
  }
}

TEST_CASE("raw streams do not believe a wrong packet, nor wait for ever for one") {
  if (gyre_test::without_nvrtc()) return;
  for (const Fault fault : {Fault::flips_a_bit, Fault::answers_nothing}) {
    for (const uint32_t threads : {1u, 2u}) {
      BareDriver driver;
      driver().fault = fault;
      Options options;
      options.slot_bytes = 64;
      options.timeout = std::chrono::milliseconds(50);
      CHECK_THROWS_AS(measure_raw_stream(options, 16, 3000, threads, 0), Error);
    }
  }
  Options options;
  CHECK_THROWS_AS(measure_raw_stream(options, 360, 3000, 1, 0), BadOptions);
}

TEST_CASE("copies there and back are timed and compared") {
  if (gyre_test::without_nvrtc()) return;
  BareDriver driver;
  CHECK(measure_device_copies(0, 8192, 4096, 20) > 0);
  CHECK(measure_host_copies(8192, 4096, 20) > 0);
  CHECK(driver.fake().live().allocations == 0);
}

}  // namespace
