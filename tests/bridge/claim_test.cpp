#include <gyre/bridge/ring.hpp>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using namespace gyre;

TEST_CASE("as many tickets are granted as there are slots, and one more for each credit") {
  uint64_t credit = 0;
  TicketClaim<HostMemory> claim(credit, 4);
  uint64_t ticket = 99;
  for (uint64_t i = 0; i < 4; ++i) {
    REQUIRE(claim.try_claim(ticket) == ClaimOutcome::claimed);
    REQUIRE(ticket == i);
  }
  ticket = 99;
  CHECK(claim.try_claim(ticket) == ClaimOutcome::full);
  CHECK(ticket == 99);
  CHECK(claim.claimed() == 4);
  HostMemory::store_release(credit, 1);
  CHECK(claim.try_claim(ticket) == ClaimOutcome::claimed);
  CHECK(ticket == 4);
  CHECK(claim.try_claim(ticket) == ClaimOutcome::full);
}

TEST_CASE("a run of tickets is as long as there is room, and consecutive") {
  uint64_t credit = 0;
  TicketClaim<HostMemory> claim(credit, 8);
  uint64_t first = 99;
  uint32_t count = 99;
  REQUIRE(claim.try_claim_run(5, first, count) == ClaimOutcome::claimed);
  CHECK(first == 0);
  CHECK(count == 5);
  REQUIRE(claim.try_claim(first) == ClaimOutcome::claimed);
  CHECK(first == 5);
  REQUIRE(claim.try_claim_run(5, first, count) == ClaimOutcome::claimed);
  CHECK(first == 6);
  CHECK(count == 2);
  first = count = 99;
  CHECK(claim.try_claim_run(1, first, count) == ClaimOutcome::full);
  CHECK(first == 99);
  CHECK(count == 99);
  HostMemory::store_release(credit, 8);
  REQUIRE(claim.try_claim_run(100, first, count) == ClaimOutcome::claimed);
  CHECK(first == 8);
  CHECK(count == 8);
  claim.close();
  CHECK(claim.try_claim_run(1, first, count) == ClaimOutcome::closed);
  CHECK(claim.claimed() == 16);
}

TEST_CASE("after close no ticket is granted, and those granted before stand") {
  uint64_t credit = 0;
  TicketClaim<HostMemory> claim(credit, 4);
  uint64_t ticket = 0;
  REQUIRE(claim.try_claim(ticket) == ClaimOutcome::claimed);
  CHECK_FALSE(claim.closed());
  claim.close();
  claim.close();
  CHECK(claim.closed());
  CHECK(claim.try_claim(ticket) == ClaimOutcome::closed);
  CHECK(claim.claimed() == 1);
}

TEST_CASE("the one who closed may still claim, once there is room") {
  uint64_t credit = 0;
  TicketClaim<HostMemory> claim(credit, 2);
  uint64_t ticket = 0;
  REQUIRE(claim.try_claim(ticket) == ClaimOutcome::claimed);
  REQUIRE(claim.try_claim(ticket) == ClaimOutcome::claimed);
  claim.close();
  CHECK(claim.try_claim_closed(ticket) == ClaimOutcome::full);
  HostMemory::store_release(credit, 1);
  CHECK(claim.try_claim_closed(ticket) == ClaimOutcome::claimed);
  CHECK(ticket == 2);
  CHECK(claim.closed());
  CHECK(claim.try_claim(ticket) == ClaimOutcome::closed);
  CHECK(claim.claimed() == 3);
}

TEST_CASE("four producers and a consumer: every message arrives once, whole, each producer's in order") {
  // Few slots and laps from just below 2^32: the wrap, full rings and stale tail packets are all on the way.
  const RingShape shape{8, 256, (uint64_t(1) << 32) - 3};
  std::vector<Packet> cells(shape.slots * shape.packets(), Packet{});
  alignas(64) uint64_t credit = 0;
  TicketClaim<HostMemory> claim(credit, shape.slots);
  constexpr uint32_t producers = 4, each = 20'000;
  std::atomic<uint64_t> refused{0};

  std::vector<std::thread> threads;
  for (uint32_t p = 0; p < producers; ++p) {
    threads.emplace_back([&, p] {
      std::vector<uint32_t> message(shape.payload_bytes() / 4);
      for (uint32_t i = 0; i < each; ++i) {
        const uint32_t body_bytes = (i * 7 + p) % (shape.body_capacity() / 8 + 1) * 8;
        const Envelope envelope{i, body_bytes, 0, p, 0, 0, 0, 0, 0};
        std::memcpy(message.data(), &envelope, sizeof envelope);
        for (uint32_t w = 0; w < body_bytes / 4; ++w) message[8 + w] = (p << 28) ^ (i * 31) ^ w;
        uint64_t ticket;
        while (claim.try_claim(ticket) != ClaimOutcome::claimed) {
          refused.fetch_add(1, std::memory_order_relaxed);
          std::this_thread::yield();
        }
        publish<HostMemory>(SingleThread{}, cells.data(), shape, ticket, message.data(), body_bytes);
      }
    });
  }

  CreditPublisher<HostMemory> credits(credit, shape.slots);
  std::vector<uint32_t> payload(shape.payload_bytes() / 4);
  uint32_t next[producers] = {};
  uint64_t wrong = 0;
  for (uint64_t ticket = 0; ticket < uint64_t(producers) * each;) {
    if (receive<HostMemory>(cells.data(), shape, ticket, payload.data()) != ReceiveOutcome::message) {
      if (credits.behind(ticket)) credits.publish(ticket);
      std::this_thread::yield();
      continue;
    }
    Envelope envelope;
    std::memcpy(&envelope, payload.data(), sizeof envelope);
    const uint32_t p = uint32_t(envelope.key), i = uint32_t(envelope.correlation);
    if (p >= producers || i != next[p]++) ++wrong;
    for (uint32_t w = 0; w < envelope.body_bytes / 4; ++w)
      wrong += payload[8 + w] != ((p << 28) ^ (i * 31) ^ w);
    ++ticket;
    if (credits.due(ticket)) credits.publish(ticket);
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  for (const uint32_t count : next) CHECK(count == each);
  CHECK(claim.claimed() == uint64_t(producers) * each);
}

TEST_CASE(
    "closing while four producers claim: every granted ticket lies below the final count, and none after") {
  for (int round = 0; round < 50; ++round) {
    uint64_t credit = 0;
    TicketClaim<HostMemory> claim(credit, 65536);
    std::atomic<uint64_t> granted{0}, highest{0};
    std::vector<std::thread> threads;
    for (int p = 0; p < 4; ++p) {
      threads.emplace_back([&] {
        uint64_t ticket, count = 0, top = 0;
        while (claim.try_claim(ticket) == ClaimOutcome::claimed) {
          ++count;
          top = ticket;
        }
        granted += count;
        uint64_t seen = highest;
        while (count != 0 && seen < top && !highest.compare_exchange_weak(seen, top)) {
        }
      });
    }
    claim.close();
    for (std::thread& thread : threads) thread.join();
    REQUIRE(granted == claim.claimed());
    if (granted != 0) REQUIRE(highest == claim.claimed() - 1);
  }
}
