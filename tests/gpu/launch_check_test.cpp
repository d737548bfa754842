// Launches that are refused, with numbers, before they are tried; after each, a valid one that answers.
#include <fmt/format.h>
#include <gyre/bridge/cuda/pinned.hpp>
#include <gyre/runtime/cuda/arguments.hpp>
#include <gyre/runtime/cuda/loaded_kernel.hpp>
#include <gyre/runtime/launch_verdict.hpp>

#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/stepped.hpp"
#include "support/three_cases.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

// Small rings and no arena, so that thousands of workers fit the region's budget.
Options on_cuda(uint32_t workers = 1, uint32_t block = 32) {
  Options options;
  options.engine = EngineKind::cuda;
  options.workers = workers;
  options.block = block;
  options.slots = 4;
  options.arena_bytes = 0;
  options.actors_per_worker = 16;
  return options;
}

bool replies_from(Runtime& runtime, uint64_t key) {
  const Address<Probe> address{.key = key};
  const auto reply = runtime.client().ask<ProbeRequest>(address, asking(Action::ANSWER, 21)).get();
  return reply && reply.value()->getValue() == 43;
}

void valid_launch_answers() {
  {
    Runtime runtime = Runtime::launch(probe_actors(), on_cuda(4, 64));
    for (uint64_t key = 0; key < 4; ++key) REQUIRE(replies_from(runtime, key));
    CHECK(runtime.terminate().books.balanced());
  }
  Runtime runtime = Runtime::launch(builtin_actors(), {.engine = EngineKind::cuda});
  CHECK(wrong_in_three_cases(runtime) == "");
  CHECK(runtime.terminate().books.balanced());
}

template <class Exception = Error>
std::string refusal(const Options& options) {
  try {
    Runtime runtime = Runtime::launch(probe_actors(), options);
  } catch (const Exception& error) {
    return error.what();
  }
  return "it was launched";
}

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }
bool says(const std::vector<std::string>& texts, const std::string& what) {
  for (const std::string& text : texts) {
    if (says(text, what)) return true;
  }
  return false;
}

// A device's context, with what a test allocates in it.
struct Gpu {
  cuda::Driver driver = cuda::Driver::load();
  cuda::DeviceLimits limits = cuda::read_limits(driver, 0);
  cuda::Context context{driver, 0};
  cuda::Context::Current current{context};

  int architecture() const { return 10 * limits.compute_major + limits.compute_minor; }
  cuda::CompiledKernel compile(const std::string& text, const std::string& kernel) const {
    return cuda::compile_text(text, kernel, architecture(),
                              {fmt::format("--gpu-architecture=sm_{}", architecture())}, {});
  }
  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr address = 0;
    driver.check(driver.cuMemAlloc(&address, bytes), "allocating");
    return address;
  }
};

}  // namespace

TEST_CASE(
    "as many workers as can be resident are launched and answer; one block more is refused with numbers",
    "[gpu]") {
  for (const uint32_t block : {32u, 1024u}) {
    const LaunchVerdict verdict = check_launch(probe_actors(), on_cuda(1, block));
    INFO(verdict.text());
    REQUIRE(verdict.ok());
    CHECK(verdict.unchecked.empty());
    REQUIRE(verdict.kernel);
    CHECK(verdict.kernel->registers > 16);
    REQUIRE(verdict.kernel->max_grid);
    const auto most = uint32_t(*verdict.kernel->max_grid);
    REQUIRE(most >= 1);
    CHECK(says(verdict.fits, fmt::format("at most {} blocks of {} threads", most, block)));
    {
      Runtime runtime = Runtime::launch(probe_actors(), on_cuda(most, block));
      REQUIRE(replies_from(runtime, 0));
      REQUIRE(replies_from(runtime, most - 1));
      CHECK(runtime.terminate().books.balanced());
    }
    const std::string refused = refusal(on_cuda(most + 1, block));
    INFO(refused);
    CHECK(says(refused, fmt::format("a grid of {} blocks: {} blocks of {} threads can be resident", most + 1,
                                    most, block)));
    CHECK(says(refused, fmt::format("{} registers", verdict.kernel->registers)));
    CHECK(says(check_launch(probe_actors(), on_cuda(most + 1, block)).problems,
               fmt::format("a grid of {} blocks", most + 1)));
    valid_launch_answers();
  }
}

TEST_CASE("2,048 threads are refused naming 1024, and 1 thread naming 32", "[gpu]") {
  CHECK(says(refusal<BadOptions>(on_cuda(1, 2048)),
             "--block 2048: must be a multiple of 32 (a warp), 32 to 1024"));
  CHECK(says(refusal<BadOptions>(on_cuda(1, 1)), "--block 1: must be a multiple of 32"));
  const LaunchVerdict large = check_launch(probe_actors(), on_cuda(1, 2048));
  INFO(large.text());
  CHECK(says(large.problems, "2048 threads a block: the device allows 1024"));
  CHECK(says(large.fits, "blocks of 1024 threads"));
  const LaunchVerdict one = check_launch(probe_actors(), on_cuda(1, 1));
  CHECK(says(one.problems, "1 threads a block: must be a multiple of 32"));
  CHECK(says(one.fits, "blocks of 32 threads"));
  valid_launch_answers();
}

TEST_CASE(
    "more shared memory than a block can opt in to is refused with both limits; what fits can be launched",
    "[gpu]") {
  const cuda::DeviceLimits limits = Gpu().limits;
  const uint32_t most = limits.shared_bytes_a_block_opt_in;
  const LaunchVerdict refused = check_launch(probe_actors(), on_cuda(), {.dynamic_shared_bytes = most + 1});
  INFO(refused.text());
  CHECK(refused.problems.size() == 1);
  CHECK(says(refused.problems, fmt::format("{} dynamic", most + 1)));
  CHECK(says(refused.problems, fmt::format("the device allows {}, and {} without opting in", most,
                                           limits.shared_bytes_a_block)));
  const uint32_t opted_in = limits.shared_bytes_a_block + 1024;
  if (opted_in < most - 4096) {
    const LaunchVerdict accepted =
        check_launch(probe_actors(), on_cuda(), {.dynamic_shared_bytes = opted_in});
    INFO(accepted.text());
    CHECK(accepted.ok());
    CHECK(*accepted.kernel->max_grid < *check_launch(probe_actors(), on_cuda()).kernel->max_grid);
  }
  valid_launch_answers();
}

TEST_CASE("a kernel with more than 48 KB of dynamic shared memory runs, opted in", "[gpu]") {
  Gpu gpu;
  cuda::LoadedKernel kernel(
      gpu.context,
      gpu.compile("__global__ void far(volatile unsigned int* out, unsigned int last) {\n"
                  "  extern __shared__ unsigned int words[];\n"
                  "  for (unsigned int i = threadIdx.x; i <= last; i += blockDim.x) words[i] = 3 * i;\n"
                  "  __syncthreads();\n"
                  "  if (threadIdx.x == 0) *out = words[last];\n"
                  "}\n",
                  "far"));
  cuda::LaunchRequest request;
  request.dynamic_shared_bytes = gpu.limits.shared_bytes_a_block_opt_in / 4 * 4;
  const cuda::KernelLimits limits = kernel.limits(request, gpu.limits);
  CHECK(limits.static_shared_bytes == 0);
  CHECK(limits.blocks_a_multiprocessor >= 1);
  CHECK(cuda::kernel_problems(request, gpu.limits, limits).empty());

  cuda::PinnedRegion word(gpu.context, 4096, 4096);
  const uint32_t last = request.dynamic_shared_bytes / 4 - 1;
  cuda::ArgumentBlock arguments;
  arguments.push_pointer("out", word.device_address(), 4);
  arguments.push("last", last);
  arguments.check(gpu.driver, kernel.function(), "far");
  CUstream stream = nullptr;
  gpu.driver.check(gpu.driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "creating a stream");
  gpu.driver.check(
      gpu.driver.cuLaunchCooperativeKernel(kernel.function(), 1, 1, 1, 32, 1, 1, request.dynamic_shared_bytes,
                                           stream, arguments.addresses()),
      "launching");
  gpu.driver.check(gpu.driver.cuStreamSynchronize(stream), "running");
  CHECK(*static_cast<volatile uint32_t*>(word.host_address()) == 3 * last);
  gpu.driver.cuStreamDestroy(stream);
}

TEST_CASE("clusters are checked against the device and the grid", "[gpu]") {
  const bool has_clusters = Gpu().limits.cluster_launch;
  const LaunchVerdict four = check_launch(probe_actors(), on_cuda(8), {.cluster = 4});
  INFO(four.text());
  CHECK(four.ok() == has_clusters);
  if (has_clusters) CHECK(says(four.fits, "blocks in clusters of 4"));
  const LaunchVerdict odd = check_launch(probe_actors(), on_cuda(9), {.cluster = 4});
  CHECK(says(odd.problems, "a grid of 9 blocks in clusters of 4"));
  CHECK(says(check_launch(probe_actors(), on_cuda(16), {.cluster = 16}).problems, "at most 8"));
  valid_launch_answers();
}

TEST_CASE(
    "stale, short and host-only pointers are refused with numbers; device, pinned and managed ones pass",
    "[gpu]") {
  Gpu gpu;
  cuda::LoadedKernel kernel(gpu.context,
                            gpu.compile("__global__ void three(void*, void*, void*) {}", "three"));
  const auto problem = [&](const cuda::ArgumentBlock& arguments) -> std::string {
    try {
      arguments.check(gpu.driver, kernel.function(), "three");
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  };
  const CUdeviceptr live = gpu.allocate(1 << 20);
  cuda::PinnedRegion pinned(gpu.context, 8192, 8192);
  CUdeviceptr managed = 0;
  const bool has_managed =
      gpu.driver.cuMemAllocManaged(&managed, 65536, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS;
  {
    cuda::ArgumentBlock good;
    good.push_pointer("device", live + 1024, (1 << 20) - 1024);
    good.push_pointer("pinned", pinned.device_address() + 128, 8192 - 128);
    good.push_pointer("managed", has_managed ? managed : live, 65536);
    CHECK(problem(good) == "");
  }
  const CUdeviceptr freed = gpu.allocate(64 << 20);  // an allocation of its own, which the driver gives back
  gpu.driver.check(gpu.driver.cuMemFree(freed), "freeing");
  int on_stack = 0;
  cuda::ArgumentBlock bad;
  bad.push_pointer("stale", freed, 16);
  bad.push_pointer("short", live, (1 << 20) + 1);
  bad.push_pointer("stack", reinterpret_cast<CUdeviceptr>(&on_stack), 4);
  const std::string text = problem(bad);
  INFO(text);
  CHECK(says(text, fmt::format("stale: {:#x} lies in no live allocation", freed)));
  CHECK(says(text, fmt::format("short: the kernel touches 1048577 bytes from {:#x}", live)));
  CHECK(says(text, "stack: "));
  {
    cuda::ArgumentBlock wrong;  // in number and size, where this driver tells
    wrong.push("small", 5);
    const std::string seen = problem(wrong);
    INFO(seen);
    CHECK(says(seen, "parameter") == (gpu.driver.cuFuncGetParamInfo != nullptr));
  }
  gpu.driver.cuMemFree(live);
  if (has_managed) gpu.driver.cuMemFree(managed);
  valid_launch_answers();
}

TEST_CASE("a region larger than the host's memory is refused before anything is allocated", "[gpu]") {
  const cuda::HostMemory host = cuda::host_memory();
  REQUIRE(host.bytes > 0);
  Options options = on_cuda();
  options.arena_bytes = (host.bytes / 4096 + 1) * 4096;
  options.region_budget = ~uint64_t(0);
  if (options.arena_bytes > uint64_t(1) << 40) return;  // no options ask for that much on such a host
  const std::string refused = refusal(options);
  INFO(refused);
  CHECK(says(refused, "bytes of pinned memory: the host has " + std::to_string(host.bytes)));
  CHECK(says(refused, host.source));
  valid_launch_answers();
}

TEST_CASE("more actors than the device has memory for are refused with numbers", "[gpu]") {
  Options options = on_cuda(64);
  const cuda::DeviceLimits limits = Gpu().limits;
  const uint64_t of_one = probe_actors().actor_bytes(1 << 20) >> 20;
  if (of_one == 0) return;  // the Probe has no state: nothing is allocated for it
  options.actors_per_worker = uint32_t(std::min<uint64_t>(limits.memory_bytes / of_one / 32, 0x7fffffff));
  if (uint64_t(options.actors_per_worker) * of_one * 64 < limits.memory_bytes) return;
  const std::string refused = refusal(options);
  INFO(refused);
  CHECK(says(refused, "bytes of the device's memory: it has " + std::to_string(limits.memory_bytes)));
  valid_launch_answers();
}

TEST_CASE("a launch is checked beside live workers, which count and go on", "[gpu][contexts]") {
  {
    // Four on each multiprocessor: as many as fit alone do not fit beside them.
    const uint32_t held = 4 * uint32_t(Gpu().limits.multiprocessors);
    Options options = on_cuda(held);
    options.isolation = Isolation::in_process;
    Runtime runtime = Runtime::launch(probe_actors(), options);
    REQUIRE(replies_from(runtime, 1));
    const LaunchVerdict verdict = check_launch(probe_actors(), on_cuda());
    INFO(verdict.text());
    CHECK(verdict.ok());
    REQUIRE(verdict.kernel);
    REQUIRE(verdict.kernel->max_grid);
    CHECK(says(check_launch(probe_actors(), on_cuda(uint32_t(*verdict.kernel->max_grid))).problems,
               "beside the " + std::to_string(held) + " blocks that other runtimes of this process hold"));
    CHECK(replies_from(runtime, 1));
    CHECK(runtime.terminate().books.balanced());
  }
  CHECK(check_launch(probe_actors(), on_cuda()).ok());
}

TEST_CASE("a device that is not there is refused by number", "[gpu]") {
  const int count = cuda::Driver::device_count();
  Options options = on_cuda();
  options.device = count;
  CHECK(says(refusal<EngineUnavailable>(options),
             fmt::format("choosing CUDA device {0}: this machine has {0}", count)));
  const LaunchVerdict verdict = check_launch(probe_actors(), options);
  CHECK(verdict.engine_missing);
  valid_launch_answers();
}

TEST_CASE("two runtimes on two devices in one process answer at the same time", "[gpu]") {
  if (cuda::Driver::device_count() < 2) {
    return gyre_test::skip("one GPU here");
  }
  Options first = on_cuda(4), second = on_cuda(4);
  second.device = 1;
  Runtime one = Runtime::launch(probe_actors(), first);
  Runtime two = Runtime::launch(probe_actors(), second);
  for (uint64_t n = 0; n < 1000; ++n) {
    Client client = (n % 2 == 0 ? one : two).client();
    const Address<Probe> address{.key = n % 32};
    const auto reply = client.ask<ProbeRequest>(address, asking(Action::ANSWER, n)).get();
    INFO(n << ": " << (reply ? "answered" : reply.error().message()) << one.failure() << two.failure());
    REQUIRE(reply);
    REQUIRE(reply.value()->getValue() == 2 * n + 1);
  }
  CHECK(one.terminate().books.balanced());
  REQUIRE(replies_from(two, 3));  // the end of one is nothing to the other
  CHECK(two.terminate().books.balanced());
}
