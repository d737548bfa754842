// The way of records from threads that send to the one that writes them.
#include <gyre/runtime/recording/record_ring.hpp>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using gyre::detail::RecordRing;

namespace {

bool put(RecordRing& ring, const std::string& text) {
  const uint64_t bytes = text.size();
  return ring.put({std::as_bytes(std::span(&bytes, 1)), std::as_bytes(std::span(text))});
}
// Empty if there is none.
std::string take(RecordRing& ring) {
  std::string text;
  ring.take([&](std::span<const std::byte> record) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, record.data(), sizeof bytes);
    text.assign(reinterpret_cast<const char*>(record.data()) + sizeof bytes, bytes);
  });
  return text;
}

}  // namespace

TEST_CASE("records come out whole and in their order, round after round of the ring") {
  RecordRing ring(256);
  uint64_t put_in = 0, taken = 0;
  const auto text_of = [](uint64_t n) { return std::to_string(n) + std::string(n % 60 + 1, 'x'); };
  while (taken < 2000) {
    while (put(ring, text_of(put_in))) ++put_in;
    for (uint64_t n = put_in % 3 + 1; n != 0 && taken < put_in; --n) REQUIRE(take(ring) == text_of(taken++));
  }
}

TEST_CASE("a record without room is refused, and leaves the others as they are") {
  RecordRing ring(128);
  CHECK_FALSE(put(ring, std::string(200, 'y')));
  CHECK(put(ring, std::string(40, 'a')));
  CHECK(put(ring, std::string(40, 'b')));
  CHECK_FALSE(put(ring, std::string(40, 'c')));
  CHECK(take(ring) == std::string(40, 'a'));
  CHECK(put(ring, std::string(30, 'd')));
  CHECK(take(ring) == std::string(40, 'b'));
  CHECK(take(ring) == std::string(30, 'd'));
  CHECK(take(ring).empty());
}

TEST_CASE("each thread's records come out in its order") {
  constexpr uint64_t threads = 4, each = 20'000;
  RecordRing ring(4096);
  std::vector<std::thread> producers;
  for (uint64_t thread = 0; thread < threads; ++thread) {
    producers.emplace_back([&ring, thread] {
      for (uint64_t n = 0; n < each;) {
        const std::array<uint64_t, 2> record{thread, n};
        const std::vector<uint64_t> more(n % 7, thread * each + n);
        if (ring.put({std::as_bytes(std::span(record)), std::as_bytes(std::span(more))})) {
          ++n;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  std::array<uint64_t, threads> next{};
  uint64_t wrong = 0;
  for (uint64_t taken = 0; taken < threads * each;) {
    const bool any = ring.take([&](std::span<const std::byte> bytes) {
      std::vector<uint64_t> words(bytes.size() / sizeof(uint64_t));
      std::memcpy(words.data(), bytes.data(), bytes.size());
      bool right = words.size() >= 2 && words[0] < threads && words[1] == next[words[0]] &&
                   words.size() == 2 + words[1] % 7;
      for (size_t n = 2; right && n < words.size(); ++n) right = words[n] == words[0] * each + words[1];
      if (right) ++next[words[0]];
      wrong += right ? 0 : 1;
    });
    if (any) ++taken;
  }
  for (std::thread& producer : producers) producer.join();
  CHECK(wrong == 0);
}

// A thread that is interrupted while it looks for room finds others' records put and taken since.
TEST_CASE("no record is refused while there is room, whatever other threads put meanwhile") {
  constexpr uint64_t threads = 5, each = 1'500'000, most_waiting = 8;
  RecordRing ring(64 * 1024);  // room for all that wait, 32 bytes each
  std::array<std::atomic<uint64_t>, threads> taken{};
  std::array<uint64_t, threads> refused{};
  std::vector<std::thread> producers;
  for (uint64_t thread = 0; thread < threads; ++thread) {
    producers.emplace_back([&, thread] {
      for (uint64_t n = 0; n < each;) {
        const std::array<uint64_t, 2> record{thread, n};
        if (n - taken[thread].load(std::memory_order_relaxed) >= most_waiting) {
          std::this_thread::yield();
        } else if (ring.put({std::as_bytes(std::span(record))})) {
          ++n;
        } else {
          ++refused[thread];
        }
      }
    });
  }
  for (uint64_t left = threads * each; left != 0;) {
    const bool any = ring.take([&](std::span<const std::byte> bytes) {
      uint64_t thread = 0;
      std::memcpy(&thread, bytes.data(), sizeof thread);
      taken[thread].fetch_add(1, std::memory_order_relaxed);
      --left;
    });
    if (!any) std::this_thread::yield();  // the others have the processor, and are interrupted more often
  }
  for (std::thread& producer : producers) producer.join();
  CHECK(refused == std::array<uint64_t, threads>{});
}
