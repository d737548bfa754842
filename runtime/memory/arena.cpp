#include <gyre/runtime/memory/arena.hpp>
#include <gyre/runtime/memory/copy_threads.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

namespace gyre {

namespace {

constexpr uint64_t all = ~uint64_t(0);

uint64_t units_for(uint64_t bytes) { return (bytes + Arena::unit_bytes - 1) / Arena::unit_bytes; }

// The lowest `count` bits, 0 to 64.
uint64_t low_bits(uint64_t count) { return count >= 64 ? all : (uint64_t(1) << count) - 1; }

// Index of the first of `count` zero bits side by side in `word`; 64 if there are none. `count`: 1 to 64.
uint32_t find_zeros(uint64_t word, uint64_t count) {
  uint64_t starts = ~word;  // after n rounds: where at least n + 1 zeros begin, n doubling
  for (uint64_t have = 1; have < count;) {
    const uint64_t step = std::min(have, count - have);
    starts &= starts >> step;
    have += step;
  }
  return uint32_t(std::countr_zero(starts));
}

// Calls visit(word index, mask) for each word of the map that units [first, first + units) touch.
template <class Visit>
void for_each_word(uint64_t first, uint64_t units, Visit&& visit) {
  while (units != 0) {
    const uint64_t bit = first % 64, here = std::min<uint64_t>(units, 64 - bit);
    visit(first / 64, low_bits(here) << bit);
    first += here;
    units -= here;
  }
}

// Head::use: generation in the high half, units in the low one.
constexpr uint64_t units_mask = 0xffffffff;

}  // namespace

Arena::Arena(void* base, uint64_t bytes, detail::CopyThreads* threads)
    : base_(static_cast<std::byte*>(base)),
      bytes_(bytes),
      threads_(threads),
      used_((bytes / unit_bytes + 63) / 64),
      dirty_(used_.size()),
      heads_(bytes / unit_bytes) {
  for (auto& word : dirty_) word.store(all, std::memory_order_relaxed);
  // Bits of the last word beyond the arena's end stay used for ever.
  if (const uint64_t beyond = used_.size() * 64 - heads_.size(); beyond != 0) {
    used_.back().store(~low_bits(64 - beyond), std::memory_order_relaxed);
  }
}

bool Arena::could_hold(uint64_t request_bytes, uint64_t reply_capacity) const {
  const uint64_t units = units_for(request_bytes) + units_for(reply_capacity);
  return units <= heads_.size() && units <= units_mask;
}

std::optional<ArenaBlock> Arena::allocate(uint32_t request_bytes, uint32_t reply_capacity) {
  const uint64_t request_units = units_for(request_bytes), reply_units = units_for(reply_capacity);
  const uint64_t units = std::max<uint64_t>(request_units + reply_units, 1);
  const auto first = take(units);
  if (!first) return std::nullopt;
  zero(*first + request_units, reply_units);
  Head& head = heads_[*first];
  head.request_units = uint32_t(request_units);
  head.reply_capacity = reply_capacity;
  const uint64_t generation = (head.use.load(std::memory_order_relaxed) >> 32) + 1;
  const uint64_t kept = std::max<uint64_t>(uint32_t(generation), 1);
  head.use.store(kept << 32 | units, std::memory_order_release);  // pairs with find(): it sees the head
  return ArenaBlock{kept << 32 | *first, *first * unit_bytes, (*first + request_units) * unit_bytes,
                    reply_capacity};
}

std::optional<ArenaBlock> Arena::find(BlockId id) const {
  const uint64_t first = id & units_mask;
  if (first >= heads_.size()) return std::nullopt;
  const Head& head = heads_[first];
  const uint64_t use = head.use.load(std::memory_order_acquire);  // pairs with the store in allocate()
  if (use >> 32 != id >> 32 || (use & units_mask) == 0) return std::nullopt;
  return ArenaBlock{id, first * unit_bytes, (first + head.request_units) * unit_bytes, head.reply_capacity};
}

bool Arena::free(BlockId id, uint64_t reply_bytes) {
  const auto block = find(id);
  if (!block) return false;
  const uint64_t first = id & units_mask;
  Head& head = heads_[first];
  const uint64_t units = head.use.load(std::memory_order_relaxed) & units_mask;
  const uint64_t request_units = head.request_units;
  const uint64_t reply_units = units_for(std::min<uint64_t>(reply_bytes, head.reply_capacity));
  // From here on find() does not find it; a second free() fails. Pairs with itself, and with the next
  // allocate() of the unit through used_.
  uint64_t in_use = (id & ~units_mask) | units;
  if (!head.use.compare_exchange_strong(in_use, id & ~units_mask, std::memory_order_acq_rel)) return false;
  mark_dirty(first, request_units + reply_units);
  give_back(first, units);
  return true;
}

uint64_t Arena::bytes_in_use() const {
  uint64_t units = 0;
  for (const auto& word : used_) units += uint64_t(std::popcount(word.load(std::memory_order_acquire)));
  return (units - (used_.size() * 64 - heads_.size())) * unit_bytes;
}

std::optional<uint64_t> Arena::take(uint64_t units) {
  return units <= 64 ? take_within_a_word(units) : take_words(units);
}

std::optional<uint64_t> Arena::take_within_a_word(uint64_t units) {
  for (uint64_t w = 0; w < used_.size(); ++w) {
    uint64_t seen = used_[w].load(std::memory_order_relaxed);
    // Pairs with give_back().
    for (uint32_t bit; (bit = find_zeros(seen, units)) < 64;) {
      if (used_[w].compare_exchange_weak(seen, seen | low_bits(units) << bit, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
        return w * 64 + bit;
      }
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> Arena::take_words(uint64_t units) {
  const uint64_t words = (units + 63) / 64;
  if (words > used_.size()) return std::nullopt;
  const uint64_t last_mask = low_bits(units - (words - 1) * 64);
  for (int64_t w = int64_t(used_.size() - words); w >= 0;) {
    int64_t in_the_way = -1;  // the highest word of these that is not free
    for (uint64_t i = words; i-- > 0 && in_the_way < 0;) {
      const uint64_t mask = i == words - 1 ? last_mask : all;
      if ((used_[uint64_t(w) + i].load(std::memory_order_relaxed) & mask) != 0) in_the_way = w + int64_t(i);
    }
    if (in_the_way >= 0) {
      w = in_the_way - int64_t(words);
    } else if (take_exactly(uint64_t(w), units)) {
      return uint64_t(w) * 64;
    }
  }
  return std::nullopt;
}

// All of them or none.
bool Arena::take_exactly(uint64_t first_word, uint64_t units) {
  for (uint64_t taken = 0; taken < units;) {
    const uint64_t here = std::min<uint64_t>(units - taken, 64), mask = low_bits(here);
    std::atomic<uint64_t>& word = used_[first_word + taken / 64];
    uint64_t seen = word.load(std::memory_order_relaxed);
    bool mine = false;
    // Pairs with give_back().
    while ((seen & mask) == 0 && !mine) {
      mine =
          word.compare_exchange_weak(seen, seen | mask, std::memory_order_acquire, std::memory_order_relaxed);
    }
    if (!mine) {
      give_back(first_word * 64, taken);
      return false;
    }
    taken += here;
  }
  return true;
}

void Arena::give_back(uint64_t first_unit, uint64_t units) {
  // Pairs with the exchanges that take units: their new owner sees the head and the dirty bits.
  for_each_word(first_unit, units, [this](uint64_t word, uint64_t mask) {
    used_[word].fetch_and(~mask, std::memory_order_release);
  });
}

// Relaxed, as in zero(): the units' owner alone touches their bits; used_ orders one owner after another.
void Arena::mark_dirty(uint64_t first_unit, uint64_t units) {
  for_each_word(first_unit, units, [this](uint64_t word, uint64_t mask) {
    dirty_[word].fetch_or(mask, std::memory_order_relaxed);
  });
}

void Arena::zero(uint64_t first_unit, uint64_t units) {
  uint64_t run_first = 0, run_units = 0;  // dirty ones side by side, across words
  for_each_word(first_unit, units, [&](uint64_t word, uint64_t mask) {
    uint64_t to_do = dirty_[word].load(std::memory_order_relaxed) & mask;
    if (to_do == 0) return;
    dirty_[word].fetch_and(~mask, std::memory_order_relaxed);
    while (to_do != 0) {  // run by run
      const int begin = std::countr_zero(to_do), length = std::countr_one(to_do >> begin);
      const uint64_t first = word * 64 + uint64_t(begin);
      if (run_first + run_units != first) {
        zero_bytes(run_first, run_units);
        run_first = first;
        run_units = 0;
      }
      run_units += uint64_t(length);
      to_do &= ~(low_bits(uint64_t(length)) << begin);
    }
  });
  zero_bytes(run_first, run_units);
}

void Arena::zero_bytes(uint64_t first_unit, uint64_t units) {
  std::byte* const first = base_ + first_unit * unit_bytes;
  if (units == 0) return;
  if (threads_ != nullptr) {
    threads_->zero(first, units * unit_bytes);
  } else {
    std::memset(first, 0, units * unit_bytes);
  }
}

}  // namespace gyre
