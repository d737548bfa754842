// Large requests and replies, as docs/tutorials/03-buffers-and-large-payloads.md explains them.
#include <gyre/gyre.hpp>
#include <tones_sources.hpp>

#include <cstdio>
#include <string_view>

#include <recording/tone.hpp>
#include <recording/tone.official.hpp>

using namespace recording;

namespace {

const gyre::Address<Recorder> recorder{.key = 1};

// 10,000 samples: the reply's body has 40,016 bytes, far more than a slot.
void ask_for_a_tone(gyre::Client client, uint32_t max_reply_bytes) {
  const gyre::AskOptions options{.timeout = {}, .max_reply_bytes = max_reply_bytes};
  const auto fill = [](ToneRequest::Builder request) {
    request.setSamples(10'000);
    request.setStep(0.5f);
  };
  const auto reply = client.ask<ToneRequest>(recorder, fill, options).get();
  if (!reply) {
    std::printf("%s\n", reply.error().message().c_str());
    return;
  }
  const auto samples = reply.value()->getSamples();  // read where they arrived, in the arena
  std::printf("%u samples, the last %g\n", samples.size(), samples[samples.size() - 1]);
}

// A hundred thousand samples in the request, a number in the reply.
void measure(gyre::Client client) {
  const auto fill = [](EnergyRequest::Builder request) {
    auto samples = request.initSamples(100'000);
    for (uint32_t i = 0; i < samples.size(); ++i) samples.set(i, i % 2 == 0 ? 1.0f : -2.0f);
  };
  const gyre::AskOptions small_reply{.timeout = {}, .max_reply_bytes = 64};
  const auto reply = client.ask<EnergyRequest>(recorder, fill, small_reply).get();
  if (!reply) {
    std::printf("%s\n", reply.error().message().c_str());
    return;
  }
  std::printf("energy: %g\n", reply.value()->getEnergy());
}

}  // namespace

int main(int argc, char** argv) {
  gyre::Options options;
  if (argc > 1 && argv[1] == std::string_view("cpu")) options.engine = gyre::EngineKind::cpu;
  options.arena_bytes = 16 << 20;  // for the bodies of all messages in flight that do not fit a slot
  gyre::Runtime runtime = gyre::Runtime::launch(gyre::ActorSet::of<Recorder>(tones::sources), options);
  std::printf("fits a slot: %u bytes of body\n", runtime.client().body_capacity());

  ask_for_a_tone(runtime.client(), 0);            // room as large as the request
  ask_for_a_tone(runtime.client(), 48'000);       // room enough
  ask_for_a_tone(runtime.client(), 100'000'000);  // more room than the arena can ever have
  measure(runtime.client());
  return runtime.terminate().books.balanced() ? 0 : 1;
}
