// The main function of tests compiled for CUDA that run on the fake driver: skipped (exit 77) without NVRTC.
// With GYRE_TEST_TRANSPORT=bar in the environment there is a fake Vulkan too, and `auto` is BAR.
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/program.hpp>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "support/engine_under_test.hpp"
#include "support/fake_driver.hpp"
#if defined(GYRE_WITH_VULKAN)
#include "support/fake_vulkan.hpp"
#endif
#include "support/run_tests.hpp"
#include "support/stepped.hpp"

const gyre::EngineKind gyre_test::engine_under_test = gyre::EngineKind::cuda;

int main(int argc, char** argv) {
  if (!gyre::cuda::nvrtc_available()) {
    std::puts("skipped: NVRTC is not installed");
    return 77;
  }
  const gyre_test::FakeDriver fake({gyre_test::probe_actors(), gyre::builtin_actors()});
#if defined(GYRE_WITH_VULKAN)
  std::optional<gyre_test::FakeVulkan> vulkan;
  if (const char* const wanted = std::getenv("GYRE_TEST_TRANSPORT"); wanted != nullptr) {
    if (std::string_view(wanted) == "bar") vulkan.emplace();
  }
#endif
  const int result = gyre_test::run_tests(argc, argv);
#if defined(GYRE_WITH_VULKAN)
  if (vulkan && (vulkan->calls().empty() || vulkan->live() != gyre_test::FakeVulkan::Live{})) {
    std::puts("Vulkan: not used, or not given back");
    return 1;
  }
#endif
  const bool clean = fake.misuse().empty() && fake.live() == gyre_test::FakeDriver::Live{};
  if (!clean) std::printf("left behind: %s\n%s", fake.live().text().c_str(), fake.misuse().c_str());
  return clean ? result : 1;
}
