// The main function of the GPU tests: skipped (exit 77) where there is no GPU. GYRE_TEST_TRANSPORT in the
// environment (bar, pinned, unified) is the transport of every launch that leaves it to `auto`. Each launch
// that does not say otherwise goes through gyre-engine, but for unified memory, and with
// GYRE_TEST_ISOLATION=in_process.
#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/runtime/core/engine.hpp>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "gpu/transport.hpp"
#include "support/engine_under_test.hpp"
#include "support/run_tests.hpp"

namespace gyre_test {

std::optional<gyre::TransportKind> transport_of_environment() {
  const char* const wanted = std::getenv("GYRE_TEST_TRANSPORT");
  if (wanted == nullptr) return std::nullopt;
  for (const gyre::TransportKind kind :
       {gyre::TransportKind::bar, gyre::TransportKind::pinned, gyre::TransportKind::unified}) {
    if (wanted == gyre::name(kind)) return kind;
  }
  std::fprintf(stderr, "GYRE_TEST_TRANSPORT=%s: must be bar, pinned or unified\n", wanted);
  std::exit(2);
}

}  // namespace gyre_test

// gyre::make_engine, by the linker's --wrap: what Runtime::launch calls is the wrapper.
extern "C++" std::unique_ptr<gyre::Engine> make_the_engine(
    const gyre::ActorSet&,
    const gyre::Options&) __asm__("__real__ZN4gyre11make_engineERKNS_8ActorSetERKNS_7OptionsE");
extern "C++" std::unique_ptr<gyre::Engine> make_engine_of_environment(
    const gyre::ActorSet&,
    const gyre::Options&) __asm__("__wrap__ZN4gyre11make_engineERKNS_8ActorSetERKNS_7OptionsE");

std::unique_ptr<gyre::Engine> make_engine_of_environment(const gyre::ActorSet& actors,
                                                         const gyre::Options& options) {
  gyre::Options changed = options;
  if (gyre::chosen_engine(options) == gyre::EngineKind::cuda &&
      options.transport == gyre::TransportKind::automatic) {
    changed.transport = gyre_test::transport_of_environment().value_or(gyre::TransportKind::automatic);
  }
  if (gyre_test::isolation_under_test == gyre::Isolation::in_process)
    changed.isolation = gyre::Isolation::in_process;
  return make_the_engine(actors, changed);
}

const gyre::EngineKind gyre_test::engine_under_test = gyre::EngineKind::cuda;
gyre::Isolation gyre_test::isolation_under_test = gyre::Isolation::process;

int main(int argc, char** argv) {
  const char* const isolation = std::getenv("GYRE_TEST_ISOLATION");
  if ((isolation != nullptr && std::string_view(isolation) == "in_process") ||
      gyre_test::transport_of_environment() == gyre::TransportKind::unified)
    gyre_test::isolation_under_test = gyre::Isolation::in_process;
  if (gyre::cuda::Driver::device_count() == 0) {
    std::puts("skipped: no CUDA device here");
    return 77;
  }
  return gyre_test::run_tests(argc, argv);
}
