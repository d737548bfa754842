// Several waiting messages in one call of a handler, on either engine: each ends as it would alone.
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre_handlers_actors_sources.hpp>
#include <support/actors/handlers.official.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <vector>

#include "support/actors/handlers.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_handlers;

namespace {

ActorSet crowds() { return ActorSet::of<Crowd, Trio>(gyre_handlers_actors::sources); }

// On CUDA by one warp, which has paths of its own, and by several.
std::vector<uint32_t> crowd_blocks() {
  return engine_under_test == EngineKind::cuda ? std::vector<uint32_t>{32, 256} : std::vector<uint32_t>{32};
}

// Keeps the one worker of a runtime from its messages until released, so that those sent meanwhile wait
// together.
class Detention {
 public:
  explicit Detention(Runtime& runtime)
      : flag_(runtime.allocate<uint64_t>(MemoryKind::pinned, 1)),
        freed_(runtime.client().ask<Detain>(Address<Crowd>{999},
                                            [&](Detain::Builder detain) { flag_.set(detain.initFlag()); })) {}
  void release() {
    std::atomic_ref<uint64_t>(flag_.host()[0]).store(1);
    REQUIRE(freed_.get());
  }

 private:
  Buffer<uint64_t> flag_;
  Future<Reply<Freed>> freed_;
};

struct Asked {
  uint64_t key;
  Way way;
  uint32_t list, filler;
};

// Mostly answers. Lists of 80 numbers and more lie outside the slot of 512 bytes; so may some replies.
Asked anything(std::mt19937_64& random, uint32_t keys) {
  Asked asked{random() % keys, Way::ANSWER, uint32_t(random() % 20), 0};
  switch (random() % 24) {
    case 0:
      asked.way = Way::FAIL;
      break;
    case 1:
      asked.way = Way::FAIL_IN_ONE_THREAD;
      break;
    case 2:
      asked.filler = 20'000;  // more than a reply has room for
      break;
    case 3:
      asked.list = 80 + uint32_t(random() % 300);
      break;
    default:
      break;
  }
  return asked;
}

void put(Join::Builder join, uint64_t number, const Asked& asked) {
  join.setNumber(number);
  join.setWay(asked.way);
  join.setFiller(asked.filler);
  auto list = join.initList(asked.list);
  for (uint32_t i = 0; i < asked.list; ++i) list.set(i, 1000 * number + i);
}

// Checks a reply; `count` is of the messages to its actor that ended well.
uint32_t check_join(uint64_t number, const Asked& asked, const Result<Reply<Joined>>& reply,
                    uint64_t& count) {
  INFO(fmt::format("message {}, way {}, list {}", number, int(asked.way), asked.list));
  if (asked.filler != 0) {
    REQUIRE_FALSE(reply);
    REQUIRE(reply.error().status == Status::reply_too_large);
    return 0;
  }
  if (asked.way != Way::ANSWER) {
    REQUIRE_FALSE(reply);
    REQUIRE(reply.error().status == Status::handler_failed);
    REQUIRE(reply.error().detail == number);
    return 0;
  }
  REQUIRE(reply);
  const auto joined = *reply.value();
  REQUIRE(joined.getCount() == ++count);
  REQUIRE(joined.getPlace() < joined.getTogether());
  const auto list = joined.getList();
  REQUIRE(list.size() == asked.list);
  for (uint32_t i = 0; i < list.size(); ++i) REQUIRE(list[i] == 1000 * number + i + 1);
  return joined.getTogether();
}

constexpr size_t waiting = 256 * 3 / 4 - 2;  // a worker that is held may owe credit of a quarter of the ring

}  // namespace

TEST_CASE("messages that wait for an actor are handled in one call, in their order, each with its own end",
          "[gpu][unified][handlers]") {
  for (const uint32_t block : crowd_blocks()) {
    Runtime runtime = Runtime::launch(crowds(), on_this_engine({.workers = 1, .block = block}));
    Client client = runtime.client();
    std::mt19937_64 random(51);
    std::vector<uint64_t> counts(3);
    uint32_t most = 0;
    for (uint64_t round = 0; round < 12; ++round) {
      std::vector<Asked> asked(waiting);
      for (Asked& one : asked) one = anything(random, round % 2 == 0 ? 1 : 3);
      std::vector<Future<Reply<Joined>>> futures(waiting);
      Detention detention(runtime);
      REQUIRE(client.ask_many<Join>([&](size_t i) { return Address<Crowd>{asked[i].key}; }, futures,
                                    [&](size_t i, Join::Builder join) {
                                      put(join, 1000 * round + i, asked[i]);
                                    }) == futures.size());
      detention.release();
      for (size_t i = 0; i < waiting; ++i) {
        most = std::max(most, check_join(1000 * round + i, asked[i], futures[i].get(), counts[asked[i].key]));
      }
    }
    CHECK(most > 8);
    CHECK(most <= 32);
    const Books books = runtime.terminate().books;
    CHECK(books.asks.accepted == 12 * (waiting + 1));
    CHECK(books.balanced());
  }
}

TEST_CASE("a batch has 32 messages at most, or as many as the actor says, and a message alone has none",
          "[gpu][unified][handlers]") {
  for (const uint32_t block : crowd_blocks()) {
    Runtime runtime = Runtime::launch(crowds(), on_this_engine({.workers = 1, .block = block}));
    Client client = runtime.client();
    const auto most_of = [&](auto address) {
      std::vector<Future<Reply<Joined>>> futures(waiting);
      // The first message to an actor creates it, and comes alone.
      REQUIRE(client.ask<Join>(address, [](Join::Builder) {}).get().value()->getTogether() == 1);
      Detention detention(runtime);
      REQUIRE(client.ask_many<Join>(address, futures, [](size_t, Join::Builder) {}) == futures.size());
      detention.release();
      uint32_t most = 0;
      for (size_t i = 0; i < waiting; ++i) {
        const auto reply = futures[i].get();
        REQUIRE(reply);
        REQUIRE(reply.value()->getCount() == i + 2);
        most = std::max(most, reply.value()->getTogether());
      }
      return most;
    };
    CHECK(most_of(Address<Crowd>{1}) == 32);
    CHECK(most_of(Address<Trio>{1}) == 3);
    for (uint64_t i = 0; i < 20; ++i) {
      const auto reply = client.ask<Join>(Address<Crowd>{2}, [](Join::Builder) {}).get();
      REQUIRE(reply);
      CHECK(reply.value()->getTogether() == 1);
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("a handler that fails as a whole fails its batch and no other message", "[gpu][handlers]") {
  Runtime runtime = Runtime::launch(crowds(), on_this_engine({.workers = 1}));
  Client client = runtime.client();
  REQUIRE(client.ask<Join>(Address<Trio>{1}, [](Join::Builder) {}).get());
  std::vector<Future<Reply<Joined>>> futures(90);
  Detention detention(runtime);
  REQUIRE(client.ask_many<Join>(Address<Trio>{1}, futures, [](size_t i, Join::Builder join) {
    join.setWay(i % 30 == 29 ? Way::FAIL_ALL : Way::ANSWER);
  }) == futures.size());
  detention.release();
  size_t failed = 0;
  for (size_t i = 0; i < futures.size(); ++i) {
    const auto reply = futures[i].get();
    if (reply) continue;
    ++failed;
    CHECK(reply.error().status == Status::handler_failed);
    CHECK(reply.error().detail == 4);
    CHECK(i % 30 >= 25);
  }
  CHECK(failed > 3);  // three did so, and took others with them
  CHECK(failed <= 9);
  const Books books = runtime.terminate().books;
  CHECK(books.balanced());
}

TEST_CASE("tells and asks that wait do not share a batch, and failed tells of a batch are dead letters",
          "[gpu][unified][handlers]") {
  for (const uint32_t block : crowd_blocks()) {
    Runtime runtime = Runtime::launch(crowds(), on_this_engine({.workers = 1, .block = block}));
    Client client = runtime.client();
    const Address<Crowd> crowd{5};
    uint64_t left = 0, sum = 0, failed = 0, joined = 0, letters = 0;
    uint32_t together = 0;
    for (uint64_t round = 0; round < 6; ++round) {
      std::vector<Future<Reply<Joined>>> futures;
      Detention detention(runtime);
      for (uint64_t i = 0; i < 150; ++i) {
        if (i % 50 >= 45) {
          futures.push_back(client.ask<Join>(crowd, [&](Join::Builder join) { join.setNumber(i); }));
          continue;
        }
        const bool fails = i % 11 == 3;
        REQUIRE(client.tell<Leave>(crowd, [&](Leave::Builder leave) {
          leave.setNumber(i);
          leave.setFails(fails);
        }));
        fails ? ++failed : (sum += i, ++left);
      }
      detention.release();
      for (auto& future : futures) {
        const auto reply = future.get();
        REQUIRE(reply);
        REQUIRE(reply.value()->getCount() == ++joined);
        REQUIRE(reply.value()->getTogether() <= 5);
      }
      const auto attended = client.ask<Attend>(crowd, [](auto) {}).get();
      REQUIRE(attended);
      REQUIRE(attended.value()->getLeft() == left);
      REQUIRE(attended.value()->getSum() == sum);
      REQUIRE(attended.value()->getJoined() == joined);
      together = attended.value()->getTogether();
      for (const DeadLetter& letter : runtime.take_dead_letters()) {
        CHECK(letter.reason == Status::handler_failed);
        ++letters;
      }
    }
    CHECK(together > 8);
    const Books books = runtime.terminate().books;
    CHECK(books.tells.processed == left);
    CHECK(books.tells.dead_letters == failed);
    CHECK(letters <= failed);
    CHECK(books.balanced());
  }
}

TEST_CASE("messages that became late while they waited end batches and are not handled", "[gpu][handlers]") {
  Runtime runtime = Runtime::launch(crowds(), on_this_engine({.workers = 1}));
  Client client = runtime.client();
  const Address<Crowd> crowd{6};
  std::vector<Future<Reply<Joined>>> in_time, late;
  Detention detention(runtime);
  for (uint64_t i = 0; i < 100; ++i) {
    const bool is_late = i % 10 == 4;
    (is_late ? late : in_time)
        .push_back(client.ask<Join>(
            crowd, [&](Join::Builder join) { join.setNumber(i); },
            {.timeout = is_late ? std::optional<std::chrono::nanoseconds>(std::chrono::milliseconds(5))
                                : std::nullopt}));
  }
  for (auto& future : late) CHECK(future.get().error().status == Status::timed_out);
  detention.release();
  uint64_t count = 0;
  for (auto& future : in_time) {
    const auto reply = future.get();
    REQUIRE(reply);
    REQUIRE(reply.value()->getCount() > count);
    count = reply.value()->getCount();
  }
  const auto attended = client.ask<Attend>(crowd, [](auto) {}).get();
  REQUIRE(attended);
  CHECK(attended.value()->getJoined() >= in_time.size());
  CHECK(attended.value()->getJoined() <= in_time.size() + late.size());
  if (engine_under_test == EngineKind::cpu) CHECK(attended.value()->getJoined() == in_time.size());
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a runtime that ends while batches wait accounts for each message", "[gpu][handlers]") {
  Runtime runtime = Runtime::launch(crowds(), on_this_engine({.workers = 1}));
  Client client = runtime.client();
  Detention detention(runtime);
  for (uint64_t i = 0; i < 170; ++i) {
    REQUIRE(client.tell<Leave>(Address<Crowd>{i / 40}, [&](Leave::Builder leave) {
      leave.setNumber(i);
      leave.setFails(i % 7 == 0);
    }));
  }
  detention.release();
  const Books books = runtime.terminate().books;
  CHECK(books.tells.accepted == 170);
  CHECK(books.tells.processed + books.tells.dead_letters == 170);
  CHECK(books.balanced());
}
