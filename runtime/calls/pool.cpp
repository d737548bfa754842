#include <gyre/runtime/calls/pool.hpp>

#include <algorithm>

namespace gyre::detail {

SlotPool::SlotPool(uint32_t slots)
    : most_per_cache_(std::min(Cache::most, slots / 16 / SlotPage::count * SlotPage::count)),
      allowance_(most_per_cache_ == 0 ? 0 : slots / 2) {
  const uint32_t pages = allowance_ != 0 ? slots / SlotPage::count : 0;
  shared_.reserve(slots);
  shared_pages_.reserve(pages);
  for (uint32_t page = pages; page-- > 0;) shared_pages_.bounded_push(page);
  for (uint32_t i = slots; i-- > pages * SlotPage::count;) shared_.bounded_push(i);
}

bool SlotPool::take_shared(uint32_t& index) {
  if (shared_.pop(index)) return true;
  uint32_t page;
  // Another thread may have taken the last page just now, and not given back yet what it does not need of it.
  if (!shared_pages_.pop(page)) return shared_.pop(index);
  index = page * SlotPage::count;
  for (uint32_t i = 1; i < SlotPage::count; ++i) shared_.bounded_push(index + i);
  return true;
}

// Fills an empty cache with a page.
bool SlotPool::take_page(Cache& cache) {
  GYRE_ASSERT(cache.count == 0);
  uint32_t page;
  if ((cache.limit == 0 && !raise_limit(cache)) || !shared_pages_.pop(page)) return false;
  for (uint32_t i = SlotPage::count; i-- > 0;) cache.indices[cache.count++] = page * SlotPage::count + i;
  return true;
}

// Raises the cache's limit by a page, while some allowance is left.
bool SlotPool::raise_limit(Cache& cache) {
  if (cache.limit >= most_per_cache_) return false;
  // Relaxed: the allowance is a count alone; the stacks order what is done to slots.
  uint32_t left = allowance_.load(std::memory_order_relaxed);
  do {
    if (left < SlotPage::count) return false;
  } while (!allowance_.compare_exchange_weak(left, left - SlotPage::count, std::memory_order_relaxed));
  cache.limit += SlotPage::count;
  return true;
}

}  // namespace gyre::detail
