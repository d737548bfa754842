#include <gyre/device/actor/table.hpp>

#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "support/catch.hpp"

using namespace gyre;

namespace {

struct Table {
  explicit Table(uint32_t capacity)
      : layout{64, capacity}, memory(layout.bytes() / 16 + 1), table(bytes(), layout) {}
  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(memory.data()); }
  void* insert(uint64_t key) {
    auto* const state = static_cast<uint64_t*>(table.insert(key));
    if (state != nullptr) *state = key;
    return state;
  }

  ActorTableLayout layout;
  std::vector<__int128> memory;
  ActorTable table;
};

}  // namespace

TEST_CASE("a table of actors does what a map does, over a hundred thousand random steps") {
  // Few keys and a small table: it is full often, and its slots wrap around.
  for (const uint32_t capacity : {1u, 2u, 3u, 7u, 64u, 1000u}) {
    Table t(capacity);
    std::map<uint64_t, void*> expected;
    std::mt19937_64 random(capacity);
    for (int step = 0; step < 100'000; ++step) {
      uint64_t key = random() % (capacity * 3 / 2 + 2);
      if (key % 3 == 0) key *= 0x9e3779b97f4a7c15u;
      const auto known = expected.find(key);
      void* const found = t.table.find(key);
      REQUIRE((known == expected.end()) == (found == nullptr));
      if (found != nullptr) {
        REQUIRE(found == known->second);  // states do not move
        REQUIRE(*static_cast<uint64_t*>(found) == key);
        if (random() % 2 == 0) {
          t.table.erase(key);
          expected.erase(known);
        }
      } else {
        void* const state = t.insert(key);
        REQUIRE((state == nullptr) == (expected.size() == capacity));
        if (state != nullptr) expected[key] = state;
      }
      REQUIRE(t.table.living() == expected.size());
    }
    std::set<uint64_t> listed;
    for (uint32_t n = 0; n < t.table.slot_count(); ++n) {
      uint64_t key = 0;
      if (void* const state = t.table.at(n, key)) {
        CHECK(expected.at(key) == state);
        CHECK(listed.insert(key).second);
      }
    }
    CHECK(listed.size() == expected.size());
  }
}

TEST_CASE("states lie apart, aligned to 16 bytes, within the table's memory") {
  Table t(100);
  std::set<uint8_t*> states;
  for (uint64_t key = 0; key < 100; ++key) {
    auto* const state = static_cast<uint8_t*>(t.insert(key * key));
    REQUIRE(state != nullptr);
    std::memset(state + 8, 0xff, 56);
    CHECK(reinterpret_cast<uintptr_t>(state) % 16 == 0);
    CHECK(state >= t.bytes());
    CHECK(state + 64 <= t.bytes() + t.layout.bytes());
    states.insert(state);
  }
  REQUIRE(states.size() == 100);
  for (auto it = states.begin(); std::next(it) != states.end(); ++it) CHECK(*std::next(it) - *it >= 64);
  for (uint64_t key = 0; key < 100; ++key)
    CHECK(*static_cast<uint64_t*>(t.table.find(key * key)) == key * key);
}

TEST_CASE("an idle actor of 64 bytes costs less than 64 bytes besides") {
  for (const uint32_t capacity : {1000u, 7576u, 1'000'000u}) {
    const ActorTableLayout layout{64, capacity};
    CHECK(double(layout.bytes()) / capacity < 64 + 29);
  }
}

TEST_CASE("a table of actors does not slow down with age") {
  // As many live as there is room for, one leaving for each that comes: tombstones would fill the table.
  Table t(512);
  uint64_t oldest = 0, next = 0;
  for (; next < 512; ++next) REQUIRE(t.insert(next) != nullptr);
  for (; next < 200'000; ++next) {
    t.table.erase(oldest++);
    REQUIRE(t.insert(next) != nullptr);
  }
  uint32_t empty = 0;
  for (uint32_t n = 0; n < t.table.slot_count(); ++n) {
    uint64_t key = 0;
    empty += t.table.at(n, key) == nullptr ? 1 : 0;
  }
  CHECK(empty == t.table.slot_count() - 512);
}
