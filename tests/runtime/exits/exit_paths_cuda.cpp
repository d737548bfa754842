// As exit_paths.cpp, for the CUDA engine on a driver in ordinary memory.
#include <gyre/gyre.hpp>
#include <gyre/runtime/cuda/program.hpp>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "support/fake_driver.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

FakeDriver* fake = nullptr;  // for good: a driver is there until the process has ended

// Destroyed after the runtime.
struct SaysWhatIsLeft {
  ~SaysWhatIsLeft() {
    if (fake == nullptr) return;
    std::printf("left: %s\n%s", fake->live().text().c_str(), fake->misuse().c_str());
    std::fflush(stdout);
  }
} says_what_is_left;
std::optional<Runtime> runtime;
std::optional<Buffer<float>> buffer;
std::optional<Reply<ProbeResponse>> reply;

}  // namespace

int main() {
  if (!cuda::nvrtc_available()) return 77;
  fake = new FakeDriver({probe_actors()});
  runtime.emplace(Runtime::launch(
      probe_actors(),
      {.engine = EngineKind::cuda, .isolation = Isolation::in_process, .workers = 2, .slots = 8}));
  buffer.emplace(runtime->allocate<float>(MemoryKind::device, 100));
  Client client = runtime->client();
  reply.emplace(ask(client, Action::ANSWER, 21).get().value());
  std::printf("%s %llu\n", fake->threads_take_signals() ? "the driver takes signals" : "answered",
              static_cast<unsigned long long>((*reply)->getValue()));
  return 0;
}
