#include "network.hpp"

#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>

#include <cmath>
#include <random>

namespace gyre::bench {

namespace {

using inference::Mlp;

// Appends the outputs of a layer for each row of `x`.
std::vector<double> dense(std::span<const float>& parameters, const std::vector<double>& x, uint32_t inputs,
                          uint32_t outputs) {
  std::vector<double> y;
  for (size_t row = 0; row < x.size() / inputs; ++row) {
    for (uint32_t output = 0; output < outputs; ++output) {
      double sum = parameters[size_t(inputs) * outputs + output];
      for (uint32_t i = 0; i < inputs; ++i)
        sum += double(parameters[size_t(output) * inputs + i]) * x[row * inputs + i];
      y.push_back(sum);
    }
  }
  parameters = parameters.subspan(size_t(inputs) * outputs + outputs);
  return y;
}

std::vector<double> relu(std::vector<double> values) {
  for (double& value : values) value = std::max(value, 0.0);
  return values;
}

}  // namespace

std::vector<float> network_parameters() {
  std::mt19937 random(1);
  std::vector<float> parameters;
  const auto add_layer = [&](uint32_t inputs, uint32_t outputs) {
    // PyTorch's own initialisation of a linear layer: uniform within 1 / sqrt(inputs).
    std::uniform_real_distribution<float> any(-1 / std::sqrt(float(inputs)), 1 / std::sqrt(float(inputs)));
    for (uint32_t i = 0; i < inputs * outputs + outputs; ++i) parameters.push_back(any(random));
  };
  add_layer(Mlp::features, Mlp::first_units);
  add_layer(Mlp::first_units, Mlp::second_units);
  add_layer(Mlp::second_units, Mlp::scores);
  return parameters;
}

NetworkMessage::NetworkMessage(std::string name, std::span<const float> parameters, uint32_t rows)
    : name_(std::move(name)), rows_(rows) {
  std::mt19937 random(rows);
  std::uniform_real_distribution<float> any(-1, 1);
  features_.resize(size_t(count) * rows * Mlp::features);
  for (float& feature : features_) feature = any(random);
  std::vector<double> x(features_.begin(), features_.end());
  x = relu(dense(parameters, x, Mlp::features, Mlp::first_units));
  x = relu(dense(parameters, x, Mlp::first_units, Mlp::second_units));
  x = dense(parameters, x, Mlp::second_units, Mlp::scores);
  expected_.assign(x.begin(), x.end());
}

void NetworkMessage::expect_size(size_t size) const {
  if (size != size_t(rows_) * Mlp::scores) {
    throw Error(fmt::format("{}: a reply has {} scores; {} rows have {}; please report it", name_, size,
                            rows_, rows_ * Mlp::scores));
  }
}

void NetworkMessage::fail(uint32_t i, float score) const {
  throw Error(fmt::format("{}: score {} of a reply is {}; it must be {} within 1e-5; please report it", name_,
                          i, score, part(expected_, Mlp::scores)[i]));
}

}  // namespace gyre::bench
