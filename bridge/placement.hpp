// Which worker an actor lives on, by its key: the same on both sides.
#pragma once

#include <gyre/messages/fixed_width.hpp>

namespace gyre {

/// Places actors on `workers` workers: the key modulo the workers, by a multiplication. A plain value.
class Placement {
 public:
  /// `workers` is at least 1.
  GYRE_DEVICE constexpr explicit Placement(uint32_t workers)
      : reciprocal_(~uint64_t(0) / workers), workers_(workers) {}

  /// Returns the worker of an actor.
  GYRE_DEVICE constexpr uint32_t worker_of(uint64_t key) const {
    // reciprocal_ is less than 2^64 / workers_ by at most 1, so the quotient is too, and the remainder is
    // below 2 * workers_.
    const uint64_t left = key - high_half(key, reciprocal_) * workers_;
    return uint32_t(left < workers_ ? left : left - workers_);
  }

 private:
  // Of the product of both.
  GYRE_DEVICE static constexpr uint64_t high_half(uint64_t a, uint64_t b) {
#if defined(__CUDACC_RTC__)
    return __umul64hi(a, b);
#else
    __extension__ using Product = unsigned __int128;
    return uint64_t(Product(a) * b >> 64);
#endif
  }

  uint64_t reciprocal_;
  uint32_t workers_;
};

}  // namespace gyre
