// Verdicts on launches, as far as a machine without a GPU gives them.
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/verdict.hpp>
#include <gyre/runtime/launch_verdict.hpp>

#include "support/catch.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;

namespace {
bool says(const std::vector<std::string>& texts, const std::string& what) {
  for (const std::string& text : texts) {
    if (text.find(what) != std::string::npos) return true;
  }
  return false;
}
}  // namespace

TEST_CASE("a launch on the CPU engine is checked without launching it") {
  const LaunchVerdict fine = check_launch(builtin_actors(), {.engine = EngineKind::cpu, .workers = 2});
  INFO(fine.text());
  CHECK(fine.ok());
  CHECK(fine.engine == EngineKind::cpu);
  CHECK(fine.unchecked.empty());
  CHECK(fine.region_bytes > (64 << 20));
  CHECK(fine.text().find("verdict: it can be launched") != std::string::npos);

  const LaunchVerdict wrong =
      check_launch(builtin_actors(), {.engine = EngineKind::cpu, .workers = 60000, .block = 1, .slots = 100});
  INFO(wrong.text());
  CHECK_FALSE(wrong.ok());
  CHECK(wrong.problems.size() == 3);
  CHECK(says(wrong.problems, "--workers 60000: at most"));
  CHECK(says(wrong.problems, "--block 1: must be a multiple of 32"));
  CHECK(says(wrong.problems, "--slots 100"));
  CHECK(wrong.text().find("verdict: it cannot be launched") != std::string::npos);
}

TEST_CASE("without a GPU the verdict says what is missing, what was checked all the same, and what was not") {
  if (cuda::Driver::device_count() > 0) return gyre_test::skip("a CUDA device is here");
  const Options options{.engine = EngineKind::cuda, .workers = 10, .block = 256};
  const LaunchVerdict bare = check_launch(builtin_actors(), options);
  CHECK_FALSE(bare.ok());
  CHECK(bare.engine_missing);
  CHECK(bare.problems.size() == 1);
  CHECK(says(bare.problems, "--engine cpu"));
  CHECK(says(bare.unchecked, "no device here"));
  CHECK(says(bare.unchecked, "--architecture"));
  CHECK_FALSE(bare.kernel);

  if (gyre_test::without_nvrtc()) return;
  const LaunchVerdict compiled = check_launch(
      builtin_actors(), options, {.cluster = 16, .dynamic_shared_bytes = 5000, .architecture = 90});
  INFO(compiled.text());
  CHECK_FALSE(compiled.engine_missing);
  CHECK(compiled.device.empty());
  CHECK(compiled.problems.size() == 2);
  CHECK(says(compiled.unchecked, "--engine cpu"));
  CHECK(says(compiled.problems, "clusters of 16 blocks: at most 8"));
  CHECK(says(compiled.problems, "10 blocks in clusters of 16"));
  CHECK(compiled.dynamic_shared_bytes == 5000);
  REQUIRE(compiled.kernel);
  CHECK(compiled.kernel->architecture == 90);
  CHECK(compiled.kernel->registers > 16);
  CHECK(compiled.kernel->registers <= 255);
  CHECK(compiled.kernel->static_shared_bytes > 0);
  CHECK_FALSE(compiled.kernel->max_grid);
  CHECK(compiled.kernel->name == builtin_actors().kernel());
}

TEST_CASE("clusters on a device that has none are a problem of the verdict") {
  if (gyre_test::without_nvrtc()) return;
  if (cuda::Driver::device_count() > 0) return gyre_test::skip("a CUDA device is here");
  const cuda::KernelCompiler empty{"empty", [](int architecture, uint32_t) {
                                     return cuda::compile_text(
                                         "__global__ void empty() {}", "empty", architecture,
                                         {"--gpu-architecture=sm_75", "--ptxas-options=-v"}, {});
                                   }};
  cuda::LaunchRequest request;
  request.cluster = 2;
  LaunchVerdict verdict;
  cuda::check_launch(empty, request, 0, 75, verdict);
  CHECK(says(verdict.problems, "CLUSTER_LAUNCH"));
  CHECK(verdict.kernel);
}

TEST_CASE("a kernel that does not compile is a problem of the verdict, with the compiler's lines") {
  if (gyre_test::without_nvrtc()) return;
  if (cuda::Driver::device_count() > 0) return gyre_test::skip("a CUDA device is here");
  const cuda::KernelCompiler broken{"broken", [](int architecture, uint32_t) {
                                      return cuda::compile_text("__global__ void broken() { undeclared(); }",
                                                                "broken", architecture,
                                                                {"--gpu-architecture=sm_90"}, {});
                                    }};
  LaunchVerdict verdict;
  cuda::check_launch(broken, {}, 0, 90, verdict);
  CHECK(says(verdict.problems, "identifier \"undeclared\" is undefined"));
  CHECK_FALSE(verdict.kernel);
}

TEST_CASE("what the assembler reports of a kernel is read from its log") {
  const auto limits = cuda::reported_limits(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
      "ptxas info    : Function properties for k\n    24 bytes stack frame, 0 bytes spill stores\n"
      "ptxas info    : Used 88 registers, used 1 barriers, 24 bytes cumulative stack size, 1088 bytes "
      "smem\n");
  REQUIRE(limits);
  CHECK(limits->registers == 88);
  CHECK(limits->static_shared_bytes == 1088);
  CHECK(limits->local_bytes == 24);
  CHECK(cuda::reported_limits("ptxas info    : Used 8 registers")->static_shared_bytes == 0);
  CHECK_FALSE(cuda::reported_limits(""));
}
