// The free slots of the call table: a shared pool, and a cache of some in each thread.
#pragma once

#include <gyre/runtime/calls/slots.hpp>
#include <gyre/runtime/calls/thread_number.hpp>

#include <array>
#include <atomic>
#include <boost/lockfree/stack.hpp>
#include <cstdint>

namespace gyre::detail {

/// Thread-safe, lock-free; nothing allocates after construction. A thread with a number keeps slots that it
/// gave back, at most 128 and a sixteenth of all; threads together keep at most half of all.
class SlotPool {
 public:
  /// All of `slots` slots are free.
  explicit SlotPool(uint32_t slots);

  /// False if there is no free slot for this thread.
  bool take(uint32_t& index) {
    const uint32_t thread = thread_number();
    if (thread < thread_numbers) {
      Cache& cache = caches_[thread];
      if (cache.count != 0 || take_page(cache)) {
        index = cache.indices[--cache.count];
        return true;
      }
    }
    return take_shared(index);
  }
  void give(uint32_t index) {
    const uint32_t thread = thread_number();
    if (thread < thread_numbers) {
      Cache& cache = caches_[thread];
      // A thread that takes none has no limit, and keeps none.
      if (cache.count < cache.limit || (cache.limit != 0 && raise_limit(cache))) {
        GYRE_ASSERT(cache.count < Cache::most);
        cache.indices[cache.count++] = index;
        return;
      }
    }
    shared_.bounded_push(index);
  }

 private:
  // A thread's number is its alone: the cache needs no atomic operations.
  struct alignas(128) Cache {
    static constexpr uint32_t most = 128;
    uint32_t count = 0;
    uint32_t limit = 0;  // of count, in whole pages: the thread's part of the allowance
    std::array<uint32_t, most> indices;
  };
  static_assert(Cache::most % SlotPage::count == 0);

  bool take_shared(uint32_t& index);
  bool take_page(Cache& cache);
  bool raise_limit(Cache& cache);

  const uint32_t most_per_cache_;    // whole pages of slots
  std::atomic<uint32_t> allowance_;  // slots that no cache has as its limit yet
  std::array<Cache, thread_numbers> caches_;
  // Reserved in the constructor's body: a constructor that throws would leak.
  boost::lockfree::stack<uint32_t> shared_{0};        // slots
  boost::lockfree::stack<uint32_t> shared_pages_{0};  // whole pages of slots
};

}  // namespace gyre::detail
