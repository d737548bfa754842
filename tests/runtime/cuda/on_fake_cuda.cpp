// The main function of tests compiled for CUDA that run on the fake driver: skipped (exit 77) without NVRTC.
// With GYRE_TEST_ISOLATION=process in the environment the engine is in a process of its own, which has the
// fake driver. With GYRE_TEST_TRANSPORT=bar in the environment there is a fake Vulkan too, and `auto` is BAR.
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/program.hpp>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "support/engine_under_test.hpp"
#include "support/fake_driver.hpp"
#include "support/fake_engine_processes.hpp"
#if defined(GYRE_WITH_VULKAN)
#include "support/fake_vulkan.hpp"
#endif
#include "support/run_tests.hpp"
#include "support/stepped.hpp"

const gyre::EngineKind gyre_test::engine_under_test = gyre::EngineKind::cuda;
gyre::Isolation gyre_test::isolation_under_test = gyre::Isolation::in_process;

int main(int argc, char** argv) {
  if (!gyre::cuda::nvrtc_available()) {
    std::puts("skipped: NVRTC is not installed");
    return 77;
  }
  const char* const isolation = std::getenv("GYRE_TEST_ISOLATION");
  if (isolation != nullptr && std::string_view(isolation) == "process") {
    gyre_test::isolation_under_test = gyre::Isolation::process;
    const gyre_test::FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
#if defined(GYRE_WITH_VULKAN)
    std::optional<gyre_test::FakeVulkan> mapping;
    if (gyre_test::transport_is_bar()) mapping.emplace();
#endif
    const int result = gyre_test::run_tests(argc, argv);
    const std::string reports = processes.reports();
    if (!reports.empty()) std::printf("engine processes: %s\n", reports.c_str());
    return reports.empty() ? result : 1;
  }
  const gyre_test::FakeDriver fake({gyre_test::probe_actors(), gyre::builtin_actors()});
#if defined(GYRE_WITH_VULKAN)
  std::optional<gyre_test::FakeVulkan> vulkan;
  if (gyre_test::transport_is_bar()) vulkan.emplace();
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
