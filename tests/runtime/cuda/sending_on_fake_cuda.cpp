// The main function of the cases of actors that send, and of reading actors, on the fake driver: skipped
// (exit 77) without NVRTC.
#include <gyre/device/builtin/echo.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre_relay_actors_sources.hpp>

#include <cstdio>

#include "support/actors/relay.hpp"
#include "support/counters.hpp"
#include "support/engine_under_test.hpp"
#include "support/fake_driver.hpp"
#include "support/run_tests.hpp"

const gyre::EngineKind gyre_test::engine_under_test = gyre::EngineKind::cuda;
gyre::Isolation gyre_test::isolation_under_test = gyre::Isolation::in_process;

int main(int argc, char** argv) {
  if (!gyre::cuda::nvrtc_available()) {
    std::puts("skipped: NVRTC is not installed");
    return 77;
  }
  using namespace gyre_relay;
  const gyre_test::FakeDriver fake({gyre::ActorSet::of<Relay, Sink, Node>(gyre_relay_actors::sources),
                                    gyre::builtin_actors(), gyre_counters::counter_actors()});
  const int result = gyre_test::run_tests(argc, argv);
  const bool clean = fake.misuse().empty() && fake.live() == gyre_test::FakeDriver::Live{};
  if (!clean) std::printf("left behind: %s\n%s", fake.live().text().c_str(), fake.misuse().c_str());
  return clean ? result : 1;
}
