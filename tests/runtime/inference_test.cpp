// The networks and the feature store of examples/inference, on either engine.
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <inference_sources.hpp>

#include <cmath>
#include <random>
#include <vector>

#include <inference/feature_store.hpp>
#include <inference/feature_store.official.hpp>
#include <inference/mlp.hpp>
#include <inference/mlp.official.hpp>

#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace inference;

namespace {

constexpr uint32_t width = 24;  // of the feature store's table

std::vector<float> any_floats(uint32_t seed, size_t count, float most) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> any(-most, most);
  std::vector<float> values(count);
  for (float& value : values) value = any(random);
  return values;
}

std::vector<double> dense_on_host(const float*& parameters, const std::vector<double>& x, uint32_t inputs,
                                  uint32_t outputs, bool with_relu) {
  std::vector<double> y;
  for (size_t row = 0; row < x.size() / inputs; ++row) {
    for (uint32_t output = 0; output < outputs; ++output) {
      double sum = parameters[inputs * outputs + output];
      for (uint32_t i = 0; i < inputs; ++i) sum += parameters[output * inputs + i] * x[row * inputs + i];
      y.push_back(with_relu ? std::max(sum, 0.0) : sum);
    }
  }
  parameters += inputs * outputs + outputs;
  return y;
}

std::vector<double> scores_on_host(const std::vector<float>& parameters, const std::vector<float>& features) {
  const float* layer = parameters.data();
  std::vector<double> x(features.begin(), features.end());
  x = dense_on_host(layer, x, Mlp::features, Mlp::first_units, true);
  x = dense_on_host(layer, x, Mlp::first_units, Mlp::second_units, true);
  return dense_on_host(layer, x, Mlp::second_units, Mlp::scores, false);
}

auto use(Client& client, Address<Mlp> network, const Buffer<float>& weights) {
  return client
      .ask<UseWeights>(network, [&](UseWeights::Builder request) { weights.set(request.initWeights()); })
      .get();
}

auto infer(Client& client, Address<Mlp> network, const std::vector<float>& features) {
  return client
      .ask<InferRequest>(network,
                         [&](InferRequest::Builder request) {
                           auto list = request.initFeatures(uint32_t(features.size()));
                           for (uint32_t i = 0; i < features.size(); ++i) list.set(i, features[i]);
                         })
      .get();
}

auto look_up(Client& client, Address<FeatureStore> store, const std::vector<uint32_t>& rows) {
  AskOptions room;
  room.max_reply_bytes = uint32_t(16 + rows.size() * width * sizeof(float));
  return client
      .ask<LookUp>(
          store,
          [&](LookUp::Builder request) {
            auto list = request.initRows(uint32_t(rows.size()));
            for (uint32_t i = 0; i < rows.size(); ++i) list.set(i, rows[i]);
          },
          room)
      .get();
}

}  // namespace

TEST_CASE(
    "a network's scores are those of the host, for one row and for many, and for each actor's own weights",
    "[gpu][unified][inference]") {
  for (const uint32_t block : {32u, 256u}) {
    Runtime runtime =
        Runtime::launch(ActorSet::of<Mlp>(inference::sources), on_this_engine({.block = block}));
    Client client = runtime.client();
    for (const uint64_t key : {1u, 2u}) {
      const Address<Mlp> network{.key = key};
      const std::vector<float> parameters = any_floats(uint32_t(key), Mlp::parameters, 0.125f);
      auto weights = runtime.allocate<float>(MemoryKind::device, parameters.size());
      weights.write(parameters);
      const auto in_use = use(client, network, weights);
      REQUIRE(in_use);
      CHECK(in_use.value()->getParameters() == Mlp::parameters);
      for (const uint32_t rows : {1u, 3u, 4u, 7u, 16u}) {
        const std::vector<float> features = any_floats(rows, rows * Mlp::features, 1);
        const auto reply = infer(client, network, features);
        INFO(fmt::format("{} rows, block {}", rows, block));
        REQUIRE(reply);
        const std::vector<double> expected = scores_on_host(parameters, features);
        const auto scores = reply.value()->getScores();
        REQUIRE(scores.size() == expected.size());
        double most = 0;
        for (uint32_t i = 0; i < expected.size(); ++i)
          most = std::max(most, std::abs(double(scores[i]) - expected[i]));
        CHECK(most < 1e-5);
      }
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("an actor that keeps a buffer's handle is told once the buffer is freed, and takes another one",
          "[gpu][unified][inference]") {
  Runtime runtime = Runtime::launch(ActorSet::of<Mlp>(inference::sources), on_this_engine());
  Client client = runtime.client();
  const Address<Mlp> network{};
  const std::vector<float> features = any_floats(1, Mlp::features, 1);
  const auto before = infer(client, network, features);
  REQUIRE_FALSE(before);
  CHECK(before.error().status == Status::bad_buffer);
  const std::vector<float> parameters = any_floats(5, Mlp::parameters, 0.125f);
  {
    auto weights = runtime.allocate<float>(MemoryKind::device, parameters.size());
    weights.write(parameters);
    REQUIRE(use(client, network, weights));
    CHECK(infer(client, network, features));
  }
  const auto freed = infer(client, network, features);
  REQUIRE_FALSE(freed);
  CHECK(freed.error().status == Status::bad_buffer);
  auto others = runtime.allocate<float>(MemoryKind::pinned, parameters.size());
  others.write(parameters);
  REQUIRE(use(client, network, others));
  const auto after = infer(client, network, features);
  REQUIRE(after);
  CHECK(std::abs(double(after.value()->getScores()[0]) - scores_on_host(parameters, features)[0]) < 1e-5);
  const auto ragged = infer(client, network, any_floats(1, Mlp::features + 1, 1));
  REQUIRE_FALSE(ragged);
  CHECK(ragged.error().status == Status::handler_failed);
  CHECK(ragged.error().detail == Mlp::not_whole_rows);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a feature store gathers the rows that are asked for, in their order",
          "[gpu][unified][inference]") {
  Runtime runtime = Runtime::launch(ActorSet::of<FeatureStore>(inference::sources), on_this_engine());
  Client client = runtime.client();
  const Address<FeatureStore> store{.key = 3};
  constexpr uint32_t count = 500;
  const std::vector<float> table = any_floats(9, width * count, 100);
  auto values = runtime.allocate<float>(MemoryKind::device, table.size());
  values.write(table);
  const auto in_use = client
                          .ask<UseTable>(store,
                                         [&](UseTable::Builder request) {
                                           values.set(request.initValues());
                                           request.setWidth(width);
                                         })
                          .get();
  REQUIRE(in_use);
  CHECK(in_use.value()->getRows() == count);
  std::mt19937 random(4);
  for (const uint32_t wanted : {0u, 1u, 2u, 100u}) {
    std::vector<uint32_t> rows(wanted);
    for (uint32_t& row : rows) row = random() % count;
    const auto reply = look_up(client, store, rows);
    REQUIRE(reply);
    const auto gathered = reply.value()->getValues();
    REQUIRE(gathered.size() == wanted * width);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < gathered.size(); ++i)
      wrong += gathered[i] != table[rows[i / width] * width + i % width];
    CHECK(wrong == 0);
  }
  const auto beyond = look_up(client, store, {1, count});
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().detail == FeatureStore::no_such_row);
  const auto empty = look_up(client, {.key = 4}, {1});  // has no table
  REQUIRE_FALSE(empty);
  CHECK(empty.error().status == Status::bad_buffer);
  CHECK(runtime.terminate().books.balanced());
}
