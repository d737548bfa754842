#include <gyre/bridge/ring.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using namespace gyre;

namespace {

constexpr uint64_t just_below_the_wrap = (uint64_t(1) << 32) - 3;
constexpr SingleThread alone;

// A ring in plain memory, with room to build and to read messages.
struct TestRing {
  explicit TestRing(RingShape shape)
      : shape(shape),
        lines(shape.slots * shape.packets() / Line::size),
        cells(lines.front().packets, lines.size() * Line::size),
        payload(shape.payload_bytes() / 4) {}

  std::vector<uint32_t> message_of(uint32_t body_bytes, uint32_t seed) const {
    std::vector<uint32_t> message(shape.payload_bytes() / 4);
    const Envelope envelope{seed, body_bytes, 1, seed * 2ull, 3, 4, 5, 6, 7};
    std::memcpy(message.data(), &envelope, sizeof envelope);
    for (uint32_t i = 0; i < body_bytes / 4; ++i) message[8 + i] = seed * 2654435761u + i;
    return message;
  }
  // A message whose every body byte depends on `seed`.
  void send(uint64_t ticket, uint32_t body_bytes, uint32_t seed) {
    const std::vector<uint32_t> message = message_of(body_bytes, seed);
    publish<HostMemory>(alone, cells.data(), shape, ticket, message.data(), body_bytes);
  }
  // The same, as it is stored to memory that the CPU does not cache.
  void send_lines(LineStore how, uint64_t ticket, uint32_t body_bytes, uint32_t seed) {
    const std::vector<uint32_t> message = message_of(body_bytes, seed);
    publish_lines<HostMemory>(how, cells.data(), shape, ticket, message.data(), body_bytes);
  }
  ReceiveOutcome look(uint64_t ticket) {
    return receive<HostMemory>(cells.data(), shape, ticket, payload.data());
  }
  // True if the message last received is the one that send(…, body_bytes, seed) made.
  bool holds(uint32_t body_bytes, uint32_t seed) const {
    Envelope envelope;
    std::memcpy(&envelope, payload.data(), sizeof envelope);
    bool same = envelope.correlation == seed && envelope.body_bytes == body_bytes &&
                envelope.key == seed * 2ull && envelope.actor_type == 3 && envelope.message_type == 4 &&
                envelope.origin == 5 && envelope.priority == 6 && envelope.flags == 7 &&
                envelope.deadline_us == 1;
    for (uint32_t i = 0; i < body_bytes / 4; ++i) same = same && payload[8 + i] == seed * 2654435761u + i;
    return same;
  }

  RingShape shape;
  std::vector<Line> lines;  // 64-aligned
  std::span<Packet> cells;
  std::vector<uint32_t> payload;
};

// Notes where packets are stored, in order.
struct Recorder : HostMemory {
  static inline std::vector<const Packet*> stored;
  static void store(Packet& cell, const Packet& packet) {
    stored.push_back(&cell);
    HostMemory::store(cell, packet);
  }
};

std::vector<LineStore> line_stores() {
  if (HostMemory::best_line_store() == LineStore::four_packets) return {LineStore::four_packets};
  return {LineStore::four_packets, LineStore::movdir64b};
}

// What a producer that stores whole lines does, in order; null for a fence.
struct LineRecorder : HostMemory {
  static inline std::vector<const Packet*> stored;
  static void store_line(LineStore how, Packet* to, const Line& line) {
    stored.push_back(to);
    HostMemory::store_line(how, to, line);
  }
  static void store_fence() { stored.push_back(nullptr); }
};

}  // namespace

TEST_CASE("a slot's body is three quarters of its bytes, less the envelope") {
  CHECK(RingShape{256, 64, 1}.body_capacity() == 16);
  CHECK(RingShape{256, 128, 1}.body_capacity() == 64);
  CHECK(RingShape{256, 512, 1}.body_capacity() == 352);
  CHECK(RingShape{256, 2048, 1}.body_capacity() == 1504);
}

TEST_CASE("a message needs the packets that its envelope and body fill") {
  CHECK(packets_for(0) == 3);
  CHECK(packets_for(8) == 4);
  CHECK(packets_for(64) == 8);
  CHECK(packets_for(RingShape{256, 512, 1}.body_capacity()) == 32);
}

TEST_CASE("stamps count laps, are never 0, and go on past 2^32") {
  const RingShape shape{4, 64, just_below_the_wrap};
  CHECK(shape.stamp(0) == 0xfffffffdu);
  CHECK(shape.stamp(3) == 0xfffffffdu);
  CHECK(shape.stamp(4) == 0xfffffffeu);
  CHECK(shape.stamp(8) == 0xffffffffu);
  CHECK(shape.stamp(12) == 1);  // 0 is left to memory that was never written
  CHECK(shape.stamp(16) == 2);
  const uint64_t period = (uint64_t(1) << 32) - 1;
  CHECK(shape.stamp(4 * period) == shape.stamp(0));
  CHECK(shape.stamp(4 * 5 * period + 8) == 0xffffffffu);
  CHECK(RingShape{2, 64, 1}.stamp(0) == 1);
}

TEST_CASE("consecutive laps have different stamps, wherever the count stands") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const RingShape shape{8, 64, 1 + random() % (uint64_t(1) << 50)};
    REQUIRE(shape.stamp(0) != 0);
    REQUIRE(shape.stamp(0) != shape.stamp(8));
  }
}

TEST_CASE("a cursor that walks is where a cursor at that ticket is, from lap to lap") {
  // Also where stamps begin anew, and in the lap that stamps whole slots: 2^32 is a multiple of 65,536.
  const RingShape shape{4, 64, just_below_the_wrap};
  const TestRing ring(shape);
  RingCursor<HostMemory> walking(ring.cells.data(), shape);
  for (uint64_t ticket = 0; ticket < 40; ticket = walking.ticket()) {
    const RingCursor<HostMemory> at(ring.cells.data(), shape, ticket);
    CAPTURE(ticket);
    REQUIRE(walking.slot() == at.slot());
    REQUIRE(walking.stamp() == at.stamp());
    REQUIRE(walking.left_of_lap() == at.left_of_lap());
    REQUIRE(walking.stamps_whole_slot() == at.stamps_whole_slot());
    walking.advance(shape, std::min(1 + uint32_t(ticket % 3), walking.left_of_lap()));
  }
}

TEST_CASE("every body size comes out as it went in") {
  for (const uint32_t slot_bytes : {64u, 128u, 512u, 1024u, 16384u}) {
    TestRing ring(RingShape{2, slot_bytes, 1});
    uint64_t ticket = 0;
    for (uint32_t body = 0; body <= ring.shape.body_capacity(); body += 8, ++ticket) {
      REQUIRE(ring.look(ticket) == ReceiveOutcome::nothing);
      ring.send(ticket, body, uint32_t(ticket) + 1);
      REQUIRE(ring.look(ticket) == ReceiveOutcome::message);
      REQUIRE(ring.holds(body, uint32_t(ticket) + 1));
    }
  }
}

TEST_CASE("a message of an older lap is not taken for the one expected") {
  TestRing ring(RingShape{2, 128, 1});
  ring.send(0, 64, 11);
  CHECK(ring.look(0) == ReceiveOutcome::message);
  CHECK(ring.look(2) == ReceiveOutcome::nothing);  // same slot, next lap
  ring.send(2, 8, 12);
  CHECK(ring.look(2) == ReceiveOutcome::message);
  CHECK(ring.holds(8, 12));
  CHECK(ring.look(0) == ReceiveOutcome::nothing);  // gone
}

TEST_CASE("a message is there only when each packet that it needs is") {
  TestRing whole(RingShape{2, 512, 1});
  whole.send(0, 352, 21);
  for (uint32_t missing = 0; missing < 32; ++missing) {
    TestRing ring(RingShape{2, 512, 1});
    std::copy(whole.cells.begin(), whole.cells.end(), ring.cells.begin());
    ring.cells[missing].stamp = 0;
    REQUIRE(ring.look(0) == ReceiveOutcome::nothing);
    ring.cells[missing].stamp = 1;
    REQUIRE(ring.look(0) == ReceiveOutcome::message);
    REQUIRE(ring.holds(352, 21));
  }
}

TEST_CASE("packets that a short message does not need may hold anything") {
  TestRing ring(RingShape{2, 512, 1});
  ring.send(0, 352, 31);
  ring.send(2, 8, 32);  // leaves 28 packets of lap 1
  CHECK(ring.cells[31].stamp == 1);
  CHECK(ring.look(2) == ReceiveOutcome::message);
  CHECK(ring.holds(8, 32));
  ring.send(4, 352, 33);
  CHECK(ring.look(4) == ReceiveOutcome::message);
  CHECK(ring.holds(352, 33));
}

TEST_CASE("an envelope that claims more body than a slot holds is corrupt, not a message") {
  TestRing ring(RingShape{2, 128, 1});
  for (const uint32_t claimed : {65u, 72u, 0x7fffffffu, 0xffffffffu}) {
    ring.cells[0] = Packet{{1, 2, claimed}, 1};
    CHECK(ring.look(0) == ReceiveOutcome::corrupt);
  }
}

TEST_CASE("every 65,536 laps a short message stamps its whole slot") {
  TestRing ring(RingShape{2, 512, 0xffff});
  ring.send(0, 352, 41);
  CHECK(ring.cells[31].stamp == 0xffffu);
  ring.send(2, 0, 42);  // lap 0x10000
  for (uint32_t k = 0; k < 32; ++k) CHECK(ring.cells[k].stamp == 0x10000u);
  CHECK(ring.look(2) == ReceiveOutcome::message);
  CHECK(ring.holds(0, 42));
  ring.send(4, 0, 43);
  CHECK(ring.cells[2].stamp == 0x10001u);
  CHECK(ring.cells[3].stamp == 0x10000u);
}

TEST_CASE("packets that a message does not need are stored before those that it does") {
  // Once the consumer has those, the slot may be another producer's: this one must have nothing left to
  // store.
  Recorder::stored.clear();
  const RingShape shape{2, 512, 0x10000};
  const std::vector<uint32_t> payload(shape.payload_bytes() / 4);
  std::vector<Packet> cells(2 * shape.packets());
  publish<Recorder>(alone, cells.data(), shape, 0, payload.data(), 8);
  REQUIRE(Recorder::stored.size() == 32);
  for (size_t i = 0; i < 28; ++i) CHECK(Recorder::stored[i] - cells.data() >= 4);
  for (size_t i = 28; i < 32; ++i) CHECK(Recorder::stored[i] - cells.data() < 4);
}

TEST_CASE("whole lines: every message comes out as it went in, and every packet of its lines is stamped") {
  for (const LineStore how : line_stores()) {
    for (const uint32_t slot_bytes : {64u, 192u, 512u}) {
      TestRing ring(RingShape{2, slot_bytes, 1});
      uint64_t ticket = 0;
      for (int round = 0; round < 2; ++round) {
        for (uint32_t body = 0; body <= ring.shape.body_capacity(); body += 4, ++ticket) {
          REQUIRE(ring.look(ticket) == ReceiveOutcome::nothing);
          const std::vector<Packet> before(ring.cells.begin(), ring.cells.end());
          ring.send_lines(how, ticket, body, uint32_t(ticket) + 1);
          REQUIRE(ring.look(ticket) == ReceiveOutcome::message);
          REQUIRE(ring.holds(body, uint32_t(ticket) + 1));
          const uint64_t first = ring.shape.first_packet(ticket);
          const uint64_t end = first + (packets_for(body) + 3) / 4 * 4;
          for (uint64_t k = 0; k < ring.cells.size(); ++k) {
            const bool written = k >= first && k < end;
            REQUIRE(ring.cells[k].stamp == (written ? ring.shape.stamp(ticket) : before[k].stamp));
          }
        }
      }
    }
  }
}

TEST_CASE("whole lines pass the wrap of the stamps in order, each once") {
  for (const LineStore how : line_stores()) {
    TestRing ring(RingShape{4, 128, just_below_the_wrap});
    for (uint64_t ticket = 0; ticket < 4 * 8; ++ticket) {
      REQUIRE(ring.look(ticket) == ReceiveOutcome::nothing);
      ring.send_lines(how, ticket, uint32_t(ticket % 9) * 8, uint32_t(ticket) + 51);
      REQUIRE(ring.look(ticket) == ReceiveOutcome::message);
      REQUIRE(ring.holds(uint32_t(ticket % 9) * 8, uint32_t(ticket) + 51));
      if (!ring.shape.stamps_whole_slot(ticket)) continue;
      for (uint64_t k = 0; k < 8; ++k) {
        REQUIRE(ring.cells[ring.shape.first_packet(ticket) + k].stamp == ring.shape.stamp(ticket));
      }
    }
  }
}

TEST_CASE("lines that a message does not need are stored, and fenced, before those that it does") {
  const RingShape shape{2, 512, 0x10000};
  const std::vector<uint32_t> payload(shape.payload_bytes() / 4);
  std::vector<Line> lines(2 * shape.packets() / Line::size);
  Packet* const cells = lines.front().packets;
  LineRecorder::stored.clear();
  publish_lines<LineRecorder>(LineStore::four_packets, cells, shape, 0, payload.data(), 64);  // 8 packets
  REQUIRE(LineRecorder::stored.size() == 8 + 2);
  for (size_t i = 0; i < 6; ++i) CHECK(LineRecorder::stored[i] == cells + 8 + 4 * i);
  CHECK(LineRecorder::stored[6] == nullptr);
  CHECK(LineRecorder::stored[7] == cells);
  CHECK(LineRecorder::stored[8] == cells + 4);
  CHECK(LineRecorder::stored[9] == nullptr);
  for (const Line& line : lines) {
    for (const Packet& packet : line.packets) {
      CHECK(packet.stamp == (&line - lines.data() < 8 ? shape.stamp(0) : 0));
    }
  }
}

TEST_CASE("so no stamp is old enough to come round again") {
  // Between any lap and the one that has its stamp again, 2^32 - 1 laps on, the whole slot is stamped many
  // times.
  const uint64_t period = (uint64_t(1) << 32) - 1;
  for (const uint64_t lap : {uint64_t(1), uint64_t(0xffff), uint64_t(0x10000), just_below_the_wrap}) {
    const uint64_t next_whole = (lap / 0x10000 + 1) * 0x10000;
    CHECK(RingShape{2, 64, next_whole}.stamps_whole_slot(0));
    CHECK(next_whole < lap + period);
    CHECK(RingShape{2, 64, next_whole}.stamp(0) != RingShape{2, 64, lap + period}.stamp(0));
  }
}

TEST_CASE("messages pass the wrap of the stamps in order, each once") {
  TestRing ring(RingShape{4, 128, just_below_the_wrap});
  for (uint64_t ticket = 0; ticket < 4 * 8; ++ticket) {
    REQUIRE(ring.look(ticket) == ReceiveOutcome::nothing);
    ring.send(ticket, uint32_t(ticket % 9) * 8, uint32_t(ticket) + 51);
    REQUIRE(ring.look(ticket) == ReceiveOutcome::message);
    REQUIRE(ring.holds(uint32_t(ticket % 9) * 8, uint32_t(ticket) + 51));
  }
}

TEST_CASE("credit is due at a quarter of the ring, and not before") {
  uint64_t word = 0;
  CreditPublisher<HostMemory> credits(word, 16);
  CHECK_FALSE(credits.due(3));
  CHECK(credits.behind(3));
  CHECK(credits.due(4));
  CHECK(word == 0);
  credits.publish(4);
  CHECK(word == 4);
  CHECK_FALSE(credits.behind(4));
  CHECK_FALSE(credits.due(7));
  CHECK(credits.due(8));
}

TEST_CASE("the smallest ring's credit is due at once") {
  uint64_t word = 0;
  CreditPublisher<HostMemory> credits(word, 2);
  CHECK(credits.due(1));
}

TEST_CASE("credit is due where one of several messages ended a quarter of the ring") {
  uint64_t word = 0;
  CreditPublisher<HostMemory> credits(word, 32);
  for (uint64_t done = 20; done < 60; ++done) {
    for (uint32_t n = 1; n <= 8; ++n) {
      bool ended = false;
      for (uint64_t one = done - n + 1; one <= done; ++one) ended |= credits.due(one);
      CHECK(credits.due(done, n) == ended);
    }
  }
}

TEST_CASE("a cursor that goes on by several is where it would be by one and one") {
  const RingShape shape{.slots = 8, .slot_bytes = 64, .first_lap = (uint64_t(1) << 32) - 2};
  std::vector<Packet> ring(shape.slots * shape.packets());
  RingCursor<HostMemory> by_one(ring.data(), shape), by_several(ring.data(), shape);
  for (uint32_t step = 0; step < 200; ++step) {
    const uint32_t n = step % 5 % by_several.left_of_lap() + 1;
    by_several.advance(shape, n);
    for (uint32_t i = 0; i < n; ++i) by_one.advance(shape);
    REQUIRE(by_several.ticket() == by_one.ticket());
    REQUIRE(by_several.slot() == by_one.slot());
    REQUIRE(by_several.stamp() == by_one.stamp());
    REQUIRE(by_several.left_of_lap() == by_one.left_of_lap());
    REQUIRE(by_several.stamps_whole_slot() == by_one.stamps_whole_slot());
  }
}
