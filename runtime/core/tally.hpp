// Counts that many threads add to and few read: each thread adds to a line of its own.
#pragma once

#include <gyre/runtime/calls/thread_number.hpp>

#include <array>
#include <atomic>
#include <cstddef>

namespace gyre::detail {

/// Holds one count for each value of `Of` below Of::count. Thread-safe. A thread with a number adds by a
/// plain store to lines that it alone writes; threads without a number share one stripe.
template <class Of>
class Tally {
 public:
  void add(Of what, uint64_t n = 1) {
    const uint32_t thread = thread_number();
    std::atomic<uint64_t>& count = stripes_[thread].counts[size_t(what)];
    if (thread < thread_numbers) {
      // Both releases pair with the load in sum(): a sum that includes `n` sees what this thread did before.
      count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_release);
    } else {
      count.fetch_add(n, std::memory_order_release);
    }
  }
  /// Takes back one count that the calling thread added.
  void take_back(Of what) { add(what, ~uint64_t(0)); }
  /// Returns the sum of all that was added before the call, and perhaps of later additions.
  uint64_t sum(Of what) const {
    uint64_t total = 0;
    for (const Stripe& stripe : stripes_)
      total += stripe.counts[size_t(what)].load(std::memory_order_acquire);
    return total;
  }

 private:
  struct alignas(128) Stripe {
    std::array<std::atomic<uint64_t>, size_t(Of::count)> counts{};
  };
  std::array<Stripe, thread_numbers + 1> stripes_;
};

}  // namespace gyre::detail
