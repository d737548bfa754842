// The main function of tests compiled for CUDA that run on the fake driver: skipped (exit 77) without NVRTC.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/program.hpp>

#include <cstdio>

#include "support/fake_driver.hpp"
#include "support/stepped.hpp"

int main(int argc, char** argv) {
  if (!gyre::cuda::nvrtc_available()) {
    std::puts("skipped: NVRTC is not installed");
    return 77;
  }
  const gyre_test::FakeDriver fake({gyre_test::probe_actors(), gyre::builtin_actors()});
  const int result = Catch::Session().run(argc, argv);
  const bool clean = fake.misuse().empty() && fake.live() == gyre_test::FakeDriver::Live{};
  if (!clean) std::printf("left behind: %s\n%s", fake.live().text().c_str(), fake.misuse().c_str());
  return clean ? result : 1;
}
