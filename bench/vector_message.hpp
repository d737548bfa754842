// What the vector-add rows send and must get back.
#pragma once

#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gyre::bench {

/// Two vectors of floats, other ones for each message and place, small enough that their sums are exact. They
/// are made by next(), as EchoMessage's words are, so that no row's round trip holds that. One thread's.
class VectorMessage {
 public:
  /// The n of the rows that add small vectors.
  static constexpr uint32_t usual_size = 25;

  VectorMessage(std::string row, uint32_t size) : row_(std::move(row)), a_(size), b_(size), sum_(size) {
    fill();
  }

  void next() {
    ++number_;
    fill();
  }
  uint32_t size() const { return uint32_t(a_.size()); }
  std::string name() const { return fmt::format("{}, message {}", row_, number_); }

  float a(uint32_t i) const { return a_[i]; }
  float b(uint32_t i) const { return b_[i]; }
  /// Throws Error, which names row, message and element, unless `sum` is that of element `i`.
  void expect(uint32_t i, float sum) const {
    if (sum != sum_[i]) [[unlikely]]
      wrong(i, sum);
  }
  /// Throws Error unless so many elements came back.
  void expect_size(uint64_t elements) const {
    if (elements != size()) [[unlikely]] {
      throw Error(
          fmt::format("{}: {} elements came back, not {}; please report it", name(), elements, size()));
    }
  }

 private:
  void fill() {
    for (uint32_t i = 0; i < size(); ++i) {
      a_[i] = float((number_ * 31 + i * 7) & 0xfffff);
      b_[i] = float((number_ * 17 + i * 13) & 0xfffff) + 0.5f;
      sum_[i] = a_[i] + b_[i];
    }
  }
  [[noreturn]] void wrong(uint32_t i, float sum) const {
    throw Error(
        fmt::format("{}: element {} of {} came back as {}, not {} + {}: no figure of this run "
                    "counts; please report it",
                    name(), i, size(), sum, a(i), b(i)));
  }

  std::string row_;
  std::vector<float> a_, b_, sum_;
  uint64_t number_ = 0;
};

}  // namespace gyre::bench
