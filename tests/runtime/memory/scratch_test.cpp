// Messages built one behind the other, against each built by itself by the official library.
#include <capnp/any.h>
#include <capnp/message.h>
#include <capnp/orphan.h>
#include <gyre/runtime/memory/scratch.hpp>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace gyre;
using gyre::detail::Outgoing;
using gyre::detail::Scratch;

namespace {

using Random = std::minstd_rand;

std::string text_of(Random& random, size_t longest) {
  std::string text(random() % (longest + 1), 'a');
  for (char& c : text) c = char('a' + random() % 26);
  return text;
}

// Some struct, with structs, texts, data and lists below it.
void fill_struct(capnp::AnyPointer::Builder at, Random& random, int depth) {
  const auto words = uint16_t(random() % 4), pointers = uint16_t(depth == 0 ? 0 : random() % 4);
  auto built = at.initAsAnyStruct(words, pointers);
  for (auto& byte : built.getDataSection()) byte = uint8_t(random());
  for (auto pointer : built.getPointerSection()) {
    switch (random() % 5) {
      case 0:
        break;  // null
      case 1:
        pointer.setAs<capnp::Text>(text_of(random, 40).c_str());
        break;
      case 2: {
        auto list = pointer.initAs<capnp::List<uint64_t>>(uint(random() % 9));
        for (uint i = 0; i < list.size(); ++i) list.set(i, random());
        break;
      }
      case 3: {
        // Made before what leads to it, and moved there.
        auto orphan =
            capnp::Orphanage::getForMessageContaining(at).newOrphan<capnp::Data>(uint(random() % 20));
        for (auto& byte : orphan.get()) byte = uint8_t(random());
        pointer.adopt(kj::mv(orphan));
        break;
      }
      default:
        fill_struct(pointer, random, depth - 1);
    }
  }
}

// Message `seed`: some have no root, an empty one, or a list for one.
void fill_message(uint32_t seed, capnp::AnyPointer::Builder root) {
  Random random(seed + 1);
  switch (random() % 8) {
    case 0:
      return;
    case 1:
      root.initAsAnyStruct(0, 0);
      return;
    case 2:
      root.setAs<capnp::Text>(text_of(random, 30).c_str());
      return;
    case 3:
      root.initAs<capnp::List<uint32_t>>(0);
      return;
    default:
      fill_struct(root, random, 3);
  }
}

std::vector<std::byte> built_alone(uint32_t seed) {
  capnp::MallocMessageBuilder message(1 << 14);
  fill_message(seed, message.getRoot<capnp::AnyPointer>());
  const auto segments = message.getSegmentsForOutput();
  REQUIRE(segments.size() == 1);
  const auto bytes = segments[0].asBytes();
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.begin());
  return {begin, begin + bytes.size()};
}

// What a sender does with a message: its heads go in front of it.
bool sends(const Outgoing& message, uint32_t seed) {
  const std::vector<std::byte> expected = built_alone(seed);
  auto* const body = reinterpret_cast<std::byte*>(message.complete());
  const bool same =
      message.bytes() == expected.size() && std::memcmp(body, expected.data(), expected.size()) == 0;
  std::memset(body - Outgoing::heads_bytes, 0xee, Outgoing::heads_bytes);
  return same;
}

Scratch& scratch() { return Scratch::of_this_thread(); }

constexpr uint64_t capacity = 1 << 16;

bool sends_one(uint32_t seed, uint64_t most = capacity) {
  const auto sent = scratch().build_and_send(
      most, [&](capnp::AnyPointer::Builder root) { fill_message(seed, root); },
      [&](const Outgoing& message) -> Result<bool> { return sends(message, seed); });
  return sent && sent.value();
}

// How many of messages `first`… came, each as it should be.
size_t sends_many(uint32_t first, size_t count, uint32_t inline_bytes) {
  size_t came = 0;
  const Failure failure = scratch().build_and_send_many(
      count, capacity, inline_bytes,
      [&](size_t i, capnp::AnyPointer::Builder root) { fill_message(uint32_t(first + i), root); },
      [&](size_t of_run, std::span<const Outgoing> messages) {
        CHECK(of_run == came);
        CHECK(messages.size() <= Scratch::run);
        for (size_t i = 0; i + 1 < messages.size(); ++i) CHECK(messages[i].bytes() <= inline_bytes);
        for (const Outgoing& message : messages) {
          if (!sends(message, uint32_t(first + came))) return false;
          ++came;
        }
        return true;
      });
  CHECK(failure.status == Status::ok);
  return came;
}

}  // namespace

TEST_CASE(
    "bytes to be copied later are in the body where they belong, whatever the order they were named in") {
  Scratch& scratch = Scratch::of_this_thread();
  detail::CopyThreads threads(1);
  constexpr uint32_t count = 20'000;
  std::vector<std::vector<uint64_t>> from;
  for (uint64_t n = 0; n < 5; ++n) from.emplace_back(count, n + 1);
  for (int round = 0; round < 2; ++round) {
    std::vector<char> sent;
    const auto result = scratch.build_and_send(
        4 << 20,
        [&](capnp::AnyPointer::Builder root) {
          auto pointers = root.initAsAnyStruct(1, 5).getPointerSection();
          std::vector<capnp::List<uint64_t>::Builder> lists;
          for (unsigned n = 0; n < 5; ++n) lists.push_back(pointers[n].initAs<capnp::List<uint64_t>>(count));
          for (const unsigned n : {3u, 0u, 4u, 1u, 3u}) {
            auto* const place =
                const_cast<kj::byte*>(capnp::toAny(lists[n].asReader()).getRawBytes().begin());
            CHECK(scratch.copy_later(place, from[n].data(), count * 8));
            CHECK(!scratch.copy_later(place, from[n].data(), 100));
          }
          lists[2].set(7, 42);  // by itself
          CHECK(!scratch.copy_later(from[0].data(), from[1].data(), count * 8));
        },
        [&](Outgoing message) -> Result<void> {
          sent.resize(message.bytes());
          scratch.copy_body(sent.data(), message.complete(), message.bytes(), threads);
          return success();
        });
    REQUIRE(result);
    CHECK(!scratch.copy_later(sent.data(), from[0].data(), count * 8));
    const auto* const words = reinterpret_cast<const capnp::word*>(sent.data());
    const kj::ArrayPtr<const capnp::word> segments[] = {kj::arrayPtr(words, sent.size() / 8)};
    capnp::SegmentArrayMessageReader message(kj::arrayPtr(segments, 1), {uint64_t(1) << 40, 64});
    const auto pointers = message.getRoot<capnp::AnyStruct>().getPointerSection();
    for (unsigned n = 0; n < 5; ++n) {
      const auto list = pointers[n].getAs<capnp::List<uint64_t>>();
      REQUIRE(list.size() == count);
      uint32_t wrong = 0;
      for (uint32_t i = 0; i < count; ++i) wrong += list[i] != (n != 2 ? n + 1 : i == 7 ? 42 : 0);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("what a program sets in a list that is copied later shows in no later message") {
  Scratch& scratch = Scratch::of_this_thread();
  constexpr uint32_t count = 20'000;
  const std::vector<uint64_t> from(count, 1);
  uint32_t wrong = 0;
  for (const bool sets : {true, false}) {
    const auto result = scratch.build_and_send(
        4 << 20,
        [&](capnp::AnyPointer::Builder root) {
          auto list = root.initAs<capnp::List<uint64_t>>(count);
          auto* const place = const_cast<kj::byte*>(capnp::toAny(list.asReader()).getRawBytes().begin());
          if (sets) CHECK(scratch.copy_later(place, from.data(), count * 8));
          for (uint32_t i = 0; i < count; ++i) {
            if (sets) {
              list.set(i, 42);
            } else {
              wrong += list[i] != 0;
            }
          }
        },
        [](Outgoing) -> Result<void> { return success(); });
    REQUIRE(result);
  }
  CHECK(wrong == 0);
}

TEST_CASE("messages built one behind the other are each as if built alone") {
  uint32_t wrong = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) wrong += !sends_one(seed);
  CHECK(wrong == 0);
}

TEST_CASE("messages of runtimes with different arenas, by turns, are each as if built alone") {
  Random random(2);
  uint32_t wrong = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) wrong += !sends_one(seed, capacity << random() % 3 * 4);
  CHECK(wrong == 0);
}

TEST_CASE("a fill function that makes do with less where there is no room for more leaves a sound message") {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const auto sent = scratch().build_and_send(
        4096,
        [&](capnp::AnyPointer::Builder root) {
          try {
            root.initAs<capnp::List<uint64_t>>(1 << 20);
          } catch (...) {
            fill_message(seed, root);
          }
        },
        [&](const Outgoing& message) -> Result<bool> { return sends(message, seed); });
    REQUIRE(sent);
    CHECK(sent.value());
    CHECK(sends_one(seed + 1, 4096));
  }
}

TEST_CASE("runs are as long for the largest slots and arenas as for small ones") {
  constexpr uint32_t largest_slot = 16 << 10;
  for (const uint64_t most : {capacity, Scratch::most_capacity()}) {
    std::vector<size_t> runs;
    const Failure failure = scratch().build_and_send_many(
        160, most, largest_slot,
        [](size_t, capnp::AnyPointer::Builder root) {
          root.initAs<capnp::List<uint64_t>>(largest_slot / 8 - 1).set(0, 1);
        },
        [&](size_t, std::span<const Outgoing> messages) {
          runs.push_back(messages.size());
          return true;
        });
    CHECK(failure.status == Status::ok);
    CHECK(runs == std::vector<size_t>(10, Scratch::run));
  }
}

TEST_CASE("messages of a run are each as if built alone, whatever lies between runs") {
  Random random(1);
  for (uint32_t first = 0; first < 6000;) {
    const size_t count = random() % 50;
    REQUIRE(sends_many(first, count, 16u << random() % 8) == count);
    first += uint32_t(count);
    if (random() % 3 == 0) REQUIRE(sends_one(first));
    if (random() % 5 == 0) {
      // Bytes that were there already go where messages were, and leave nothing.
      const auto placed = scratch().place_and_send(
          capacity,
          [&](capnp::word* place, uint64_t& written_bytes) -> Result<uint32_t> {
            for (size_t i = 0; i < capacity / sizeof *place; ++i) {
              uint64_t word;
              std::memcpy(&word, place + i, sizeof word);
              if (word != 0) return Failure{Status::malformed};
            }
            written_bytes = 4096;
            std::memset(static_cast<void*>(place), 0x77, written_bytes);
            return 4096;
          },
          [](const Outgoing& message) -> Result<bool> { return message.bytes() == 4096; });
      REQUIRE(placed);
      REQUIRE(placed.value());
    }
  }
}

TEST_CASE("a message may be as large as it may, and a word more is refused with its size") {
  for (const uint64_t most : {uint64_t(16), uint64_t(64), uint64_t(4096), uint64_t(1) << 20}) {
    for (int round = 0; round < 3; ++round) {
      for (const uint64_t bytes : {most, most + 8, most, most + 100'000}) {
        const auto sent = scratch().build_and_send(
            most,
            [&](capnp::AnyPointer::Builder root) {
              auto list = root.initAs<capnp::List<uint64_t>>(uint(bytes / 8 - 1));
              list.set(list.size() - 1, 5);
            },
            [](const Outgoing& message) -> Result<uint32_t> { return message.bytes(); });
        INFO(most << " bytes at most, " << bytes << " asked for");
        if (bytes == most) {
          REQUIRE(sent);
          CHECK(sent.value() == most);
        } else {
          REQUIRE_FALSE(sent);
          CHECK(sent.error().status == Status::too_large);
          // Where there is no room the official library asks for a word more, to point to it.
          CHECK((sent.error().asked == bytes || sent.error().asked == bytes + 8));
          CHECK(sent.error().limit == most);
        }
      }
    }
  }
  CHECK(sends_one(17));
}

TEST_CASE("of a run with a message that is too large those before it are sent, and nothing of it is left") {
  for (uint32_t bad = 0; bad < 20; ++bad) {
    size_t came = 0;
    const Failure failure = scratch().build_and_send_many(
        20, 4096, 4096,
        [&](size_t i, capnp::AnyPointer::Builder root) {
          auto list = root.initAs<capnp::List<uint64_t>>(i == bad ? 70'000 : 3);
          for (uint k = 0; k < list.size(); ++k) list.set(k, ~uint64_t(0));
        },
        [&](size_t, std::span<const Outgoing> messages) {
          came += messages.size();
          return true;
        });
    CHECK(failure.status == Status::too_large);
    CHECK(came == bad);
    REQUIRE(sends_one(bad));
  }
}

TEST_CASE("what a fill function throws in the middle of a run leaves nothing behind") {
  for (size_t bad = 0; bad < 20; ++bad) {
    size_t came = 0;
    const auto all = [&] {
      return scratch().build_and_send_many(
          20, capacity, 4096,
          [&](size_t i, capnp::AnyPointer::Builder root) {
            fill_message(uint32_t(i), root);
            if (i == bad) throw std::string("changed my mind");
          },
          [&](size_t, std::span<const Outgoing> messages) {
            came += messages.size();
            return true;
          });
    };
    CHECK_THROWS_AS(all(), std::string);
    CHECK(came == bad / Scratch::run * Scratch::run);
    REQUIRE(sends_one(uint32_t(bad)));
    REQUIRE(sends_many(uint32_t(bad), 40, 64) == 40);
  }
}
