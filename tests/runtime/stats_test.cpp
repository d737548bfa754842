// What Runtime::stats says, on either engine.
#include <gyre/gyre.hpp>

#include <numeric>
#include <thread>

#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

Runtime launch_probe(Options options = {}) {
  return Runtime::launch(probe_actors(), on_this_engine(options));
}

constexpr size_t request = 0, note = 1, none = 2;  // Probe's handlers, and what is for none

uint64_t sum(const HandlerStats& handler) {
  return std::accumulate(handler.times.begin(), handler.times.end(), uint64_t(0));
}

// What the books and the stats by handler both count.
void check_sums(const Stats& stats) {
  uint64_t processed = 0, dead = 0;
  for (const HandlerStats& handler : stats.handlers()) {
    processed += handler.processed;
    dead += handler.dead_letters;
    CHECK(sum(handler) == handler.processed);
  }
  const Books& books = stats.books;
  REQUIRE(books.asks.timed_out == 0);  // of those the worker may have answered some
  CHECK(dead == books.asks.dead_letters + books.tells.dead_letters);
  CHECK(processed == books.asks.answered + books.tells.processed);
  CHECK(processed + books.asks.error_replies + dead == books.asks.accepted + books.tells.accepted);
}

}  // namespace

TEST_CASE("each worker counts what becomes of its messages, by handler", "[gpu]") {
  Runtime runtime = launch_probe({.workers = 2, .slots = 16});
  Client client = runtime.client();
  const auto ask = [&](uint64_t key, Action action, uint64_t argument) {
    return bool(client.ask<ProbeRequest>(Address<Probe>{key}, asking(action, argument)).get());
  };
  for (uint64_t i = 0; i < 50; ++i) REQUIRE(ask(2 * i, Action::ANSWER, i));
  for (uint64_t i = 0; i < 20; ++i) REQUIRE(ask(1, Action::ANSWER, i));
  for (uint64_t i = 0; i < 7; ++i) REQUIRE_FALSE(ask(1, Action::FAIL, i));
  REQUIRE_FALSE(ask(0, Action::GROW, 100'000));
  for (uint64_t i = 0; i < 30; ++i) REQUIRE(client.tell<ProbeNote>(Address<Probe>{1}, noting(i)));
  REQUIRE(client.start(Address<Probe>{4}));
  REQUIRE(runtime.drain());

  const Stats stats = runtime.stats();
  CHECK(stats.engine == engine_under_test);
  CHECK(stats.state == Lifecycle::draining);
  CHECK(stats.slots == 16);
  REQUIRE(stats.workers.size() == 2);
  for (const WorkerStats& worker : stats.workers) {
    REQUIRE(worker.handlers.size() == 3);
    CHECK(worker.handlers[request].actor == "gyre_test::Probe");
    CHECK(worker.handlers[request].message == "ProbeRequest");
    CHECK(worker.handlers[note].message == "ProbeNote");
    CHECK(worker.handlers[none].actor.empty());
    CHECK(worker.depth <= 1);  // the drain's own message
    CHECK(worker.depth_high_water >= worker.depth);
  }
  const HandlerStats& first = stats.workers[0].handlers[request];
  CHECK(first.processed == 50);
  CHECK(first.failed == 1);
  CHECK(first.received() == 51);
  CHECK(stats.workers[0].handlers[note].received() == 0);
  CHECK(stats.workers[0].handlers[none].processed == 1);
  const HandlerStats& second = stats.workers[1].handlers[request];
  CHECK(second.processed == 20);
  CHECK(second.failed == 7);
  CHECK(second.dead_letters == 0);
  CHECK(stats.workers[1].handlers[note].processed == 30);
  check_sums(stats);
  runtime.terminate();
  check_sums(runtime.stats());
  for (const WorkerStats& worker : runtime.stats().workers) CHECK(worker.depth == 0);
}

TEST_CASE("a message that came too late is counted as expired, and a tell as a dead letter", "[gpu]") {
  Runtime runtime = launch_probe();
  Client client = runtime.client();
  auto busy = client.ask<ProbeRequest>(probe, asking(Action::WORK, 50'000'000));
  REQUIRE(client.tell<ProbeNote>(probe, noting(1), TellOptions{{}, 1ms}));
  REQUIRE(client.tell<ProbeNote>(probe, noting(2)));
  REQUIRE(busy.get());
  REQUIRE(runtime.drain());
  const Stats stats = runtime.stats();
  const HandlerStats& notes = stats.workers[0].handlers[note];
  CHECK(notes.expired == 1);
  CHECK(notes.dead_letters == 1);
  CHECK(notes.failed == 0);
  CHECK(notes.processed == 1);
  // It worked that long by the engine's clock.
  const HandlerStats& asks = stats.workers[0].handlers[request];
  CHECK(asks.longest_ns_below() > 32'000'000);
  CHECK(asks.handler_ns > 25'000'000);
  check_sums(stats);
}

TEST_CASE("what a worker never took is counted for its handler, and the sums are the books'", "[gpu]") {
  Runtime runtime = launch_probe({.slots = 8});
  Client client = runtime.client();
  auto in_hand =
      client.ask<ProbeRequest>(probe, asking(Action::WORK, 3'600'000'000'000), std::chrono::hours(2));
  uint64_t asks = 0, tells = 0;
  while (asks < 3 && client.try_ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), std::chrono::hours(2)))
    ++asks;
  while (client.try_tell<ProbeNote>(probe, noting(1))) ++tells;
  CHECK(runtime.stats().workers[0].depth_high_water == 8);
  CHECK(runtime.terminate().books.balanced());
  const bool taken = bool(in_hand.get());
  const Stats stats = runtime.stats();
  CHECK(stats.state == Lifecycle::terminated);
  CHECK(stats.workers[0].handlers[request].dead_letters == asks + (taken ? 0 : 1));
  CHECK(stats.workers[0].handlers[note].dead_letters == tells);
  check_sums(stats);
}

TEST_CASE("workers say that they are there until they stop, and what they counted without being asked",
          "[gpu]") {
  Runtime runtime = launch_probe({.workers = 2});
  Client client = runtime.client();
  REQUIRE(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get());
  for (uint32_t worker = 0; worker < 2; ++worker) {
    while (!runtime.stats().workers[worker].heartbeat_age_s) std::this_thread::yield();
    CHECK(*runtime.stats().workers[worker].heartbeat_age_s >= 0);
  }
  while (runtime.stats().workers[0].handlers[request].processed == 0) std::this_thread::yield();
  CHECK(runtime.stats().workers[0].handlers[request].processed == 1);
  runtime.terminate();
  for (const WorkerStats& worker : runtime.stats().workers) CHECK_FALSE(worker.heartbeat_age_s);
}

TEST_CASE("memory is counted by kind while workers live, and asking for it waits for none", "[gpu]") {
  Runtime runtime = launch_probe();
  const auto buffer = runtime.allocate<float>(MemoryKind::device, 1000);
  const MemoryStats memory = runtime.stats().memory;
  CHECK(memory.region == runtime.region_bytes());
  CHECK((memory.bar != 0) == (runtime.transport() == TransportKind::bar));
  CHECK(memory.actors > 0);
  CHECK(memory.buffer_table >= 24 * runtime.options().max_buffers);
  CHECK(memory.buffers[uint32_t(MemoryKind::device)] >= 4000);
  const bool on_cuda = runtime.engine() == EngineKind::cuda;
  CHECK((memory.modules != 0) == on_cuda);
  CHECK((memory.device_total != 0) == on_cuda);
  CHECK(memory.device_free <= memory.device_total);
  CHECK(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get());
}

TEST_CASE("copies to and from buffers are counted with their bytes", "[gpu]") {
  Runtime runtime = launch_probe();
  const std::vector<float> values(1000, 1.5f);
  auto buffer = runtime.allocate<float>(MemoryKind::device, values.size());
  buffer.write(values);
  buffer.write(values);
  std::vector<float> back(values.size());
  buffer.read(back);
  CHECK(back == values);
  const Stats stats = runtime.stats();
  CHECK(stats.writes.copies == 2);
  CHECK(stats.writes.bytes == 8000);
  CHECK(stats.reads.copies == 1);
  CHECK(stats.reads.bytes == 4000);
}

TEST_CASE("stats can be read for as long as their reader lives", "[gpu]") {
  std::function<Stats()> read;
  {
    Runtime runtime = launch_probe();
    read = runtime.stats_reader();
    REQUIRE(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get());
  }
  CHECK(read().state == Lifecycle::terminated);
  CHECK(read().workers[0].handlers[request].processed == 1);
}
