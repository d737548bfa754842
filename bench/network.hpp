// The network of gyre-bench inference: its parameters, its requests, and what each must be answered.
#pragma once

#include <inference/mlp.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gyre::bench {

/// Parameters of inference::Mlp: layer after layer, as a trained network has them in size.
std::vector<float> network_parameters();

/// Requests of a number of rows each, and their scores, computed on the host in double. One thread's.
class NetworkMessage {
 public:
  /// @param name  what errors call the row
  /// @param rows  1 to inference::Mlp::most_rows
  NetworkMessage(std::string name, std::span<const float> parameters, uint32_t rows);

  /// Goes on to the next request.
  void next() { now_ = (now_ + 1) % count; }
  /// Returns the request's features, row after row.
  std::span<const float> features() const { return part(features_, inference::Mlp::features); }
  /// Throws Error unless there are as many scores as expected, each within 1e-5 of what the host computed.
  template <class Scores>
  void expect(const Scores& scores) const {
    const std::span<const float> expected = part(expected_, inference::Mlp::scores);
    expect_size(scores.size());
    for (uint32_t i = 0; i < expected.size(); ++i) {
      const float difference = scores[i] - expected[i];
      if (!(difference < 1e-5f && difference > -1e-5f)) fail(i, scores[i]);
    }
  }

 private:
  static constexpr uint32_t count = 64;

  std::span<const float> part(const std::vector<float>& all, uint32_t columns) const {
    return std::span(all).subspan(size_t(now_) * rows_ * columns, size_t(rows_) * columns);
  }
  void expect_size(size_t size) const;
  [[noreturn]] void fail(uint32_t i, float score) const;

  std::string name_;
  uint32_t rows_;
  uint32_t now_ = 0;
  std::vector<float> features_, expected_;  // of all requests
};

}  // namespace gyre::bench
