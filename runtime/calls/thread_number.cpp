#include <gyre/runtime/calls/thread_number.hpp>

#include <atomic>
#include <bit>

namespace gyre::detail {

namespace {

static_assert(thread_numbers == 64, "a bit each");
std::atomic<uint64_t> taken{0};

// Gives the number back when the thread ends; what runs in it afterwards does without.
struct ThreadsNumber {
  ~ThreadsNumber() {
    const uint32_t number = known_thread_number;
    known_thread_number = thread_numbers;
    // Pairs with the exchange in take_thread_number(): the next owner sees what was written under the number.
    if (number < thread_numbers) taken.fetch_and(~(uint64_t(1) << number), std::memory_order_release);
  }
};

}  // namespace

constinit thread_local uint32_t known_thread_number = thread_number_unknown;

uint32_t take_thread_number() noexcept {
  thread_local ThreadsNumber at_the_end;
  (void)at_the_end;
  uint64_t seen = taken.load(std::memory_order_relaxed);
  do {
    if (~seen == 0) return known_thread_number = thread_numbers;
  } while (!taken.compare_exchange_weak(seen, seen | (~seen & (seen + 1)), std::memory_order_acquire,
                                        std::memory_order_relaxed));
  return known_thread_number = uint32_t(std::countr_one(seen));
}

}  // namespace gyre::detail
