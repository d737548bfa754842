// Bytes on their way from many threads to one: what Recorder writes to its file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>

namespace gyre::detail {

/// A bounded queue of records, each in one piece. A producer claims a place, fills it, and commits it by
/// storing its size; a record without room is refused. The consumer stops at a place that is claimed and not
/// committed.
///
///   claimed_  where the next record goes: producers move it, at most a ring ahead of taken_
///   taken_    where the oldest record lies
///
/// Positions only grow; modulo the ring's size they are places. Memory that holds no record is zero. A record
/// that would cross the ring's end begins at its start, behind a filler.
class RecordRing {
 public:
  /// @param bytes  a power of two, at least 64
  explicit RecordRing(uint64_t bytes) : bytes_(bytes), memory_(allocate(bytes)) {}

  /// Puts a record of all these bytes. Any thread; waits for nothing.
  /// @returns false if there is no room
  bool put(std::initializer_list<std::span<const std::byte>> parts) {
    uint64_t size = word;
    for (const auto& part : parts) size += part.size();
    size = (size + word - 1) / word * word;
    uint64_t begin = claimed_.load(std::memory_order_relaxed);  // a guess, which the exchange checks
    uint64_t skipped = 0;
    do {
      const uint64_t left = bytes_ - begin % bytes_;
      skipped = left < size ? left : 0;
      // Pairs with the store in take(): the memory is zero again. Signed: `begin` may be stale, and more is
      // taken since; then the exchange fails.
      const uint64_t taken = taken_.load(std::memory_order_acquire);
      if (int64_t(begin + skipped + size - taken) > int64_t(bytes_)) return false;
    } while (!claimed_.compare_exchange_weak(begin, begin + skipped + size, std::memory_order_relaxed));
    if (skipped != 0) commit(begin, skipped | filler);
    std::byte* to = at(begin + skipped) + word;
    for (const auto& part : parts) {
      if (!part.empty()) std::memcpy(to, part.data(), part.size());
      to += part.size();
    }
    commit(begin + skipped, size);
    return true;
  }
  /// Hands the oldest record to `visit(std::span<const std::byte>)`, and frees its place: zeroes may follow
  /// the record's bytes. One thread.
  /// @returns false if there is none
  template <class Visit>
  bool take(Visit&& visit) {
    for (;;) {
      const uint64_t begin = taken_.load(std::memory_order_relaxed);  // this thread's own
      // Pairs with the store in commit().
      const uint64_t said = std::atomic_ref(size_at(begin)).load(std::memory_order_acquire);
      if (said == 0) return false;
      const uint64_t size = said & ~filler;
      const bool is_record = (said & filler) == 0;
      if (is_record) visit(std::span<const std::byte>(at(begin) + word, size - word));
      std::memset(at(begin), 0, size);
      taken_.store(begin + size, std::memory_order_release);  // pairs with the load in put()
      if (is_record) return true;
    }
  }

 private:
  static constexpr uint64_t word = sizeof(uint64_t), filler = 1;

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  // Zeroed; the system provides a page when it is used.
  static std::byte* allocate(uint64_t bytes) {
    void* const memory = std::calloc(bytes, 1);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
  }
  std::byte* at(uint64_t position) const { return memory_.get() + position % bytes_; }
  uint64_t& size_at(uint64_t position) const { return *reinterpret_cast<uint64_t*>(at(position)); }
  void commit(uint64_t position, uint64_t size) const {
    std::atomic_ref(size_at(position))
        .store(size, std::memory_order_release);  // pairs with the load in take()
  }

  const uint64_t bytes_;
  const std::unique_ptr<std::byte, Free> memory_;
  alignas(64) std::atomic<uint64_t> claimed_{0};
  alignas(64) std::atomic<uint64_t> taken_{0};
};

}  // namespace gyre::detail
