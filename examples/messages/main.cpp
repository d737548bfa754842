// Messages of a schema of one's own, as docs/reference/messages.md explains them.
#include <capnp/serialize.h>
#include <gyre/gyre.hpp>
#include <station_sources.hpp>

#include <cstdio>
#include <string_view>
#include <vector>

#include <station/readings.official.hpp>
#include <station/summary.hpp>

using namespace station;

namespace {

const gyre::Address<Summary> summary{.key = 1};

void fill(SummaryRequest::Builder request) {
  auto readings = request.initReadings(2);
  readings[0].setSensor("roof");
  readings[0].setValue(86);
  readings[0].setUnit(Unit::FAHRENHEIT);
  readings[1].setSensor("boiler");
  readings[1].setValue(61.5f);
  request.getLimit().setAtMost(60);
}

void print(const char* what, const gyre::Result<gyre::Reply<SummaryResponse>>& reply) {
  if (!reply) {
    std::printf("%s: %s\n", what, reply.error().message().c_str());
    return;
  }
  std::printf("%s:", what);
  for (const auto result : reply.value()->getResults()) {
    std::printf(" %g%s", result.getCelsius(), result.getAbove() ? " (too hot)" : "");
  }
  std::printf(", hottest: %s\n", reply.value()->getHottest().cStr());
}

void ask_and_tell(gyre::Client client) {
  print("asked", client.ask<SummaryRequest>(summary, fill).get());

  const auto told =
      client.tell<Calibration>(summary, [](Calibration::Builder calibration) { calibration.setOffset(-2); });
  if (!told) std::printf("not told: %s\n", told.error().message().c_str());
  print("calibrated", client.ask<SummaryRequest>(summary, fill).get());
}

// A message that came as bytes, and its reply as bytes again.
std::vector<std::byte> pass_on(gyre::Client client, std::span<const std::byte> bytes) {
  const auto reply = client.ask<SummaryRequest>(summary, gyre::Encoded{bytes}).get();
  print("from outside", reply);
  if (!reply) return {};
  return gyre::encode(reply.value().body(), gyre::Encoding::packed);
}

void fill_much(SummaryRequest::Builder request) {
  auto readings = request.initReadings(10'000);
  for (uint32_t i = 0; i < readings.size(); ++i) readings[i].setValue(float(i));
}

// Far more than fits a slot, both ways: through the arena.
void ask_much(gyre::Client client) {
  const gyre::AskOptions options{.timeout = std::chrono::seconds(10), .max_reply_bytes = 200'000};
  const auto reply = client.ask<SummaryRequest>(summary, fill_much, options).get();
  if (!reply) {
    std::printf("much: %s\n", reply.error().message().c_str());
    return;
  }
  const auto results = reply.value()->getResults();
  std::printf("much: %u results, the last %g\n", results.size(), results[9'999].getCelsius());
}

}  // namespace

int main(int argc, char** argv) {
  gyre::Options options;
  if (argc > 1 && argv[1] == std::string_view("cpu")) options.engine = gyre::EngineKind::cpu;
  gyre::Runtime runtime = gyre::Runtime::launch(gyre::ActorSet::of<Summary>(station::sources), options);
  gyre::Client client = runtime.client();

  ask_and_tell(client);

  capnp::MallocMessageBuilder message;
  fill(message.initRoot<SummaryRequest>());
  const auto stream = capnp::messageToFlatArray(message);
  const auto bytes = stream.asBytes();
  const auto answer = pass_on(client, std::as_bytes(std::span(bytes.begin(), bytes.size())));
  std::printf("answer: %zu bytes, packed\n", answer.size());

  // Whose list lies 1000 words behind its pointer, in a body of three.
  const uint64_t hostile[] = {0x0001000100000000, 0, 0x0000001f00000fa1};
  const gyre::Encoded damaged{std::as_bytes(std::span(hostile)), gyre::Encoding::body};
  print("damaged", client.ask<SummaryRequest>(summary, damaged).get());

  ask_much(client);
  return runtime.terminate().books.balanced() ? 0 : 1;
}
