// What becomes of freed buffers, on workers that the test steps.
#include <gyre/runtime/testing/stepped_engine.hpp>

#include <optional>
#include <vector>

#include "support/abacus.hpp"
#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace std::chrono_literals;

namespace {

struct SteppedAbacus {
  explicit SteppedAbacus(Options options = {.slots = 8, .timeout = 50ms}) {
    auto made = std::make_unique<SteppedEngine>(abacus_actors(), options);
    engine = made.get();
    core = detail::make_core(abacus_actors(), options, std::move(made));
    client = std::make_unique<Client>(client_of(core));
  }
  ~SteppedAbacus() { core->terminate(5s); }

  Buffer<uint64_t> allocate(uint64_t elements, MemoryKind kind = MemoryKind::device) {
    return Buffer<uint64_t>(core, kind, elements);
  }
  void work(uint32_t worker = 0) {
    for (int nothing = 0; nothing < 16;) {
      nothing = engine->step(worker) == PollOutcome::nothing ? nothing + 1 : 0;
    }
  }
  Ledger::Count freed(MemoryKind kind = MemoryKind::device) { return core->buffers().ledger().freed(kind); }

  SteppedEngine* engine = nullptr;
  std::shared_ptr<detail::Core> core;
  std::unique_ptr<Client> client;
};

std::vector<uint64_t> contents(const Buffer<uint64_t>& buffer) {
  std::vector<uint64_t> all(buffer.size());
  buffer.read(all);
  return all;
}

}  // namespace

TEST_CASE("freed memory is used again only when the workers are past what was sent before") {
  SteppedAbacus s;
  auto buffer = std::make_optional(s.allocate(100));
  REQUIRE(s.client->try_tell<Note>(abacus, noting(*buffer, 9)));
  buffer.reset();
  CHECK(s.freed().buffers == 1);
  const auto beside = s.allocate(100);  // not that memory: the tell is still to come
  CHECK(s.freed().buffers == 1);
  s.work();  // the handle is stale by now
  CHECK(s.core->books().tells.dead_letters == 1);
  CHECK(contents(beside) == std::vector<uint64_t>(100, 0));
  const auto again = s.allocate(100);
  CHECK(s.freed().buffers == 0);
  CHECK(contents(again) == std::vector<uint64_t>(100, 0));
}

TEST_CASE("what is sent after a free does not keep its memory waiting") {
  SteppedAbacus s;
  auto buffer = std::make_optional(s.allocate(10));
  const auto other = s.allocate(10);
  REQUIRE(s.client->try_tell<Note>(abacus, noting(*buffer, 1)));
  s.work();
  buffer.reset();
  REQUIRE(s.client->try_tell<Note>(abacus, noting(other, 1)));
  const auto again = s.allocate(10);
  CHECK(s.freed().buffers == 0);
}

TEST_CASE("every worker must be past it, whoever the messages with the handle were for") {
  SteppedAbacus s({.workers = 2, .slots = 8, .timeout = 50ms});
  auto buffer = std::make_optional(s.allocate(10));
  const auto other = s.allocate(10);
  REQUIRE(s.client->try_tell<Note>(Address<Abacus>{0}, noting(other, 1)));
  REQUIRE(s.client->try_tell<Note>(Address<Abacus>{1}, noting(other, 1)));
  buffer.reset();
  s.work(0);
  auto early = std::make_optional(s.allocate(10));
  CHECK(s.freed().buffers == 1);
  s.work(1);
  const auto late = s.allocate(10);
  CHECK(s.freed().buffers == 0);
}

TEST_CASE("reused memory comes zeroed, the best that fits and at most twice as large, of the same kind") {
  SteppedAbacus s;
  {
    const std::vector<uint64_t> junk(200, ~uint64_t(0));
    auto small = s.allocate(100), large = s.allocate(200);
    auto pinned = s.allocate(100, MemoryKind::pinned);
    small.write(std::span(junk).first(100));
    large.write(junk);
    pinned.write(std::span(junk).first(100));
  }
  CHECK(s.freed().bytes == 1024 + 1792);
  CHECK(s.freed(MemoryKind::pinned).bytes == 1024);
  const auto first = s.allocate(65);  // 768 bytes
  CHECK(s.freed().bytes == 1792);
  CHECK(contents(first) == std::vector<uint64_t>(65, 0));
  const auto too_small = s.allocate(65);  // 1792 is more than twice 768
  CHECK(s.freed().bytes == 1792);
  const auto second = s.allocate(120);  // 1024
  CHECK(s.freed().bytes == 0);
  CHECK(contents(second) == std::vector<uint64_t>(120, 0));
  CHECK(s.freed(MemoryKind::pinned).bytes == 1024);
}

TEST_CASE("an index is used again, under another generation, once nobody can be reading its entry") {
  SteppedAbacus s({.slots = 8, .timeout = 50ms, .max_buffers = 1});
  capnp::MallocMessageBuilder message;
  auto handle = message.initRoot<messages::BufferHandle>();
  auto buffer = std::make_optional(s.allocate(10));
  buffer->set(handle);
  REQUIRE(s.client->try_tell<Note>(abacus, noting(*buffer, 1)));
  buffer.reset();
  CHECK_THROWS_WITH(s.allocate(10),
                    containing("all 1 there may be are in use (0)") && containing("sent before that (1)"));
  s.work();
  const auto next = s.allocate(10);
  auto asked = s.client->try_ask<Add>(
      abacus, [&](Add::Builder add) { add.setBuffer(handle); }, 10s);
  REQUIRE(asked);
  s.work();
  const auto reply = asked.value().get();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().status == Status::bad_buffer);
  CHECK(reply.error().message().find("(generation 1, now 2)") != std::string::npos);
}

TEST_CASE("the view of a unified buffer waits for the workers, and says so when they do not come") {
  SteppedAbacus s;
  auto buffer = s.allocate(10, MemoryKind::unified);
  REQUIRE(buffer.view(0s));
  REQUIRE(s.client->try_tell<Note>(abacus, noting(buffer, 4)));
  const auto early = buffer.view(2ms);
  REQUIRE_FALSE(early);
  CHECK(early.error().status == Status::worker_stuck);
  CHECK(early.error().limit == 2);
  s.work();
  const auto view = buffer.view(0s);
  REQUIRE(view);
  CHECK(std::vector<uint64_t>(view.value().begin(), view.value().end()) == std::vector<uint64_t>(10, 4));
}

TEST_CASE("the view of a unified buffer fails with the engine") {
  SteppedAbacus s;
  auto buffer = s.allocate(10, MemoryKind::unified);
  REQUIRE(s.client->try_tell<Note>(abacus, noting(buffer, 4)));
  s.engine->fail("it was unplugged");
  const auto view = buffer.view(5s);
  REQUIRE_FALSE(view);
  CHECK(view.error().status == Status::engine_failed);
}

TEST_CASE("termination releases all retired buffers, whatever the workers did not come to") {
  SteppedAbacus s;
  auto buffer = std::make_optional(s.allocate(10));
  const auto kept = s.allocate(10);
  REQUIRE(s.client->try_tell<Note>(abacus, noting(*buffer, 1)));
  buffer.reset();
  CHECK(s.freed().buffers == 1);
  s.core->terminate(5s);
  CHECK(s.freed().buffers == 0);
  CHECK(s.core->buffers().ledger().used(MemoryKind::device).buffers == 1);
  CHECK(contents(kept) == std::vector<uint64_t>(10, 0));
}

TEST_CASE("numbers of a bad handle survive their packing, the largest that fit instead of larger ones") {
  const uint64_t most = (uint64_t(1) << 38) - 1;
  for (const uint64_t asked : {uint64_t(0), uint64_t(0xffffffff), most, ~uint64_t(0)}) {
    for (const uint64_t there : {uint64_t(5), uint64_t(1) << 37, ~uint64_t(0)}) {
      const BadHandle bad{BufferFault::too_short, 1023, asked, there};
      const BadHandle back = BadHandle::of(bad.detail(), bad.where());
      CHECK(back.fault == BufferFault::too_short);
      CHECK(back.index == 1023);
      CHECK(back.asked == std::min(asked, most));
      CHECK(back.there == std::min(there, most));
    }
  }
  CHECK(BadHandle::of(BadHandle{BufferFault::stale, 70'000, 1, 2}.detail(), 0).index == 65'535);
}
