// A histogram of times whose buckets grow with the times: two significant digits, whatever the range.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace gyre::bench {

/// Counts of whole numbers, nanoseconds mostly. Below 256 each number has its own bucket; above, every
/// doubling has 128, so a bucket is at most 1/128 of its numbers wide. Not thread-safe; merge() is for
/// histograms of several threads.
class Histogram {
 public:
  Histogram() : counts_(index_of(UINT64_MAX) + 1) {}

  void add(uint64_t value, uint64_t times = 1) {
    counts_[index_of(value)] += times;
    count_ += times;
    if (value > max_) max_ = value;
  }
  void merge(const Histogram& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    if (other.max_ > max_) max_ = other.max_;
  }

  uint64_t count() const { return count_; }
  /// Exact; 0 where there is none.
  uint64_t max() const { return max_; }
  /// The nearest-rank percentile, as the highest number of its bucket, or max() where that is less. 0 where
  /// there is none. `per_mille`: 1 to 1000.
  uint64_t percentile(uint64_t per_mille) const {
    const uint64_t rank = (count_ * per_mille + 999) / 1000;  // from 1
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= rank && seen != 0) return highest_of(i) < max_ ? highest_of(i) : max_;
    }
    return 0;
  }

  /// Calls visit(lowest, highest, count) for each bucket with something in it, ascending.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] != 0) visit(lowest_of(i), highest_of(i), counts_[i]);
    }
  }
  /// "lowest:count lowest:count …", ascending: what results files hold, and plot.py reads.
  std::string text() const {
    std::string text;
    for_each([&text](uint64_t lowest, uint64_t, uint64_t count) {
      if (!text.empty()) text += ' ';
      text += std::to_string(lowest) + ':' + std::to_string(count);
    });
    return text;
  }

 private:
  static constexpr int digits = 7;  // bits of a number that its bucket keeps, behind the leading one

  static size_t index_of(uint64_t value) {
    const int width = std::bit_width(value);
    if (width <= digits + 1) return value;
    const int dropped = width - digits - 1;
    return (size_t(dropped) << digits) + (value >> dropped);
  }
  static uint64_t lowest_of(size_t index) {
    if (index < size_t(2) << digits) return index;
    const size_t dropped = (index >> digits) - 1;
    return (uint64_t(index) - (uint64_t(dropped) << digits)) << dropped;
  }
  static uint64_t highest_of(size_t index) {
    if (index < size_t(2) << digits) return index;
    return lowest_of(index) + ((uint64_t(1) << ((index >> digits) - 1)) - 1);
  }

  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace gyre::bench
