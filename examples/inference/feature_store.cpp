// A table of embeddings that stays in the engine's memory, and rows of it by key, as docs/how-to/inference.md
// shows.
#include <gyre/gyre.hpp>
#include <inference_sources.hpp>

#include <cstdio>
#include <string_view>
#include <vector>

#include <inference/feature_store.hpp>
#include <inference/feature_store.official.hpp>

using namespace inference;

namespace {

const gyre::Address<FeatureStore> store{.key = 1};
constexpr uint32_t width = 16, rows = 10'000;

// Value 3 of row 7 is 7.03125.
float value_of(uint32_t row, uint32_t column) { return float(row) + float(column) / 96; }

bool look_up(gyre::Client client, const std::vector<uint32_t>& keys) {
  const auto fill = [&](LookUp::Builder request) {
    auto list = request.initRows(uint32_t(keys.size()));
    for (uint32_t i = 0; i < keys.size(); ++i) list.set(i, keys[i]);
  };
  const auto reply = client.ask<LookUp>(store, fill).get();
  if (!reply) {
    std::printf("%s\n", reply.error().message().c_str());
    return false;
  }
  const auto values = reply.value()->getValues();
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < values.size(); ++i) wrong += values[i] != value_of(keys[i / width], i % width);
  std::printf("%zu rows of %u values, %u wrong\n", keys.size(), width, wrong);
  return wrong == 0;
}

}  // namespace

int main(int argc, char** argv) {
  gyre::Options options;
  if (argc > 1 && argv[1] == std::string_view("cpu")) options.engine = gyre::EngineKind::cpu;
  gyre::Runtime runtime =
      gyre::Runtime::launch(gyre::ActorSet::of<FeatureStore>(inference::sources), options);
  std::vector<float> table(size_t(rows) * width);
  for (uint32_t i = 0; i < table.size(); ++i) table[i] = value_of(i / width, i % width);
  auto values = runtime.allocate<float>(gyre::MemoryKind::device, table.size());
  values.write(table);

  gyre::Client client = runtime.client();
  const auto in_use = client
                          .ask<UseTable>(store,
                                         [&](UseTable::Builder request) {
                                           values.set(request.initValues());
                                           request.setWidth(width);
                                         })
                          .get();
  if (!in_use) {
    std::printf("%s\n", in_use.error().message().c_str());
    return 1;
  }
  std::printf("a table of %llu rows\n", static_cast<unsigned long long>(in_use.value()->getRows()));
  const bool right = look_up(client, {7, 9999, 0, 7});
  look_up(client, {7, rows});  // there is no such row
  return runtime.terminate().books.balanced() && right ? 0 : 1;
}
