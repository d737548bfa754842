// Samples that stay where the workers are while messages work on them, as docs/how-to/buffers.md explains it.
#include <gyre/gyre.hpp>
#include <recording_sources.hpp>

#include <cstdio>
#include <numeric>
#include <string_view>
#include <vector>

#include <recording/scale.hpp>
#include <recording/scale.official.hpp>

using namespace recording;

namespace {

const gyre::Address<Scale> scale{.key = 1};

// Asks and waits; says why where there is no reply.
bool scaled(gyre::Client client, const gyre::Buffer<float>& samples, float factor) {
  const auto fill = [&](ScaleRequest::Builder request) {
    samples.set(request.initSamples());
    request.setFactor(factor);
  };
  const auto reply = client.ask<ScaleRequest>(scale, fill).get();
  if (!reply) std::printf("%s\n", reply.error().message().c_str());
  return bool(reply);
}

// A million samples in the engine's own memory.
void in_device_memory(gyre::Runtime& runtime) {
  std::vector<float> recorded(1'000'000);
  std::iota(recorded.begin(), recorded.end(), 0.0f);
  auto samples = runtime.allocate<float>(gyre::MemoryKind::device, recorded.size());
  samples.write(recorded);
  for (int i = 0; i < 3; ++i) {
    if (!scaled(runtime.client(), samples, 0.5f)) return;
  }
  std::vector<float> some(2);
  samples.read(some, 80);
  std::printf("device: samples 80 and 81 are %g and %g\n", some[0], some[1]);
}

// A few in memory that both sides use in place.
void in_pinned_memory(gyre::Runtime& runtime) {
  auto samples = runtime.allocate<float>(gyre::MemoryKind::pinned, 4);
  for (float& sample : samples.host()) sample = 1.5f;
  if (!scaled(runtime.client(), samples, 2)) return;
  std::printf("pinned:");
  for (const float sample : samples.host()) std::printf(" %g", sample);
  std::printf("\n");
}

void of_another_type(gyre::Runtime& runtime) {
  const auto numbers = runtime.allocate<int32_t>(gyre::MemoryKind::device, 10);
  const auto reply =
      runtime.client()
          .ask<ScaleRequest>(scale,
                             [&](ScaleRequest::Builder request) { numbers.set(request.initSamples()); })
          .get();
  if (!reply) std::printf("%s\n", reply.error().message().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  gyre::Options options;
  if (argc > 1 && argv[1] == std::string_view("cpu")) options.engine = gyre::EngineKind::cpu;
  gyre::Runtime runtime = gyre::Runtime::launch(gyre::ActorSet::of<Scale>(recording::sources), options);
  of_another_type(runtime);
  in_device_memory(runtime);
  in_pinned_memory(runtime);
  const gyre::Ledger ledger = runtime.ledger();
  std::printf("in use: %llu; retired: %llu\n",
              static_cast<unsigned long long>(ledger.used(gyre::MemoryKind::device).buffers),
              static_cast<unsigned long long>(ledger.freed(gyre::MemoryKind::device).buffers));
  const bool balanced = runtime.terminate().books.balanced();
  return balanced && runtime.ledger().empty() ? 0 : 1;
}
