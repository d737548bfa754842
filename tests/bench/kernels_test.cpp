// The benchmark's kernels compile with NVRTC. No GPU is needed.
#include <string>
#include <vector>

#include "bench/baselines/launches.hpp"
#include "bench/baselines/mailbox.hpp"
#include "bench/baselines/naive_ring.hpp"
#include "bench/baselines/network_graph.hpp"
#include "bench/baselines/raw.hpp"
#include "bench/baselines/soak_kernel_host.hpp"
#include "bench/baselines/views_on_gpu.hpp"
#include "support/catch.hpp"
#include "support/without_nvrtc.hpp"

namespace {

using namespace gyre;

constexpr RingShape largest{.slots = 256, .slot_bytes = 16384};

void check_raw_kernel(int architecture, const std::vector<uint32_t>& sizes) {
  for (const uint32_t size : sizes) {
    for (const uint32_t pollers : {1u, 2u}) {
      for (const bool near_pages : {false, true}) {
        const cuda::CompiledKernel kernel =
            bench::compile_raw_kernel(architecture, size, pollers, near_pages);
        INFO("sm_" << architecture << ", " << size << " bytes, " << pollers << " pollers, near pages "
                   << near_pages);
        CHECK(kernel.log == "");
        CHECK(!kernel.cubin.empty());
        CHECK(kernel.lowered_name.find("raw_echo") != std::string::npos);
      }
    }
  }
}

TEST_CASE("the raw kernel compiles for old and new architectures, without a warning") {
  if (gyre_test::without_nvrtc()) return;
  check_raw_kernel(75, {32});
  check_raw_kernel(90, {64, 352});
  check_raw_kernel(120, {largest.body_capacity()});
}

TEST_CASE("the raw kernel compiles for messages of any size on each architecture", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  for (const int architecture : {75, 90, 120}) {
    check_raw_kernel(architecture, {32, 64, 352, 360, 4096, largest.body_capacity()});
  }
}

void check_other_baselines(int architecture) {
  using Compile = cuda::CompiledKernel (*)(int);
  const Compile stream_of_one = [](int architecture) {
    return bench::compile_raw_stream_kernel(architecture, 1);
  };
  const Compile stream_of_two = [](int architecture) {
    return bench::compile_raw_stream_kernel(architecture, 2);
  };
  const Compile network = [](int architecture) { return bench::compile_network_kernel(architecture, 512); };
  for (const Compile compile :
       {stream_of_one, stream_of_two, network, Compile(bench::compile_naive_ring_kernel),
        Compile(bench::compile_empty_kernel), Compile(bench::compile_add_kernel),
        Compile(bench::compile_soak_kernel)}) {
    const cuda::CompiledKernel kernel = compile(architecture);
    INFO("sm_" << architecture << ", " << kernel.lowered_name);
    CHECK(kernel.log == "");
    CHECK(!kernel.cubin.empty());
  }
}

void check_views_kernels(int architecture) {
  for (const bool by_views : {false, true}) {
    const cuda::CompiledKernel kernel = bench::compile_views_kernel(architecture, by_views);
    INFO("sm_" << architecture);
    CHECK(kernel.log == "");
    CHECK(!kernel.cubin.empty());
  }
}

void check_mailbox_kernels(int architecture) {
  std::vector<cuda::CompiledKernel> kernels;
  for (const uint32_t warps : {1u, 2u, 4u})
    kernels.push_back(bench::compile_mailbox_rate_kernel(architecture, 132 * warps, warps));
  for (const bool by_reply_ring : {false, true})
    kernels.push_back(bench::compile_mailbox_latency_kernel(architecture, by_reply_ring));
  for (const cuda::CompiledKernel& kernel : kernels) {
    INFO("sm_" << architecture << ", " << kernel.lowered_name);
    CHECK(kernel.log == "");
    CHECK(!kernel.cubin.empty());
  }
}

TEST_CASE("the bare mailboxes' kernels compile, without a warning") {
  if (gyre_test::without_nvrtc()) return;
  check_mailbox_kernels(90);
}

TEST_CASE("the other baselines' kernels and the views' compile, without a warning") {
  if (gyre_test::without_nvrtc()) return;
  check_other_baselines(90);
  check_views_kernels(90);
}

TEST_CASE("the other baselines' kernels and the views' compile for old and new architectures", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  for (const int architecture : {75, 120}) {
    check_other_baselines(architecture);
    check_views_kernels(architecture);
  }
}

}  // namespace
