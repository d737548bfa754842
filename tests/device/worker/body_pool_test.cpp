// The pool of bodies that do not fit a slot: who takes which chunk.
#include <gyre/device/worker/body_pool.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/rounds.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

// A pool in memory of its own, for so many workers.
struct Pooled {
  Pooled(uint32_t workers, uint32_t chunks, uint32_t bytes = 256)
      : layout(MailLayout::of(workers, 128, {0, chunks, bytes}, {.sends_large = true})),
        memory(layout.zeroed_bytes() / sizeof(Packet) + 16),
        pool(begin(), layout) {}
  uint8_t* begin() {
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    return reinterpret_cast<uint8_t*>((address + 127) / 128 * 128);
  }
  bool is_clear(uint32_t chunk) const {
    const uint8_t* const bytes = pool.at(chunk);
    return std::all_of(bytes, bytes + layout.body_bytes, [](uint8_t byte) { return byte == 0; });
  }
  MailLayout layout;
  std::vector<Packet> memory;
  BodyPool pool;
};

}  // namespace

TEST_CASE("any worker takes every chunk of a pool once, those of its own list first") {
  for (const uint32_t workers : {1u, 2u, 3u, 32u, 100u}) {
    for (const uint32_t chunks : {1u, 2u, 5u, 31u, 32u, 33u, 100u, 1000u}) {
      Pooled pooled(workers, chunks);
      const uint32_t worker = workers / 2;
      INFO(workers << " workers, " << chunks << " chunks");
      for (int round = 0; round < 3; ++round) {
        std::vector<uint32_t> taken;
        for (uint32_t chunk; (chunk = pooled.pool.take(worker)) != BodyPool::no_chunk;) {
          REQUIRE(chunk < chunks);
          REQUIRE(pooled.is_clear(chunk));
          std::memset(pooled.pool.at(chunk), 0xff, 200);
          taken.push_back(chunk);
        }
        std::vector<uint32_t> all = taken;
        std::sort(all.begin(), all.end());
        CHECK(std::unique(all.begin(), all.end()) == all.end());
        CHECK(all.size() == chunks);
        std::shuffle(taken.begin(), taken.end(), std::mt19937(uint32_t(round)));
        for (const uint32_t chunk : taken) pooled.pool.give(chunk, 200);
      }
    }
  }
  Pooled pooled(4, 40);
  CHECK(pooled.layout.lists_of_bodies() == 4);
  for (uint32_t worker = 0; worker < 4; ++worker) {
    CHECK(pooled.pool.take(worker) == worker * 10);
    CHECK(pooled.pool.take(worker + 4) == worker * 10 + 1);
  }
}

TEST_CASE("a pool without chunks gives none") {
  Pooled pooled(3, 0);
  CHECK(pooled.pool.body_bytes() == 0);
  CHECK(pooled.pool.take(2) == BodyPool::no_chunk);
  CHECK_FALSE(pooled.pool.has({0, 0, 0}));
}

TEST_CASE("threads that take and give chunks at once never share one, and find it clear") {
  constexpr uint32_t workers = 4, chunks = 10;
  Pooled pooled(workers, chunks, 512);
  std::atomic<uint64_t> wrong{0}, taken{0}, none{0};
  std::vector<std::thread> threads;
  for (uint32_t worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      std::mt19937 random(worker);
      std::vector<uint32_t> mine;
      for (int round = 0; round < rounds(3000); ++round) {
        if (mine.size() < 5 && random() % 2 == 0) {
          const uint32_t chunk = pooled.pool.take(worker);
          if (chunk == BodyPool::no_chunk) {
            ++none;
            std::this_thread::yield();
            continue;
          }
          ++taken;
          if (!pooled.is_clear(chunk)) ++wrong;
          std::memset(pooled.pool.at(chunk), int(worker + 1), 512);
          mine.push_back(chunk);
        } else if (!mine.empty()) {
          const size_t n = random() % mine.size();
          const uint8_t* const bytes = pooled.pool.at(mine[n]);
          if (!std::all_of(bytes, bytes + 512, [&](uint8_t byte) { return byte == worker + 1; })) ++wrong;
          pooled.pool.give(mine[n], 512);
          mine.erase(mine.begin() + std::ptrdiff_t(n));
        }
      }
      for (const uint32_t chunk : mine) pooled.pool.give(chunk, 512);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(taken != 0);
  for (uint32_t n = 0; n < chunks; ++n) CHECK(pooled.pool.take(n) != BodyPool::no_chunk);
  CHECK(pooled.pool.take(0) == BodyPool::no_chunk);
}
