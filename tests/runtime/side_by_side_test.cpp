// Actors whose messages a warp may handle side by side: every message ends as it would alone.
#include <gyre/gyre.hpp>
#include <gyre_team_actors_sources.hpp>
#include <support/actors/team.official.hpp>

#include <algorithm>
#include <atomic>
#include <random>
#include <span>
#include <vector>

#include "support/actors/team.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_teams;

namespace {

constexpr Address<Teamster> teamster{5};

Runtime launch_teams(Options options = {}) {
  return Runtime::launch(ActorSet::of<Teamster>(gyre_team_actors::sources), on_this_engine(options));
}

struct Asked {
  Task task;
  uint64_t number;
};

// Mostly answers; what fails, and what it fails with, is another each time.
Asked any_task(std::mt19937_64& random) {
  const uint64_t number = random() >> 33;
  switch (random() % 24) {
    case 0:
      return {Task::FAIL, number};
    case 1:
      return {Task::FAIL_IN_ONE_THREAD, number};
    case 2:
      return {Task::CHECK, number};
    case 3:
      return {Task::CHECK_IN_ONE_THREAD, number};
    case 4:
      return {Task::ASK_WHETHER_TO_STOP, number};
    case 5:
    case 6:
    case 7:
      return {Task::GROW, number % 30};
    case 8:
      return {Task::GROW, 10'000 + number % 50};  // more than a reply has room for
    default:
      return {Task::ANSWER, number};
  }
}

// The threads that handled it; 0 where it was to fail, and did.
uint32_t check_reply(const Asked& asked, const Result<Reply<Done>>& reply) {
  INFO(int(asked.task) << " " << asked.number);
  const auto failed_with = [&](Status status) {
    REQUIRE_FALSE(reply);
    REQUIRE(reply.error().status == status);
    return 0;
  };
  switch (asked.task) {
    case Task::FAIL:
    case Task::FAIL_IN_ONE_THREAD:
      failed_with(Status::handler_failed);
      REQUIRE(reply.error().detail == uint32_t(asked.number));
      return 0;
    case Task::CHECK:
    case Task::CHECK_IN_ONE_THREAD:
      return failed_with(Status::check_failed);
    case Task::GROW:
      if (asked.number >= 10'000) return failed_with(Status::reply_too_large);
      break;
    default:
      break;
  }
  REQUIRE(reply);
  const auto& done = *reply.value();
  REQUIRE(done.getNumber() == 3 * asked.number + 1);
  REQUIRE_FALSE(done.getStopping());
  REQUIRE(done.getCounted() == (asked.task == Task::ANSWER ? done.getThreads() : 0));
  REQUIRE(done.getFiller().size() == (asked.task == Task::GROW ? asked.number : 0));
  for (uint32_t k = 0; k < done.getFiller().size(); ++k) REQUIRE(done.getFiller()[k] == asked.number + k);
  return done.getThreads();
}

// Asks `rounds` times for a full ring of any tasks, and checks each reply. Returns how many fewer threads
// than `block` handled.
uint64_t ask_for_any(Client& client, std::mt19937_64& random, uint32_t rounds, uint32_t slots,
                     uint32_t block) {
  uint64_t by_a_part = 0;
  std::vector<Asked> asked(slots - 1);
  std::vector<Future<Reply<Done>>> futures(asked.size());
  for (uint32_t round = 0; round < rounds; ++round) {
    for (Asked& one : asked) one = any_task(random);
    REQUIRE(client.ask_many<Work>(teamster, futures, [&](size_t i, Work::Builder work) {
      work.setTask(asked[i].task);
      work.setNumber(asked[i].number);
    }) == futures.size());
    for (size_t i = 0; i < asked.size(); ++i) {
      const uint32_t threads = check_reply(asked[i], futures[i].get());
      by_a_part += threads != 0 && threads < block ? 1 : 0;
    }
  }
  return by_a_part;
}

// Replies to the Shorts with the numbers from 0 on. Returns how many were handled by `threads` or fewer.
size_t check_shorts(std::span<Future<Reply<ShortDone>>> shorts, uint32_t threads) {
  size_t by_so_many = 0;
  for (size_t i = 0; i < shorts.size(); ++i) {
    const auto reply = shorts[i].get();
    REQUIRE(bool(reply) == (i % 31 != 0));
    if (!reply) {
      REQUIRE(reply.error().status == Status::handler_failed);
      REQUIRE(reply.error().detail == i);
      continue;
    }
    REQUIRE(reply.value()->getValue() / 64 == i);
    by_so_many += reply.value()->getValue() % 64 <= threads ? 1 : 0;
  }
  return by_so_many;
}

bool on_the_gpu() { return engine_under_test == EngineKind::cuda; }

}  // namespace

TEST_CASE("messages handled side by side each end as they would alone", "[gpu][unified]") {
  std::mt19937_64 random(41);
  for (const uint32_t slot_bytes : {512u, 4096u}) {
    Runtime runtime = launch_teams({.slot_bytes = slot_bytes});
    Client client = runtime.client();
    const uint64_t by_a_part = ask_for_any(client, random, 40, 256, on_the_gpu() ? 32 : 1);
    // Slots of 4096 bytes have no room for replies side by side.
    CHECK((by_a_part != 0) == (on_the_gpu() && slot_bytes == 512));
    const Books books = runtime.terminate().books;
    CHECK(books.asks.accepted == 40 * 255);
    CHECK(books.balanced());
  }
}

TEST_CASE("in a group of more than a warp messages are handled one by one", "[gpu]") {
  std::mt19937_64 random(42);
  Runtime runtime = launch_teams({.block = 64});
  Client client = runtime.client();
  CHECK(ask_for_any(client, random, 10, 256, on_the_gpu() ? 64 : 1) == 0);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("laps pass 2^32 and whole slots are stamped while messages are handled side by side",
          "[gpu][unified]") {
  std::mt19937_64 random(43);
  for (const uint64_t first_lap : {(uint64_t(1) << 32) - 3, uint64_t(0xfffe)}) {
    Runtime runtime = launch_teams({.slots = 32, .first_lap = first_lap});
    Client client = runtime.client();
    const uint64_t by_a_part = ask_for_any(client, random, 100, 32, on_the_gpu() ? 32 : 1);
    CHECK((by_a_part != 0) == on_the_gpu());
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("tells handled side by side add up, and each failure is a dead letter", "[gpu][unified]") {
  Runtime runtime = launch_teams();
  Client client = runtime.client();
  uint64_t expected = 0, good = 0, bad = 0, next = 1, by_teams = 0;
  for (int batch = 0; batch < 60; ++batch) {
    const uint64_t first = next;
    const size_t count = 200 + size_t(batch) % 7;
    REQUIRE(client.tell_many<Count>(teamster, count,
                                    [&](size_t i, Count::Builder message) { message.setNumber(first + i); }));
    for (size_t i = 0; i < count; ++i) {
      const bool fails = (first + i) % 97 == 0;
      (fails ? bad : good) += 1;
      expected += fails ? 0 : first + i;
    }
    next += count;
    const auto sum = client.ask<AskForSum>(teamster, [](auto) {}).get();
    REQUIRE(sum);
    REQUIRE(sum.value()->getMessages() == good);
    REQUIRE(sum.value()->getSum() == expected);
    by_teams = sum.value()->getByTeams();
    for (const DeadLetter& letter : runtime.take_dead_letters()) {
      CHECK(letter.reason == Status::check_failed);
    }
  }
  const Books books = runtime.terminate().books;
  CHECK(by_teams != 0);  // on the CPU each thread is a team
  CHECK(by_teams <= good);
  CHECK(books.tells.processed == good);
  CHECK(books.tells.dead_letters == bad);
  CHECK(books.balanced());
}

TEST_CASE("what handlers write to buffers side by side is there when their replies are", "[gpu][unified]") {
  Runtime runtime = launch_teams();
  Client client = runtime.client();
  Buffer<uint64_t> buffer = runtime.allocate<uint64_t>(MemoryKind::device, 255);
  std::vector<Future<Reply<Done>>> futures(255);
  uint64_t by_a_part = 0;
  for (int round = 0; round < 20; ++round) {
    buffer.write(std::vector<uint64_t>(buffer.size()));
    REQUIRE(client.ask_many<Put>(teamster, futures, [&](size_t i, Put::Builder put) {
      buffer.set(put.initBuffer());
      put.setPlace(i);
    }) == futures.size());
    for (size_t i = 0; i < futures.size(); ++i) {
      const auto reply = futures[i].get();
      REQUIRE(reply);
      REQUIRE(reply.value()->getNumber() == i);
      by_a_part += reply.value()->getThreads() < 32 ? 1 : 0;
    }
    std::vector<uint64_t> written(buffer.size());
    buffer.read(written);
    for (size_t i = 0; i < written.size(); ++i) REQUIRE(written[i] == 7 * i + 1);
  }
  CHECK(by_a_part != 0);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("batches of other actors' and other keys' messages lie between those handled side by side",
          "[gpu][unified]") {
  Runtime runtime = launch_teams({.workers = 2});
  Client client = runtime.client();
  std::mt19937_64 random(44);
  std::vector<Asked> asked(1000);
  std::vector<Future<Reply<Done>>> futures(asked.size());
  for (Asked& one : asked) one = any_task(random);
  REQUIRE(client.ask_many<Work>([](size_t i) { return Address<Teamster>{i / 11 % 3}; }, futures,
                                [&](size_t i, Work::Builder work) {
                                  work.setTask(asked[i].task);
                                  work.setNumber(asked[i].number);
                                }) == futures.size());
  uint64_t by_a_part = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    const uint32_t threads = check_reply(asked[i], futures[i].get());
    by_a_part += threads != 0 && threads < 32 ? 1 : 0;
  }
  CHECK(by_a_part != 0);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("short messages, and long ones, are handled side by side, in the smallest slots too",
          "[gpu][unified]") {
  for (const uint32_t slot_bytes : {64u, 192u, 1024u}) {
    Runtime runtime = launch_teams({.slot_bytes = slot_bytes});
    Client client = runtime.client();
    uint64_t by_short_teams = 0, by_long_teams = 0;
    for (int round = 0; round < 20; ++round) {
      std::vector<Future<Reply<ShortDone>>> shorts(255);
      REQUIRE(client.ask_many<Short>(teamster, shorts, [&](size_t i, Short::Builder message) {
        message.setNumber(i);
      }) == shorts.size());
      by_short_teams += check_shorts(shorts, 4);  // their packets
      if (slot_bytes == 64) continue;             // too small for what goes through the arena
      std::vector<Future<Reply<Done>>> longs(200);
      REQUIRE(client.ask_many<Long>(teamster, longs, [&](size_t i, Long::Builder message) {
        message.setA(i);
        message.setF(1000);
        message.setL(7 * i);
      }) == longs.size());
      for (size_t i = 0; i < longs.size(); ++i) {
        const auto reply = longs[i].get();
        REQUIRE(bool(reply) == (i % 31 != 0));
        if (!reply) {
          REQUIRE(reply.error().status == Status::check_failed);
          continue;
        }
        REQUIRE(reply.value()->getNumber() == 8 * i + 1000);
        by_long_teams += reply.value()->getThreads() <= 16 ? 1 : 0;
      }
    }
    CHECK(by_short_teams != 0);
    CHECK((by_long_teams != 0) == (slot_bytes != 64));
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("of short messages that come while the worker is busy many are handled by one thread each",
          "[gpu][unified]") {
  for (const uint32_t slot_bytes : {512u, 1024u}) {
    Runtime runtime = launch_teams({.slot_bytes = slot_bytes});
    Client client = runtime.client();
    Buffer<uint64_t> flag = runtime.allocate<uint64_t>(MemoryKind::pinned, 1);
    const std::atomic_ref<uint64_t> go(flag.host()[0]);
    size_t most_by_one = 0;
    for (int round = 0; round < 10; ++round) {
      go.store(0);
      auto held = client.ask<Hold>(teamster, [&](Hold::Builder hold) { flag.set(hold.initBuffer()); });
      // A worker that is held publishes no credit, and may owe that of a quarter of the ring.
      std::vector<Future<Reply<ShortDone>>> shorts(256 * 3 / 4 - 1);
      const size_t sent = client.ask_many<Short>(
          teamster, shorts, [&](size_t i, Short::Builder message) { message.setNumber(i); });
      go.store(1);
      REQUIRE(sent == shorts.size());
      REQUIRE(held.get());
      most_by_one = std::max(most_by_one, check_shorts(shorts, 1));
    }
    // One by one until it is a stream, then 8, 16, 24 and 32 at once: all after that by a thread each.
    CHECK(most_by_one >= 90);
    CHECK(runtime.terminate().books.balanced());
  }
}
