// The memory of the raw baselines, on a driver in ordinary memory: both sides address the same rings, and
// what comes back is taken whole or not at all.
#include "bench/baselines/raw_memory.hpp"

#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/core/host_bridge.hpp>

#include <algorithm>
#include <array>

#include "support/catch.hpp"
#include "support/fake_driver.hpp"
#if defined(GYRE_WITH_VULKAN)
#include "support/fake_vulkan.hpp"
#endif

namespace {

using namespace gyre;
using namespace gyre::bench;

constexpr RingShape shape{.slots = 4, .slot_bytes = 128, .first_lap = 0xfffffffe};
using Payload = std::array<uint64_t, 12>;  // 8 packets, 96 bytes

Payload payload_of(uint64_t number) {
  Payload payload;
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = number * 1000 + i;
  return payload;
}

// A kernel's part of one message.
void echo(const RawRings& rings, uint32_t worker, uint64_t ticket, uint32_t packets,
          const SlotPages& pages = {}) {
  for (uint32_t k = 0; k < packets; ++k) {
    const Packet packet = Memory::load(rings.request(worker, ticket, pages)[k]);
    REQUIRE(packet.stamp == rings.shape.stamp(ticket));
    Memory::store(rings.reply(worker, ticket)[k], packet);
  }
}

TEST_CASE("every worker's messages come back over laps, the wrap of the stamps included") {
  gyre_test::FakeDriver fake({builtin_actors()});
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::Context context(driver, 0);
  for (const TransportKind transport : {TransportKind::automatic, TransportKind::unified}) {
    const RawMemory memory(context, transport, 3, shape, 8);
    CHECK(memory.transport() == (transport == TransportKind::unified ? transport : TransportKind::pinned));
    for (uint64_t ticket = 0; ticket < 5 * shape.slots; ++ticket) {
      for (uint32_t worker = 0; worker < 3; ++worker) {
        const Payload sent = payload_of(ticket * 3 + worker);
        Payload got{};
        memory.send(worker, ticket, sent.data());
        CHECK(!memory.try_receive(worker, ticket, got.data()));
        echo(memory.on_device(), worker, ticket, 8);
        REQUIRE(memory.try_receive(worker, ticket, got.data()));
        CHECK(got == sent);
        CHECK(!memory.try_receive(worker, ticket + shape.slots, got.data()));  // the same slot, a lap later
      }
    }
  }
}

#if defined(GYRE_WITH_VULKAN)
TEST_CASE("over BAR each worker's slots lie in the pages that it chose, and in one piece where none does") {
  gyre_test::FakeDriver fake({builtin_actors()});
  gyre_test::FakeVulkan vulkan;
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::Context context(driver, 0);
  constexpr RingShape of_four_pages{.slots = 128, .slot_bytes = 128, .first_lap = 0xfffe};
  constexpr uint32_t workers = 3, slots_a_page = SlotPages::page_bytes / of_four_pages.slot_bytes;
  RawMemory memory(context, TransportKind::bar, workers, of_four_pages, 8);
  const RawRings& rings = memory.on_device();
  for (const bool near_pages : {false, true}) {
    SlotPages pages[workers];
    if (near_pages) {
      for (uint32_t worker = 0; worker < workers; ++worker) {
        CHECK_FALSE(memory.take_slot_pages());
        const uint64_t second = 0b0110 + worker;  // the last is 0b1000
        pages[worker] = {of_four_pages, second};
        Memory::store_relaxed(rings.line_of(worker).slot_pages, second);
        Memory::store_release(rings.line_of(worker).started, 1);
      }
      REQUIRE(memory.take_slot_pages());
      CHECK(rings.request(2, 3 * slots_a_page, pages[2]) - rings.request(2, 0) == SlotPages::candidate(3, 1));
      CHECK(rings.request(0, 3 * slots_a_page, pages[0]) - rings.request(0, 0) == SlotPages::candidate(3, 0));
    }
    const uint64_t first = near_pages ? 5 * of_four_pages.slots : 0;
    for (uint64_t ticket = first; ticket < first + 5 * of_four_pages.slots; ++ticket) {
      for (uint32_t worker = 0; worker < workers; ++worker) {
        const Payload sent = payload_of(ticket * workers + worker);
        Payload got{};
        memory.send(worker, ticket, sent.data());
        echo(rings, worker, ticket, 8, pages[worker]);
        REQUIRE(memory.try_receive(worker, ticket, got.data()));
        CHECK(got == sent);
      }
    }
  }
}
#endif

TEST_CASE("a reply without its last packet is not taken") {
  gyre_test::FakeDriver fake({builtin_actors()});
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::Context context(driver, 0);
  const RawMemory memory(context, TransportKind::pinned, 1, shape, 8);
  memory.send(0, 0, payload_of(1).data());
  echo(memory.on_device(), 0, 0, 7);
  Payload got{};
  CHECK(!memory.try_receive(0, 0, got.data()));
  echo(memory.on_device(), 0, 0, 8);
  CHECK(memory.try_receive(0, 0, got.data()));
}

TEST_CASE("every worker is told to stop, by a word of its own") {
  gyre_test::FakeDriver fake({builtin_actors()});
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::Context context(driver, 0);
  const RawMemory memory(context, TransportKind::pinned, 3, shape, 8);
  const RawRings& rings = memory.on_device();
  for (uint32_t worker = 0; worker < 3; ++worker)
    CHECK(Memory::load_acquire(rings.command_word(worker)) == 0);
  memory.command_stop();
  for (uint32_t worker = 0; worker < 3; ++worker)
    CHECK(Memory::load_acquire(rings.command_word(worker)) == 1);
}

TEST_CASE("Gyre's host bridges find the same rings and credits") {
  gyre_test::FakeDriver fake({builtin_actors()});
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::Context context(driver, 0);
  const RawMemory memory(context, TransportKind::pinned, 2, shape, 8);
  const RawRings& rings = memory.on_device();
  for (uint32_t worker = 0; worker < 2; ++worker) {
    HostBridge bridge(memory.bridge(worker));
    Envelope envelope{};
    envelope.correlation = 42 + worker;
    envelope.body_bytes = 64;
    uint32_t payload[24] = {};
    std::memcpy(payload, &envelope, sizeof envelope);
    for (uint32_t ticket = 0; ticket < shape.slots; ++ticket) {
      uint64_t claimed = 0;
      REQUIRE(bridge.try_claim(claimed) == ClaimOutcome::claimed);
      REQUIRE(claimed == ticket);
      bridge.publish(ticket, {payload, 64});
      echo(rings, worker, ticket, 8);
    }
    uint64_t ticket = 0;
    CHECK(bridge.try_claim(ticket) == ClaimOutcome::full);
    Memory::store_release(rings.line_of(worker).h2d_credit, 1);
    CHECK(bridge.try_claim(ticket) == ClaimOutcome::claimed);
    uint32_t right = 0;
    CHECK(bridge.drain([&](const ArrivedReply* reply) {
      alignas(16) uint32_t got[24] = {};
      if (reply != nullptr) reply->unpack(reinterpret_cast<std::byte*>(got));
      right += reply != nullptr && std::equal(payload, payload + 24, got);
    }) == shape.slots);
    CHECK(right == shape.slots);
  }
}

TEST_CASE("a transport that the raw baselines lack is refused by name") {
  gyre_test::FakeDriver fake({builtin_actors()});
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::Context context(driver, 0);
  CHECK_THROWS_AS(RawMemory(context, TransportKind::heap, 1, shape, 8), BadOptions);
}

}  // namespace
