#include <gyre/bridge/packet.hpp>

#include <atomic>
#include <thread>

#include "support/catch.hpp"

using gyre::HostMemory;
using gyre::Packet;

TEST_CASE("a packet is loaded as it was stored, data and stamp") {
  Packet cell{};
  HostMemory::store(cell, Packet{{1, 0xffffffffu, 0x80000000u}, 7});
  const Packet loaded = HostMemory::load(cell);
  CHECK(loaded.data[0] == 1);
  CHECK(loaded.data[1] == 0xffffffffu);
  CHECK(loaded.data[2] == 0x80000000u);
  CHECK(loaded.stamp == 7);
}

TEST_CASE("a packet whose stamp is new has new data: it is never torn") {
  Packet cell{};
  std::atomic<bool> done{false};
  constexpr uint32_t last = 300'000;
  std::thread writer([&] {
    for (uint32_t i = 1; i <= last; ++i) HostMemory::store(cell, Packet{{i * 3, ~i, i ^ 0x5a5a5a5au}, i});
    done = true;
  });
  uint64_t torn = 0, seen = 0;
  uint32_t newest = 0;
  while (newest != last) {
    const bool finished = done;
    const Packet packet = HostMemory::load(cell);
    const uint32_t i = packet.stamp;
    // The stamp is read no later than the data: data may be newer only under ThreadSanitizer's stand-in,
    // which a ring never lets happen (a slot is not written again before its consumer is done).
#if !defined(GYRE_THREAD_SANITIZER)
    if (i != 0 && (packet.data[0] != i * 3 || packet.data[1] != ~i || packet.data[2] != (i ^ 0x5a5a5a5au)))
      ++torn;
#endif
    if (i < newest) ++torn;  // and time does not run backwards
    newest = i;
    ++seen;
    if (finished && newest != last) {
      // the writer is done: the next load must find its last packet
      CHECK(HostMemory::load(cell).stamp == last);
      break;
    }
  }
  writer.join();
  CHECK(torn == 0);
  CHECK(seen > 0);
}

TEST_CASE("words are loaded as they were stored, and compare-and-swap reports what it found") {
  uint64_t word = 5;
  HostMemory::store_release(word, 9);
  CHECK(HostMemory::load_acquire(word) == 9);
  uint64_t expected = 8;
  CHECK_FALSE(HostMemory::compare_exchange(word, expected, 10));
  CHECK(expected == 9);
  CHECK(HostMemory::compare_exchange(word, expected, 10));
  CHECK(HostMemory::load_relaxed(word) == 10);
  CHECK(HostMemory::fetch_or(word, 5) == 10);
  CHECK(word == 15);
}
