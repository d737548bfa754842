// The soak lets nothing that is wrong pass: workers that echo badly are caught, good ones are not.
#include <gyre/bridge/heap.hpp>

#include <atomic>
#include <cstring>
#include <thread>

#include "bench/soak_echo.hpp"
#include "bench/soak_host.hpp"
#include "support/catch.hpp"

namespace {

using namespace gyre;
using namespace gyre::bench;

// What a worker does to message `ticket` before it is sent back: returns how often it is.
using Change = uint32_t (*)(uint64_t ticket, uint32_t* payload);

// Runs a soak against one worker that echoes with `change`; what the soak threw, or nothing.
std::string soak(const SoakPlan& plan, Change change, SoakFigures* figures = nullptr) {
  const RegionLayout layout{1, RingShape{.slots = 16, .slot_bytes = most_soak_slot_bytes}};
  const HeapRegion region(layout.region_bytes(), layout.region_bytes());
  const Bridge bridge = Bridge::of(region.address(), layout, 0);
  std::atomic<bool> stopping{false};
  std::thread worker([&] {
    uint32_t payload[most_soak_words];
    CreditPublisher<Memory> credits(bridge.worker_line->h2d_credit, layout.shape.slots);
    uint64_t answered = 0;
    for (uint64_t ticket = 0; !stopping;) {
      if (receive<Memory>(bridge.h2d, layout.shape, ticket, payload) != ReceiveOutcome::message) {
        std::this_thread::yield();
        continue;
      }
      for (uint32_t times = change(ticket, payload); times != 0; --times)
        publish<Memory>(SingleThread{}, bridge.d2h, layout.shape, answered++, payload, payload[2]);
      credits.publish(++ticket);
    }
  });
  std::string complaint;
  try {
    SoakHost host({bridge}, plan);
    const SoakFigures found = host.run([] {});
    if (figures != nullptr) *figures = found;
  } catch (const Error& error) {
    complaint = error.what();
  }
  stopping = true;
  worker.join();
  return complaint;
}

const SoakPlan small{.messages = 500,
                     .threads = 2,
                     .least_packets = 3,
                     .most_packets = 32,
                     .timeout = std::chrono::milliseconds(5000)};

TEST_CASE("a worker that echoes everything passes, and all is counted") {
  SoakFigures figures;
  CHECK(soak(
            small, [](uint64_t, uint32_t*) { return 1u; }, &figures) == "");
  CHECK(figures.messages == 500);
  CHECK(figures.packets >= 3 * 500);
  CHECK(figures.packets <= 32 * 500);
  CHECK(figures.checksum != 0);
}

TEST_CASE("one changed bit of one word is caught") {
  const std::string complaint = soak(small, [](uint64_t ticket, uint32_t* payload) {
    if (ticket == 123) payload[8] ^= 4;
    return 1u;
  });
  CHECK(complaint.find("with other content") != std::string::npos);
}

TEST_CASE("a changed envelope is caught") {
  const std::string complaint = soak(small, [](uint64_t ticket, uint32_t* payload) {
    if (ticket == 77) payload[3] ^= 1;  // its deadline
    return 1u;
  });
  CHECK(complaint.find("with other content") != std::string::npos);
}

TEST_CASE("a message that comes twice is caught") {
  const std::string complaint =
      soak(small, [](uint64_t ticket, uint32_t*) { return ticket == 200 ? 2u : 1u; });
  CHECK(complaint.find("lost, doubled, torn or out of order") != std::string::npos);
}

TEST_CASE("a message that is left out is caught by the next one") {
  const std::string complaint =
      soak(small, [](uint64_t ticket, uint32_t*) { return ticket == 200 ? 0u : 1u; });
  CHECK(complaint.find("lost, doubled, torn or out of order") != std::string::npos);
}

TEST_CASE("a last message that does not come back ends the soak with an error") {
  SoakPlan plan = small;
  plan.timeout = std::chrono::seconds(2);  // longer than a busy machine keeps a thread waiting
  const std::string complaint =
      soak(plan, [](uint64_t ticket, uint32_t*) { return ticket == 499 ? 0u : 1u; });
  CHECK(complaint.find("after 499 of 500 messages") != std::string::npos);
}

TEST_CASE("what the caller's look throws ends the soak") {
  const RegionLayout layout{1, RingShape{.slots = 16, .slot_bytes = 64}};
  const HeapRegion region(layout.region_bytes(), layout.region_bytes());
  SoakHost host({Bridge::of(region.address(), layout, 0)}, SoakPlan{.messages = 100});
  CHECK_THROWS_WITH(host.run([] { throw Error("the worker is gone"); }), "the worker is gone");
}

}  // namespace
