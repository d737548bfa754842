// The arena's allocator: blocks that do not overlap, rooms that are zero, ids that are good once.
#include <gyre/runtime/memory/arena.hpp>
#include <gyre/runtime/memory/copy_threads.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using namespace gyre;

namespace {

struct ArenaMemory {
  explicit ArenaMemory(uint64_t bytes) : bytes(bytes, std::byte{0xee}), arena(this->bytes.data(), bytes) {}
  std::vector<std::byte> bytes;
  Arena arena;
};

bool all_are(const Arena& arena, uint64_t offset, uint32_t bytes, unsigned char value) {
  const auto* const begin = static_cast<const unsigned char*>(arena.at(offset));
  return std::all_of(begin, begin + bytes, [value](unsigned char byte) { return byte == value; });
}
bool all_zero(const Arena& arena, const ArenaBlock& block) {
  return all_are(arena, block.reply_offset, block.reply_capacity, 0);
}

}  // namespace

TEST_CASE("a block has room for both bodies, aligned, and the reply's room is zero whatever was there") {
  ArenaMemory memory(64 << 10);
  for (const uint32_t request : {0u, 1u, 1023u, 1024u, 1025u, 9000u}) {
    for (const uint32_t reply : {0u, 1u, 1024u, 7777u}) {
      const auto block = memory.arena.allocate(request, reply);
      REQUIRE(block);
      CHECK(block->request_offset % 1024 == 0);
      CHECK(block->reply_offset >= block->request_offset + request);
      CHECK(block->reply_offset + reply <= memory.arena.bytes());
      CHECK(all_zero(memory.arena, *block));
      std::memset(memory.arena.at(block->request_offset), 0xab, request);
      std::memset(memory.arena.at(block->reply_offset), 0xcd, reply);
      CHECK(memory.arena.free(block->id));
    }
  }
  CHECK(memory.arena.bytes_in_use() == 0);
}

TEST_CASE("a reply that was written only in part leaves the rest known to be zero, and that much is true") {
  ArenaMemory memory(64 << 10);
  const auto first = memory.arena.allocate(0, 32 << 10);
  REQUIRE(first);
  std::memset(memory.arena.at(first->reply_offset), 0xcd, 5000);
  CHECK(memory.arena.free(first->id, 5000));
  const auto second = memory.arena.allocate(0, 64 << 10);
  REQUIRE(second);
  CHECK(all_zero(memory.arena, *second));
}

TEST_CASE("a room of many units is zero with helping threads, in runs of dirty units that begin anywhere") {
  detail::CopyThreads threads(3);
  constexpr uint64_t bytes = 8 << 20, unit = Arena::unit_bytes;
  std::vector<std::byte> memory(bytes, std::byte{0xee});
  Arena arena(memory.data(), bytes, &threads);
  for (const uint32_t written : {0u, 1u, 3000u, 64u << 10, 1'000'000u, 5u << 20, 8u << 20}) {
    const auto first = arena.allocate(0, 8 << 20);
    REQUIRE(first);
    CHECK(all_zero(arena, *first));
    std::memset(memory.data(), 0xcd, written);
    CHECK(arena.free(first->id, written));
  }
  // Dirty ones between clean ones.
  const auto all = arena.allocate(0, 8 << 20);
  REQUIRE(all);
  CHECK(arena.free(all->id, 0));
  std::vector<ArenaBlock> blocks;
  for (uint32_t i = 0; i < 40; ++i) blocks.push_back(*arena.allocate(0, uint32_t(70 * unit)));
  for (uint32_t i = 0; i < 40; ++i) {
    const uint32_t written = i % 3 == 0 ? 0 : i % 3 == 1 ? uint32_t(70 * unit) : 5000;
    std::memset(arena.at(blocks[i].reply_offset), 0xab, written);
    CHECK(arena.free(blocks[i].id, written));
  }
  const auto again = arena.allocate(0, 8 << 20);
  REQUIRE(again);
  CHECK(all_zero(arena, *again));
}

TEST_CASE("an id is good until its block is freed, and never again") {
  ArenaMemory memory(16 << 10);
  const auto block = memory.arena.allocate(100, 100);
  REQUIRE(block);
  CHECK(memory.arena.find(block->id)->reply_offset == block->reply_offset);
  CHECK(memory.arena.free(block->id));
  CHECK_FALSE(memory.arena.find(block->id));
  CHECK_FALSE(memory.arena.free(block->id));
  const auto again = memory.arena.allocate(100, 100);
  REQUIRE(again);
  CHECK(again->request_offset == block->request_offset);
  CHECK(again->id != block->id);
  CHECK_FALSE(memory.arena.free(block->id));
  CHECK_FALSE(memory.arena.free(0));
  CHECK_FALSE(memory.arena.free(~uint64_t(0)));
  CHECK(memory.arena.find(again->id));
}

TEST_CASE("a full arena refuses, and has room again for all of it when all is freed") {
  for (const uint64_t kib : {4u, 60u, 64u, 68u, 128u, 1000u}) {
    ArenaMemory memory(kib << 10);
    std::vector<BlockId> blocks;
    while (const auto block = memory.arena.allocate(1000, 0)) blocks.push_back(block->id);
    CHECK(blocks.size() == kib);
    CHECK(memory.arena.bytes_in_use() == memory.arena.bytes());
    for (const BlockId id : blocks) CHECK(memory.arena.free(id));
    CHECK(memory.arena.bytes_in_use() == 0);
    const auto whole = memory.arena.allocate(uint32_t(kib << 10), 0);
    REQUIRE(whole);
    CHECK(memory.arena.bytes_in_use() == memory.arena.bytes());
    CHECK_FALSE(memory.arena.allocate(1, 0));
    CHECK(memory.arena.free(whole->id));
  }
}

TEST_CASE("an arena says what it could never hold") {
  ArenaMemory memory(64 << 10);
  CHECK(memory.arena.could_hold(64 << 10, 0));
  CHECK(memory.arena.could_hold(32 << 10, 32 << 10));
  CHECK_FALSE(memory.arena.could_hold((64 << 10) + 1, 0));
  CHECK_FALSE(memory.arena.could_hold(63 << 10, 2000));
  CHECK_FALSE(memory.arena.could_hold(~uint64_t(0) >> 1, ~uint64_t(0) >> 1));
  Arena none(nullptr, 0);
  CHECK_FALSE(none.could_hold(1, 0));
  CHECK_FALSE(none.allocate(1, 0));
}

TEST_CASE("random blocks never overlap, keep their contents, and come back") {
  ArenaMemory memory(1 << 20);
  std::mt19937 random(5);
  struct Held {
    ArenaBlock block;
    uint32_t request_bytes;
    unsigned char mark;
  };
  std::vector<Held> held;
  uint64_t allocated = 0;
  for (int round = 0; round < 20'000; ++round) {
    if (random() % 2 == 0 && !held.empty()) {
      const size_t which = random() % held.size();
      const Held& h = held[which];
      REQUIRE(all_are(memory.arena, h.block.request_offset, h.request_bytes, h.mark));
      REQUIRE(all_are(memory.arena, h.block.reply_offset, h.block.reply_capacity, h.mark));
      REQUIRE(memory.arena.free(h.block.id));
      held[which] = held.back();
      held.pop_back();
    } else {
      const uint32_t most = random() % 10 == 0 ? 200'000 : 3'000;
      const uint32_t request = random() % most, reply = random() % most;
      const auto block = memory.arena.allocate(request, reply);
      if (!block) continue;
      ++allocated;
      REQUIRE(all_zero(memory.arena, *block));
      const auto mark = static_cast<unsigned char>(1 + random() % 255);
      std::memset(memory.arena.at(block->request_offset), mark, request);
      std::memset(memory.arena.at(block->reply_offset), mark, reply);
      held.push_back({*block, request, mark});
    }
  }
  CHECK(allocated > 5'000);
  for (const Held& h : held) CHECK(memory.arena.free(h.block.id));
  CHECK(memory.arena.bytes_in_use() == 0);
}

TEST_CASE("four threads allocate and free at once, and nobody gets what another has") {
  ArenaMemory memory(256 << 10);
  std::atomic<uint64_t> wrong{0}, done{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int round = 0; round < 3'000; ++round) {
        const uint32_t request = random() % (round % 8 == 0 ? 100'000 : 4'000);
        const auto block = memory.arena.allocate(request, 100);
        if (!block) continue;
        auto* bytes = static_cast<unsigned char*>(memory.arena.at(block->request_offset));
        std::memset(bytes, int(t + 1), request);
        if (!all_zero(memory.arena, *block)) ++wrong;
        std::memset(memory.arena.at(block->reply_offset), int(t + 1), 100);
        for (uint32_t i = 0; i < request; ++i) wrong += bytes[i] != t + 1;
        if (!memory.arena.free(block->id)) ++wrong;
        ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(done > 1'000);
  CHECK(memory.arena.bytes_in_use() == 0);
}
