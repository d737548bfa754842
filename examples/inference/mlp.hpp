// Mlp: a small neural network as an actor. Its weights are a buffer: most often a tensor that PyTorch
// trained.
#pragma once

#include <gyre/device/context.hpp>
#include <inference/dense.hpp>
#include <inference/mlp.view.hpp>

namespace inference {

/// Two hidden layers with ReLU: 64 features, 128 and 64 units, 8 scores. In Float32.
struct Mlp {
  using Handles = gyre::Handles<view::UseWeights, view::InferRequest>;

  static constexpr uint32_t features = 64, first_units = 128, second_units = 64, scores = 8;
  static constexpr uint32_t most_rows = 16;
  using First = Dense<features, first_units>;
  using Second = Dense<first_units, second_units>;
  using Third = Dense<second_units, scores>;
  static constexpr uint32_t parameters = First::parameters + Second::parameters + Third::parameters;
  static constexpr uint32_t shared_scratch_bytes =
      most_rows * (features + first_units + second_units) * uint32_t(sizeof(float));
  static constexpr uint32_t max_reply_bytes = 8 * (1 + 1) + most_rows * scores * uint32_t(sizeof(float));

  /// Codes of Failure::code.
  enum Wrong : uint32_t {
    not_aligned = 1,  ///< the parameters do not begin at a multiple of 16 bytes
    not_whole_rows    ///< the request has not 1 to 16 rows of 64 features
  };

  gyre::StoredHandle weights;

  GYRE_DEVICE void on(gyre::Context& ctx, view::UseWeights::Reader in, view::WeightsInUse::Builder out) {
    const gyre::StoredHandle handle(in.getWeights());
    const auto there = ctx.buffer<const float>(handle, parameters);
    if (there.data() == nullptr) return;  // the reply says why
    if (reinterpret_cast<uintptr_t>(there.data()) % 16 != 0) return ctx.fail(not_aligned);
    if (!ctx.ok()) return;
    if (ctx.rank() == 0) weights = handle;
    out.setParameters(parameters);
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::InferRequest::Reader in, view::Scores::Builder out) {
    const auto rows_in = in.getFeatures();
    const uint32_t rows = rows_in.size() / features;
    if (rows == 0 || rows > most_rows || rows_in.size() % features != 0) return ctx.fail(not_whole_rows);
    constexpr auto in_shared = gyre::ScratchIn::shared;
    const auto x = ctx.scratch<float, in_shared>(rows * features);
    const auto y = ctx.scratch<float, in_shared>(rows * first_units);
    const auto z = ctx.scratch<float, in_shared>(rows * second_units);
    const auto result = out.initScores(rows * scores);
    for (uint32_t i = ctx.rank(); i < rows * features; i += ctx.size()) x[i] = rows_in[i];
    const auto there = ctx.buffer<const float>(weights, parameters);
    // All threads go on, or none: the host may free the buffer while they look it up. Also the barrier behind
    // x.
    if (!ctx.ok()) return;
    // All loads are on their way before the first layer is computed.
    const First first(there.data());
    const Second second(there.data() + First::parameters);
    const Third third(there.data() + First::parameters + Second::parameters);
    first.apply(x.data(), rows,
                [&](uint32_t row, uint32_t unit, float value) { y[row * first_units + unit] = relu(value); });
    ctx.sync();
    second.apply(y.data(), rows, [&](uint32_t row, uint32_t unit, float value) {
      z[row * second_units + unit] = relu(value);
    });
    ctx.sync();
    third.apply(z.data(), rows,
                [&](uint32_t row, uint32_t score, float value) { result.set(row * scores + score, value); });
  }
};

}  // namespace inference
