// The runtime's own life, with several threads at it, and with threads that are suspended in the middle.
#include <gyre/runtime/builtin_actors.hpp>

#include <atomic>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "support/arrivals.hpp"
#include "support/catch.hpp"
#include "support/stepped.hpp"
#include "support/trap_page.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

// A stepped engine whose end, and failure, are the test's.
class ScriptedEngine final : public Engine {
 public:
  explicit ScriptedEngine(const Options& options) : engine_(probe_actors(), options) {}

  EngineKind kind() const override { return engine_.kind(); }
  TransportKind transport() const override { return engine_.transport(); }
  std::string device_name() const override { return "scripted"; }
  void* region() override { return engine_.region(); }
  BufferMemory& buffer_memory() override { return engine_.buffer_memory(); }
  double compile_ms() const override { return 0; }
  void launch() override { engine_.launch(); }
  bool finished() override {
    asked = true;
    return !held && engine_.finished();
  }
  std::optional<std::string> failure() override { return on_failure ? on_failure() : std::nullopt; }
  void leak() override {}

  std::atomic<bool> held{false};   // the workers do not end
  std::atomic<bool> asked{false};  // somebody waits for that
  std::function<std::optional<std::string>()> on_failure;

 private:
  SteppedEngine engine_;
};

struct Scripted {
  Scripted() {
    const Options options{.slots = 4, .timeout = 5s};
    auto made = std::make_unique<ScriptedEngine>(options);
    engine = made.get();
    core = detail::make_core(probe_actors(), options, std::move(made));
  }
  ~Scripted() {
    engine->held = false;
    core->terminate(5s);
  }

  ScriptedEngine* engine;
  std::shared_ptr<detail::Core> core;
};

void until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::yield();
}

// A message for Core, whose body lies in a page that suspends who reads it: its sender, once it has claimed a
// slot.
class TrappedMessage {
 public:
  // A ProbeNote of value 7, and a list of 40 numbers.
  TrappedMessage() {
    capnp::MallocMessageBuilder message;
    auto note = message.initRoot<ProbeNote>();
    note.setValue(7);
    note.initFiller(40);
    const auto words = message.getSegmentsForOutput()[0].asBytes();
    body_bytes_ = uint32_t(words.size());
    std::memcpy(body(), words.begin(), words.size());
    std::memcpy(&root_, words.begin(), sizeof root_);
    page_.set();
  }
  detail::Outgoing message() { return {reinterpret_cast<capnp::word*>(body()), body_bytes_, root_}; }
  TrapPage& page() { return page_; }

 private:
  std::byte* body() const { return page_.address() + detail::Outgoing::heads_bytes; }

  TrapPage page_;
  uint32_t body_bytes_ = 0;
  uint64_t root_ = 0;
};

}  // namespace

TEST_CASE("terminate(1ms) beside another thread's terminate(1h) returns in its own time, unfinished") {
  Scripted s;
  s.engine->held = true;
  Arrivals<Termination> ended, late;
  std::thread first([&] { ended.add(s.core->terminate(1h)); });
  until([&] { return s.engine->asked.load(); });
  std::thread second([&] { late.add(s.core->terminate(1ms)); });
  CHECK(late.wait_for(1));
  CHECK(ended.count() == 0);
  s.engine->held = false;
  second.join();
  first.join();
  const Termination unfinished = late.take().at(0);
  CHECK(unfinished.unfinished);
  CHECK_FALSE(unfinished.worker_stuck);
  const Termination report = ended.take().at(0);
  CHECK_FALSE(report.unfinished);
  CHECK_FALSE(report.worker_stuck);
  CHECK(report.books.balanced());
  CHECK_FALSE(s.core->terminate(1ms).unfinished);
  CHECK(s.core->state() == Lifecycle::terminated);
}

TEST_CASE("activate, deactivate and drain beside drain(1h) each return in their own time, by name") {
  Stepped s;
  REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(1)));
  Arrivals<Status> drained, others;
  const auto status = [](const Result<void>& result) { return result ? Status::ok : result.error().status; };
  std::thread drainer([&] { drained.add(status(s.core->drain(1h))); });
  until([&] { return s.core->state() == Lifecycle::draining; });
  std::thread other([&] {
    others.add(status(s.core->set_active(true, 1ms)));
    others.add(status(s.core->set_active(false, 1ms)));
    others.add(status(s.core->drain(1ms)));
  });
  CHECK(others.wait_for(3));
  CHECK(drained.count() == 0);
  while (drained.count() == 0) s.work();
  other.join();
  drainer.join();
  CHECK(others.take() == std::vector{Status::draining, Status::draining, Status::worker_stuck});
  CHECK(drained.take() == std::vector{Status::ok});
}

TEST_CASE("activate(1ms) beside deactivate(1h) returns in its own time, and the later command holds") {
  Stepped s;
  Arrivals<bool> deactivated, activated;
  std::thread first([&] { deactivated.add(bool(s.core->set_active(false, 1h))); });
  until([&] { return s.core->state() == Lifecycle::inactive; });
  std::thread second([&] { activated.add(bool(s.core->set_active(true, 1ms))); });
  CHECK(activated.wait_for(1));
  CHECK(deactivated.count() == 0);
  while (deactivated.count() == 0) s.work();
  second.join();
  first.join();
  CHECK(activated.take() == std::vector{false});  // no worker obeyed in time
  CHECK(deactivated.take() == std::vector{true});
  CHECK(s.core->state() == Lifecycle::active);
  auto future = s.ask(Action::ANSWER, 1);
  s.work();
  CHECK(future.get().value()->getValue() == 3);
}

TEST_CASE("drain(1h) returns `terminated` when another thread terminates") {
  Stepped s;
  Arrivals<Status> drained;
  REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(1)));
  std::thread drainer([&] { drained.add(s.core->drain(1h).error().status); });
  until([&] { return s.core->state() == Lifecycle::draining; });
  CHECK(s.core->terminate(5s).books.balanced());
  drainer.join();
  CHECK(drained.take() == std::vector{Status::terminated});
}

TEST_CASE("nothing is commanded after stop: a worker that is to end is not activated again") {
  const RegionLayout layout{1, RingShape{4, 128, 1}};
  HeapRegion region(layout.region_bytes(), layout.rings_bytes());
  HostBridge host(Bridge::of(region.address(), layout, 0));
  const auto commanded = [&] {
    return CommandWord{uint32_t(Bridge::of(region.address(), layout, 0).command_line->command)};
  };
  host.commands().command(Command::inactive);
  const CommandWord stop = host.commands().command(Command::stop);
  CHECK(commanded().word == stop.word);
  const CommandWord after = host.commands().command(Command::run);
  CHECK(after.command() == Command::stop);
  CHECK(commanded().word == after.word);
  CHECK(host.commands().command_again().command() == Command::stop);
}

TEST_CASE("the last of many threads' commands is the one that a worker sees") {
  const RegionLayout layout{1, RingShape{4, 128, 1}};
  HeapRegion region(layout.region_bytes(), layout.rings_bytes());
  HostBridge host(Bridge::of(region.address(), layout, 0));
  std::atomic<uint32_t> newest{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const uint32_t word = host.commands().command(i % 2 == 0 ? Command::inactive : Command::run).word;
        uint32_t seen = newest.load();
        while (seen < word && !newest.compare_exchange_weak(seen, word)) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(newest >> 8 == 4 * 2000);
  CHECK(Bridge::of(region.address(), layout, 0).command_line->command == newest);
}

TEST_CASE("a sender suspended between claim and publish does not keep terminate from ending: it says so") {
  for (const bool ask : {false, true}) {
    Stepped s;
    TrappedMessage trapped;
    Arrivals<Status> sent, outcome;
    std::thread sender([&] {
      if (ask) {
        const auto call = s.core->ask({0, 0, 1, 0}, trapped.message(), {60s, 0}, detail::WhenFull::refuse);
        sent.add(call ? Status::ok : call.error().status);
        if (!call) return;
        const detail::CallHandle held(*s.core, call.value());
        s.core->wait(call.value());
        outcome.add(s.core->calls().failure(call.value()).status);
      } else {
        const auto told = s.core->tell({0, 0, 1, 0}, trapped.message(), {60s, {}}, detail::WhenFull::refuse);
        sent.add(told ? Status::ok : told.error().status);
        outcome.add(Status::terminated);
      }
    });
    trapped.page().wait_until_touched();
    REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(1)));  // behind it
    auto behind = s.try_ask(1, 60s);
    REQUIRE(behind);
    Arrivals<Termination> ended;
    std::thread terminator([&] { ended.add(s.core->terminate(1ms)); });
    CHECK(ended.wait_for(1));
    CHECK(sent.count() == 0);
    trapped.page().let_go();
    terminator.join();
    sender.join();
    const Termination report = ended.take().at(0);
    CHECK(report.sender_stuck);
    CHECK_FALSE(report.worker_stuck);
    CHECK_FALSE(report.reader_stuck);
    CHECK(report.books.balanced());
    CHECK(report.books.asks.inferred == (ask ? 1 : 0));
    CHECK(report.books.tells.inferred == (ask ? 0 : 1));
    CHECK(report.books.asks.dead_letters == (ask ? 2 : 1));
    CHECK(report.books.tells.dead_letters == (ask ? 1 : 2));
    CHECK(report.books.tells.processed == 0);
    CHECK(behind.value().get().error().status == Status::terminated);
    CHECK(s.core->take_dead_letters().size() == 2);  // those behind it
    CHECK(sent.take() == std::vector{Status::ok});
    CHECK(outcome.take() == std::vector{Status::terminated});
  }
}

TEST_CASE("a thread suspended while it takes replies does not keep terminate from ending: it says so") {
  Stepped s;
  auto future = s.ask(Action::ANSWER, 1, 60s);
  s.work();
  Arrivals<int> taking, go;
  std::thread reader([&] {
    s.core->host().bridges[0].drain([&](const ArrivedReply*) {
      taking.add(1);
      go.wait_for(1);
    });
  });
  REQUIRE(taking.wait_for(1));
  Arrivals<Termination> ended;
  std::thread terminator([&] { ended.add(s.core->terminate(1ms)); });
  CHECK(ended.wait_for(1));
  go.add(1);
  terminator.join();
  reader.join();
  const Termination report = ended.take().at(0);
  CHECK(report.reader_stuck);
  CHECK_FALSE(report.worker_stuck);
  CHECK_FALSE(report.sender_stuck);
  CHECK(report.books.balanced());
  CHECK(report.books.asks.dead_letters == 1);
  CHECK(report.books.asks.inferred == 1);
  CHECK(future.get().error().status == Status::terminated);
}

TEST_CASE("an engine that fails while terminate takes the last replies has failed: that stays") {
  Scripted s;
  Client client = client_of(s.core);
  auto future = client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 60s);
  Packet* const ring =
      reinterpret_cast<Packet*>(static_cast<char*>(s.engine->region()) + s.core->layout().d2h_ring(0));
  Memory::store(ring[0], Packet{{0, 0, 0xffffffffu}, 1});  // no message: found once the workers have ended
  const Termination report = s.core->terminate(5s);
  CHECK(s.core->state() == Lifecycle::failed);
  CHECK(s.core->failure().find("D2H") != std::string::npos);
  CHECK(future.get().error().status == Status::engine_failed);
  CHECK(client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get().error().status ==
        Status::engine_failed);
  CHECK(report.books.asks.inferred == 1);
  CHECK(report.books.balanced());
}

TEST_CASE("of an engine's failures the first is kept, whoever finds the next, and terminate leaves it") {
  Scripted s;
  std::atomic<int> asked{0};
  s.engine->on_failure = [&]() -> std::optional<std::string> {
    return asked++ == 0 ? "the first cause" : "a later cause";
  };
  Client client = client_of(s.core);
  auto future = client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 60s);
  CHECK(future.get().error().status == Status::engine_failed);
  CHECK(s.core->failure() == "the first cause");
  s.core->terminate(1ms);
  CHECK(s.core->failure() == "the first cause");
  CHECK(s.core->state() == Lifecycle::failed);
}

TEST_CASE("an engine that died while another thread terminates is reported as failed by both") {
  Scripted s;
  s.engine->held = true;
  std::atomic<bool> dead{false};
  s.engine->on_failure = [&]() -> std::optional<std::string> {
    if (!dead) return std::nullopt;
    return "it died beside terminate";
  };
  Client client = client_of(s.core);
  auto future = client.ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 60s);
  Arrivals<Termination> ended;
  std::thread terminator([&] { ended.add(s.core->terminate(1h)); });
  until([&] { return s.engine->asked.load(); });
  dead = true;
  until([&] { return s.core->state() == Lifecycle::failed; });
  s.engine->held = false;
  terminator.join();
  CHECK(s.core->state() == Lifecycle::failed);
  CHECK(s.core->failure() == "it died beside terminate");
  CHECK(future.get().error().status == Status::engine_failed);
  CHECK(ended.take().at(0).books.balanced());
}

TEST_CASE("whatever ends well infers nothing") {
  Stepped s({.slots = 8});
  auto answered = s.ask(Action::ANSWER, 1);
  s.work();
  auto unprocessed = s.ask(Action::ANSWER, 2);
  REQUIRE(s.client->try_tell<ProbeNote>(probe, noting(1)));
  const Books books = s.core->terminate(1s).books;
  CHECK(books.asks.dead_letters == 1);
  CHECK(books.tells.dead_letters == 1);
  CHECK(books.inferred() == 0);
  CHECK(books.balanced());
}
