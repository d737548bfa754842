// What the vector-add rows send and must get back.
#pragma once

#include <fmt/format.h>
#include <gyre/bridge/error.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gyre::bench {

/// Two vectors of floats, other ones for each message and place, small enough that their sums are exact. One
/// thread's.
class VectorMessage {
 public:
  /// The n of the rows that add small vectors.
  static constexpr uint32_t usual_size = 25;

  VectorMessage(std::string row, uint32_t size) : row_(std::move(row)), size_(size) {}

  void next() { ++number_; }
  uint32_t size() const { return size_; }
  std::string name() const { return fmt::format("{}, message {}", row_, number_); }

  float a(uint32_t i) const { return float((number_ * 31 + i * 7) & 0xfffff); }
  float b(uint32_t i) const { return float((number_ * 17 + i * 13) & 0xfffff) + 0.5f; }
  /// Throws Error, which names row, message and element, unless `sum` is that of element `i`.
  void expect(uint32_t i, float sum) const {
    if (sum != a(i) + b(i)) [[unlikely]] {
      throw Error(
          fmt::format("{}: element {} of {} came back as {}, not {} + {}: no figure of this run "
                      "counts; please report it",
                      name(), i, size_, sum, a(i), b(i)));
    }
  }
  /// Throws Error unless so many elements came back.
  void expect_size(uint64_t elements) const {
    if (elements != size_) [[unlikely]] {
      throw Error(
          fmt::format("{}: {} elements came back, not {}; please report it", name(), elements, size_));
    }
  }

 private:
  std::string row_;
  uint32_t size_;
  uint64_t number_ = 0;
};

}  // namespace gyre::bench
