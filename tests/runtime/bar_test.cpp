// The BAR transport's host side where ordinary memory stands for the device's: what the host stores there,
// what it keeps for itself, and that it reads nothing there.
#include <gyre/bridge/heap.hpp>
#include <gyre/runtime/core/host_bridge.hpp>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

std::vector<LineStore> line_stores() {
  if (HostMemory::best_line_store() == LineStore::four_packets) return {LineStore::four_packets};
  return {LineStore::four_packets, LineStore::movdir64b};
}

// A region, memory that stands for the device's, and a worker's two ends.
struct TwoParts {
  // `second`: the pages that a worker would have chosen, where the ring has pages.
  explicit TwoParts(const RingShape& shape, LineStore store = LineStore::four_packets, uint64_t second = 0)
      : layout{1, shape},
        region(layout.region_bytes(), layout.rings_bytes()),
        device(layout.inbound_bytes_elsewhere(), layout.inbound_bytes_elsewhere()),
        worker(Bridge::of(region.address(), device.address(), layout, 0)),
        host(Bridge::of(region.address(), layout, 0),
             BarInbound{device.address(), store}.of_worker(layout, 0)) {
    if (SlotPages::pages(shape) == 0) return;
    pages = {shape, second};
    worker.worker_line->slot_pages = second;
    host.take_slot_pages();
  }
  // As the worker does. One thread.
  ReceiveOutcome receive_where_placed(uint64_t ticket, uint32_t* payload) const {
    const RingCursor<Memory> at(worker.h2d, layout.shape, ticket);
    const Packet* const slot = slot_of(at);
    const Packet first = Memory::load(*slot);
    if (first.stamp != at.stamp()) return ReceiveOutcome::nothing;
    unpack(first, payload, 0);
    return receive_rest<Memory>(SingleThread{}, slot, at.stamp(), layout.shape, 1, payload);
  }
  const Packet* slot_of(const RingCursor<Memory>& at) const {
    return worker.h2d + pages.place(uint32_t(at.slot() - worker.h2d));
  }

  RegionLayout layout;
  HeapRegion region, device;
  Bridge worker;
  HostBridge host;
  SlotPages pages;
};

// Envelope and body, every word of which depends on `seed`.
std::vector<uint32_t> message_of(uint32_t seed, uint32_t body_bytes) {
  std::vector<uint32_t> message(packets_for(body_bytes) * words_a_packet);
  const Envelope envelope{seed, body_bytes, 0, ~uint64_t(seed), 1, 2, 3, 4, 0};
  std::memcpy(message.data(), &envelope, sizeof envelope);
  for (uint32_t i = 0; i < body_bytes / 4; ++i) message[8 + i] = seed * 2654435761u + i;
  return message;
}
bool same(const std::vector<uint32_t>& message, const uint32_t* payload, uint32_t body_bytes) {
  return std::memcmp(message.data(), payload, sizeof(Envelope) + body_bytes) == 0;
}

}  // namespace

TEST_CASE(
    "over BAR a message and a command are where the worker looks, and the host reads its own copy back") {
  for (const LineStore store : line_stores()) {
    TwoParts s(RingShape{4, 512, 1}, store);
    std::vector<uint32_t> payload(s.layout.shape.payload_bytes() / 4);
    for (uint32_t body = 0; body <= s.layout.shape.body_capacity(); body += 8) {
      uint64_t ticket = 0;
      REQUIRE(s.host.try_claim(ticket) == ClaimOutcome::claimed);
      const std::vector<uint32_t> message = message_of(body + 1, body);
      REQUIRE(s.host.read_back(ticket, payload.data()) == ReceiveOutcome::nothing);
      s.host.publish(ticket, {message.data(), body});
      REQUIRE(receive<Memory>(s.worker.h2d, s.layout.shape, ticket, payload.data()) ==
              ReceiveOutcome::message);
      REQUIRE(same(message, payload.data(), body));
      // What is in device memory is of no concern to the host.
      std::memset(static_cast<void*>(s.worker.h2d), 0xee, s.layout.shape.ring_bytes());
      std::fill(payload.begin(), payload.end(), 0);
      REQUIRE(s.host.read_back(ticket, payload.data()) == ReceiveOutcome::message);
      REQUIRE(same(message, payload.data(), body));
      Memory::store_release(s.worker.worker_line->h2d_credit, ticket + 1);
    }
    CHECK(s.host.commands().command(Command::inactive).word == s.worker.command_line->command);
    CHECK(CommandWord{uint32_t(s.worker.command_line->command)}.command() == Command::inactive);
    std::memset(static_cast<void*>(s.worker.command_line), 0xee, sizeof(CommandLine));
    const CommandWord again = s.host.commands().command_again();
    CHECK(again.word == 0x200u + uint32_t(Command::inactive));
    CHECK(s.worker.command_line->command == again.word);
  }
}

TEST_CASE(
    "over BAR four producers with runs of messages of every length lose, tear and double none, over "
    "whole-slot laps") {
  constexpr uint32_t producers = 4, each = 6000, longest_run = 3;  // of rings of 4
  std::vector<std::pair<LineStore, RingShape>> cases;
  for (const LineStore store : line_stores()) {
    cases.emplace_back(store, RingShape{4, 512, 0x10000 - 100});
    cases.emplace_back(store, RingShape{32, 512, 0x10000 - 100});  // of four pages
  }
  for (const auto& [store, shape] : cases) {
    TwoParts s(shape, store, 0b0110);
    std::vector<std::thread> threads;
    for (uint32_t producer = 0; producer < producers; ++producer) {
      threads.emplace_back([&s, producer] {
        std::minstd_rand random(producer + 1);
        for (uint32_t sent = 0; sent < each;) {
          const uint32_t most = std::min(uint32_t(random()) % longest_run + 1, each - sent);
          uint64_t first = 0;
          uint32_t count = 0;
          while (s.host.try_claim_run(most, first, count) != ClaimOutcome::claimed) {
            std::this_thread::yield();
          }
          std::vector<uint32_t> words[longest_run];
          HostBridge::Message messages[longest_run];
          for (uint32_t i = 0; i < count; ++i) {
            const uint32_t body = uint32_t(random()) % (s.layout.shape.body_capacity() / 8 + 1) * 8;
            words[i] = message_of(producer * each + sent + i, body);
            messages[i] = {words[i].data(), body};
          }
          s.host.publish_run(first, count, [&](uint32_t i) { return messages[i]; });
          sent += count;
          if (random() % 4 == 0) std::this_thread::yield();
        }
      });
    }
    std::vector<uint32_t> payload(s.layout.shape.payload_bytes() / 4), copy(payload.size());
    uint32_t next[producers] = {}, wrong = 0;
    for (uint64_t ticket = 0; ticket < producers * each; ++ticket) {
      while (s.receive_where_placed(ticket, payload.data()) != ReceiveOutcome::message) {
        std::this_thread::yield();
      }
      Envelope envelope;
      std::memcpy(&envelope, payload.data(), sizeof envelope);
      const auto seed = uint32_t(envelope.correlation), producer = seed / each;
      wrong += producer >= producers || seed % each != next[producer % producers]++;
      wrong += !same(message_of(seed, envelope.body_bytes), payload.data(), envelope.body_bytes);
      // The copy is there before the message is.
      wrong += s.host.read_back(ticket, copy.data()) != ReceiveOutcome::message ||
               !same(message_of(seed, envelope.body_bytes), copy.data(), envelope.body_bytes);
      if (const RingCursor<Memory> at(s.worker.h2d, s.layout.shape, ticket); at.stamps_whole_slot()) {
        for (uint32_t k = 0; k < s.layout.shape.packets(); ++k)
          wrong += Memory::load(s.slot_of(at)[k]).stamp != at.stamp();
      }
      Memory::store_release(s.worker.worker_line->h2d_credit, ticket + 1);
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("over BAR workers answer, obey and drain as in one region") {
  Stepped s({.transport = TransportKind::bar, .slots = 4, .timeout = 5s});
  CHECK(s.core->engine().transport() == TransportKind::bar);
  for (uint64_t i = 0; i < 20; ++i) {
    auto future = s.ask(i % 2 == 0 ? Action::ANSWER : Action::GROW, i);
    s.work();
    const auto reply = future.get();
    REQUIRE(reply);
    if (i % 2 == 0) CHECK(reply.value()->getValue() == 2 * i + 1);
    if (i % 2 == 1) CHECK(reply.value()->getFiller().size() == i);
  }
  CHECK(s.core->terminate(1s).books.balanced());
}

TEST_CASE("over BAR messages lie in those of the ring's pages that its worker chose, and in no others") {
  Stepped s({.transport = TransportKind::bar, .workers = 2, .slots = 32, .slot_bytes = 1024, .timeout = 5s});
  const RingShape shape = s.core->shape();
  REQUIRE(SlotPages::pages(shape) == 8);
  for (uint64_t i = 0; i < 3 * shape.slots; ++i) {
    const uint64_t length = i % 64;
    auto future = i % 3 == 0 ? s.ask(Action::GROW, length) : s.ask(Action::ANSWER, i);
    s.work();
    const auto reply = future.get();
    REQUIRE(reply);
    if (i % 3 == 0) CHECK(reply.value()->getFiller().size() == length);
    if (i % 3 != 0) CHECK(reply.value()->getValue() == 2 * i + 1);
  }
  const auto* const device = static_cast<const char*>(s.engine->bar_inbound().address);
  uint32_t used[2] = {};
  for (uint32_t worker = 0; worker < 2; ++worker) {
    const uint64_t second = Bridge::of(s.engine->region(), s.core->layout(), worker).worker_line->slot_pages;
    const auto* const ring =
        reinterpret_cast<const Packet*>(device + s.core->layout().inbound_ring_elsewhere(worker));
    for (uint32_t page = 0; page < SlotPages::pages(shape); ++page) {
      for (const uint32_t candidate : {0u, 1u}) {
        const Packet* const packets = ring + SlotPages::candidate(page, candidate);
        const bool chosen = candidate == (second >> page & 1), messages = worker == 0;
        uint32_t stamped = 0;
        for (uint32_t k = 0; k < SlotPages::page_bytes / sizeof(Packet); ++k)
          stamped += packets[k].stamp != 0;
        CHECK((stamped != 0) == (chosen && messages));
        used[candidate] += stamped != 0;
      }
    }
  }
  CHECK(used[0] + used[1] == 8);
  CHECK(used[0] != 0);
  CHECK(used[1] != 0);
  CHECK(s.core->terminate(1s).books.balanced());
}

TEST_CASE("over BAR terminate buries what a stopped worker never took, with its body") {
  Stepped s({.transport = TransportKind::bar, .slots = 8, .timeout = 5s});
  auto answered = s.ask(Action::ANSWER, 1);
  auto buried = s.ask(Action::ANSWER, 2);
  REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(77)));
  REQUIRE(s.engine->step() == PollOutcome::message);
  // Whatever device memory holds by then.
  std::memset(
      static_cast<char*>(s.engine->bar_inbound().address) + s.core->layout().inbound_ring_elsewhere(0), 0xee,
      SlotPages::ring_bytes(s.core->shape()));
  const Termination report = s.core->terminate(1s);
  CHECK_FALSE(report.worker_stuck);
  CHECK(answered.get().value()->getValue() == 3);
  CHECK(buried.get().error().status == Status::terminated);
  CHECK(report.books.asks.dead_letters == 1);
  CHECK(report.books.tells.dead_letters == 1);
  CHECK(report.books.balanced());
  const auto letters = s.core->take_dead_letters();
  REQUIRE(letters.size() == 2);
  REQUIRE(letters[1].body.size() >= 16);
  uint64_t value = 0;  // the root pointer is a word, and then come the data
  std::memcpy(&value, reinterpret_cast<const char*>(letters[1].body.data()) + 8, sizeof value);
  CHECK(value == 77);
}

TEST_CASE("a transport that is none is refused once") {
  try {
    Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .transport = TransportKind(99)});
    FAIL("it launched");
  } catch (const BadOptions& error) {
    const std::string text = error.what();
    CHECK(text.find("transport") != std::string::npos);
    CHECK(std::count(text.begin(), text.end(), '\n') == 2);  // the heading and one fault
  }
}

TEST_CASE("the CPU engine refuses BAR by name") {
  try {
    Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .transport = TransportKind::bar});
    FAIL("it launched");
  } catch (const BadOptions& error) {
    CHECK(std::string(error.what()) ==
          "launching a runtime: these options are wrong:\n"
          "  --transport bar: the CPU engine's only transport is heap\n");
  }
  const Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu});
  CHECK(runtime.transport() == TransportKind::heap);
  CHECK(runtime.transport_reason().empty());
}
