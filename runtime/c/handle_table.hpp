// Objects by number: what the C interface hands out instead of pointers.
#pragma once

#include <gyre/runtime/c/gyre.h>
#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/system/assert.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

namespace gyre::c {

/// Holds objects of type T by handle. A handle has three parts: `kind`, never 0, in the highest 8 bits; the
/// number of a place in the next 24; the generation of that place in the low 32. Thread-safe. Adding, using
/// and removing are lock-free; they allocate only when there are more objects than ever before.
///
/// One thread at a time uses an object of an `exclusive` table. Many threads may use an object of another
/// table; an object removed while it is used is destroyed after the last use.
template <class T, uint8_t kind, bool exclusive>
class HandleTable {
  struct Place;

 public:
  static_assert(kind != 0);

  /// Keeps an object alive until destroyed. Move-only.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept : table_(other.table_), place_(std::exchange(other.place_, nullptr)) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(place_, other.place_);
      return *this;
    }
    ~Use() {
      if (place_ != nullptr) table_->end_use(*place_);
    }
    explicit operator bool() const { return place_ != nullptr; }
    T* operator->() const { return place_->object(); }
    T& operator*() const { return *place_->object(); }

   private:
    friend HandleTable;
    Use(HandleTable* table, Place* place) : table_(table), place_(place) {}

    HandleTable* table_ = nullptr;
    Place* place_ = nullptr;
  };

  /// Adds an object and returns its handle.
  /// @throws std::bad_alloc, std::length_error (there are 2^24 objects)
  uint64_t add(T&& object) {
    Place& place = take_free();
    new (place.memory) T(std::move(object));
    // take_free() has acquired end_use()'s store of the generation.
    const uint64_t generation = place.word.load(std::memory_order_relaxed) >> generation_shift;
    // Pairs with the exchanges in use() and remove(): they see the object.
    place.word.store(generation << generation_shift | live, std::memory_order_release);
    return uint64_t(kind) << 56 | uint64_t(place.index) << 32 | generation;
  }

  /// Finds the object and sets `use`.
  /// @returns GYRE_OK, GYRE_BAD_HANDLE, GYRE_STALE_HANDLE, or GYRE_BUSY (only of an exclusive table)
  gyre_status use(uint64_t handle, Use& use) {
    Place* const place = find(handle);
    if (place == nullptr) return GYRE_BAD_HANDLE;
    uint64_t word = place->word.load(std::memory_order_relaxed);
    do {
      if (!is_live(word, handle)) return GYRE_STALE_HANDLE;
      if (exclusive && (word & uses) != 0) return GYRE_BUSY;
      // Pairs with the store in add(), and with end_use() of the previous user.
    } while (!place->word.compare_exchange_weak(word, word + 1, std::memory_order_acquire,
                                                std::memory_order_relaxed));
    use = Use(this, place);
    return GYRE_OK;
  }

  /// Ends the handle. Returns what use() returns.
  gyre_status remove(uint64_t handle) {
    Place* const place = find(handle);
    if (place == nullptr) return GYRE_BAD_HANDLE;
    uint64_t word = place->word.load(std::memory_order_relaxed);
    do {
      if (!is_live(word, handle)) return GYRE_STALE_HANDLE;
      if (exclusive && (word & uses) != 0) return GYRE_BUSY;
      // Counts as a use, so that end_use() destroys the object. Pairs with the store in add().
    } while (!place->word.compare_exchange_weak(word, (word & ~live) + 1, std::memory_order_acquire,
                                                std::memory_order_relaxed));
    end_use(*place);
    return GYRE_OK;
  }

 private:
  // Place::word: generation, live bit, number of uses.
  static constexpr int generation_shift = 32;
  static constexpr uint64_t live = uint64_t(1) << 31;
  static constexpr uint64_t uses = live - 1;
  static constexpr uint32_t most_places = uint32_t(1) << 24;
  static constexpr uint32_t first_chunk = 64;
  static constexpr uint32_t chunks = 19;

  struct Place {
    std::atomic<uint64_t> word{uint64_t(1) << generation_shift};
    std::atomic<uint32_t> next_free{0};  // index + 1 of the next free place; 0: none
    uint32_t index = 0;
    alignas(T) std::byte memory[sizeof(T)];

    T* object() { return std::launder(reinterpret_cast<T*>(memory)); }
  };

  static bool is_live(uint64_t word, uint64_t handle) {
    return (word & live) != 0 && word >> generation_shift == (handle & 0xffffffff);
  }

  // Chunk n has first_chunk << n places; no place ever moves. The load pairs with the store in grow().
  Place* place_at(uint32_t index) const {
    const uint32_t from_first = index + first_chunk;
    const uint32_t chunk = uint32_t(std::bit_width(from_first)) - uint32_t(std::bit_width(first_chunk));
    if (chunk >= chunks) return nullptr;
    Place* const places = chunks_[chunk].load(std::memory_order_acquire);
    return places == nullptr ? nullptr : places + (from_first - (first_chunk << chunk));
  }
  Place* find(uint64_t handle) const {
    return handle >> 56 != kind ? nullptr : place_at(uint32_t(handle >> 32) & (most_places - 1));
  }

  void end_use(Place& place) {
    // Pairs with itself in other threads: their uses are over before the object is destroyed. In an exclusive
    // table it pairs with the exchange in use(), too.
    const uint64_t before = place.word.fetch_sub(1, std::memory_order_acq_rel);
    GYRE_ASSERT((before & uses) != 0);
    if ((before & live) != 0 || (before & uses) != 1) return;
    place.object()->~T();
    uint64_t generation = ((before >> generation_shift) + 1) & 0xffffffff;
    if (generation == 0) generation = 1;
    place.word.store(generation << generation_shift, std::memory_order_relaxed);
    give_free(place);
  }

  // free_: a count against ABA in the high half; the first free place's index + 1 in the low half. Every
  // acquire here pairs with the release in give_free(): the place's next_free, index and generation are
  // there.
  Place& take_free() {
    uint64_t head = free_.load(std::memory_order_acquire);
    for (;;) {
      if (uint32_t(head) == 0) {
        grow();
        head = free_.load(std::memory_order_acquire);
        continue;
      }
      Place& place = *place_at(uint32_t(head) - 1);
      const uint64_t next = ((head >> 32) + 1) << 32 | place.next_free.load(std::memory_order_relaxed);
      if (free_.compare_exchange_weak(head, next, std::memory_order_acquire)) return place;
    }
  }
  void give_free(Place& place) {
    uint64_t head = free_.load(std::memory_order_relaxed);  // a guess, which the exchange checks
    uint64_t with_it;
    do {
      place.next_free.store(uint32_t(head), std::memory_order_relaxed);
      with_it = ((head >> 32) + 1) << 32 | (place.index + 1);
    } while (
        !free_.compare_exchange_weak(head, with_it, std::memory_order_release, std::memory_order_relaxed));
  }
  void grow() {
    const detail::ForkDeferred deferred;
    const std::lock_guard lock(growing_);
    if (uint32_t(free_.load(std::memory_order_acquire)) != 0) return;  // another thread has grown it
    const uint32_t chunk = grown_;
    const uint32_t begin = (first_chunk << chunk) - first_chunk;
    if (chunk == chunks || begin >= most_places)
      throw std::length_error("there are 2^24 handles of one kind");
    const uint32_t count = std::min(first_chunk << chunk, most_places - begin);
    auto places = std::make_unique<Place[]>(count);
    for (uint32_t i = 0; i < count; ++i) places[i].index = begin + i;
    Place* const first = places.release();
    chunks_[chunk].store(first, std::memory_order_release);  // pairs with the load in place_at()
    ++grown_;
    for (uint32_t i = count; i > 0; --i) give_free(first[i - 1]);
  }

  std::atomic<Place*> chunks_[chunks] = {};
  std::atomic<uint64_t> free_{0};
  std::mutex growing_;
  uint32_t grown_ = 0;
};

}  // namespace gyre::c
