// Actors that ask each other, on either engine.
#include <gyre/gyre.hpp>
#include <gyre_asking_actors_sources.hpp>
#include <support/actors/asking.official.hpp>

#include <chrono>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "support/actors/asking.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/type_counts.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_asking;

namespace {

ActorSet askers() {
  return ActorSet::of<Cell, Router, Keeper, Helper, Bank, Gate, Other, Looper, Summer>(
      gyre_asking_actors::sources);
}
// On CUDA by one warp, which has paths of its own, and by several.
std::vector<uint32_t> blocks() {
  return engine_under_test == EngineKind::cuda ? std::vector<uint32_t>{32, 128} : std::vector<uint32_t>{32};
}

int64_t add(Client& client, uint64_t cell, int64_t amount) {
  const auto reply =
      client.ask<Add>(Address<Cell>{cell}, [&](Add::Builder add) { add.setAmount(amount); }).get();
  REQUIRE(reply);
  return reply.value()->getAmount();
}
auto sum_of(uint64_t first, uint32_t count, SumKind kind) {
  return [=](Sum::Builder sum) {
    sum.setFirst(first);
    sum.setCount(count);
    sum.setKind(kind);
  };
}
auto releasing(int64_t amount, uint64_t helper = 0, bool fail = false, uint32_t times = 1) {
  return [=](Release::Builder release) {
    release.setAmount(amount);
    release.setHelper(helper);
    release.setFail(fail);
    release.setTimes(times);
  };
}
MailStats mail(const Runtime& runtime) {
  MailStats mail;
  for (const WorkerStats& worker : runtime.stats().workers) {
    mail.sent += worker.mail.sent;
    mail.processed += worker.mail.processed;
    mail.failed += worker.mail.failed;
    mail.refused += worker.mail.refused;
  }
  return mail;
}
// Until the workers have published such counts, which they do once they have nothing to do.
template <class Condition>
void await(const Runtime& runtime, Condition&& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition(mail(runtime)) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  REQUIRE(condition(mail(runtime)));
}

}  // namespace

TEST_CASE("transfers between cells of many workers ask both, and no amount is lost",
          "[gpu][unified][sending][asking]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(
        askers(), on_this_engine({.workers = 3, .block = block, .timeout = std::chrono::seconds(30)}));
    Client client = runtime.client();
    constexpr uint64_t cells = 7;
    std::vector<int64_t> amounts(cells, 1000);
    for (uint64_t cell = 0; cell < cells; ++cell) REQUIRE(add(client, cell, 1000) == 1000);
    std::mt19937_64 random(72);
    uint64_t refused = 0, sent = 0;
    for (int round = 0; round < 60; ++round) {
      std::vector<Future<Reply<Transferred>>> futures;
      for (int i = 0; i < 8; ++i) {
        const uint64_t from = random() % cells, to = random() % cells;
        const auto amount = int64_t(random() % 600);
        futures.push_back(client.ask<Transfer>(Address<Bank>{random() % 5}, [&](Transfer::Builder transfer) {
          transfer.setFrom(from);
          transfer.setTo(to);
          transfer.setAmount(amount);
        }));
      }
      for (Future<Reply<Transferred>>& future : futures) {
        const auto reply = future.get();
        ++sent;
        if (reply) {
          CHECK(reply.value()->getLeft() >= 0);
          continue;
        }
        ++refused;
        CHECK(reply.error().status == Status::handler_failed);
        CHECK(reply.error().detail == Cell::too_little);
      }
    }
    int64_t all = 0;
    for (uint64_t cell = 0; cell < cells; ++cell) all += add(client, cell, 0);
    CHECK(all == 1000 * int64_t(cells));
    CHECK(refused != 0);
    CHECK(refused != sent);
    const Books books = runtime.terminate().books;
    check_types_add_up(runtime.stats());
    CHECK(books.balanced());
    CHECK(books.asks.answered + books.asks.error_replies == books.asks.accepted);
    CHECK(books.asks.error_replies == refused);
    // A transfer sends two asks, each with its reply, and its answer; a refused one asks once.
    CHECK(mail(runtime).sent == 5 * (sent - refused) + 3 * refused);
    CHECK(mail(runtime).failed == refused);  // the handler of the cell
  }
}

TEST_CASE("a forwarded ask is answered by the actor that it ends at, whoever asked",
          "[gpu][unified][sending][asking]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(
        askers(), on_this_engine({.workers = 3, .block = block, .timeout = std::chrono::seconds(30)}));
    Client client = runtime.client();
    for (uint64_t cell = 0; cell < 10; ++cell) add(client, cell, int64_t(100 + cell));
    for (uint64_t cell = 0; cell < 10; ++cell) {
      for (const uint64_t router : {0, 1, 5}) {
        const auto reply =
            client.ask<Route>(Address<Router>{router}, [&](Route::Builder route) { route.setCell(cell); })
                .get();
        REQUIRE(reply);
        CHECK(reply.value()->getAmount() == int64_t(100 + cell));
      }
    }
    const auto sum = client.ask<Sum>(Address<Summer>{4}, sum_of(1, 8, SumKind::ROUTERS)).get();
    REQUIRE(sum);
    CHECK(sum.value()->getSum() == 8 * 100 + 36);
    CHECK(sum.value()->getReplies() == 8);
    REQUIRE(client.tell<Route>(Address<Router>{2}, [](Route::Builder route) { route.setCell(1); }));
    CHECK(runtime.drain(std::chrono::seconds(20)));
    CHECK(runtime.terminate().books.balanced());
    check_types_add_up(runtime.stats());
  }
}

// Not on a GPU: its workers judge by the host's time, which nobody writes once this thread waits no more.
TEST_CASE("an ask that was forwarded too late is refused, however soon after the handler that held it up",
          "[sending][asking]") {
  Runtime runtime = Runtime::launch(askers(), on_this_engine({.workers = 1}));
  Client client = runtime.client();
  REQUIRE(add(client, 3, 5) == 5);
  const auto reply = client
                         .ask<Route>(
                             Address<Router>{Router::slow}, [](Route::Builder route) { route.setCell(3); },
                             std::chrono::milliseconds(10))
                         .get();
  CHECK_FALSE(reply);
  // The forwarded ask, and its reply.
  await(runtime, [](const MailStats& mail) { return mail.processed + mail.failed == 2; });
  CHECK(mail(runtime).failed == 1);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("an ask that is promised an answer gets it later, from whoever gives it, once",
          "[gpu][unified][sending][asking]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(
        askers(), on_this_engine({.workers = 3, .block = block, .timeout = std::chrono::seconds(30)}));
    Client client = runtime.client();
    uint64_t dropped = 0;
    for (const uint64_t helper : {0, 1, 2, 3}) {  // the keeper itself, of another worker, and of its own
      for (const bool fails : {false, true}) {
        for (const uint32_t times : {1u, 2u}) {
          INFO("helper " << helper << ", fails " << fails << ", " << times << " times");
          // A request and a reply in a slot, and a request that lies in the arena.
          for (const uint32_t filler : {0u, 5000u}) {
            auto future =
                client.ask<Hold>(Address<Keeper>{3}, [&](Hold::Builder hold) { hold.initFiller(filler); });
            REQUIRE(client.tell<Release>(Address<Keeper>{3},
                                         releasing(int64_t(helper + 70), helper, fails, times)));
            const auto reply = future.get();
            CHECK(bool(reply) == !fails);
            if (reply) CHECK(reply.value()->getAmount() == int64_t(helper + 70));
            if (!reply) CHECK(reply.error().status == Status::handler_failed);
            if (!reply) CHECK(reply.error().detail == helper + 70);
            dropped += times - 1;
          }
        }
      }
    }
    CHECK(runtime.drain(std::chrono::seconds(20)));
    CHECK(runtime.terminate().books.balanced());
    check_types_add_up(runtime.stats());
    CHECK(mail(runtime).failed == dropped);
  }
}

TEST_CASE("an actor that asks many gets each reply once, and each failure with its reason",
          "[gpu][unified][sending][asking]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(
        askers(), on_this_engine({.workers = 3, .block = block, .timeout = std::chrono::seconds(30)}));
    Client client = runtime.client();
    for (uint64_t cell = 0; cell < 64; ++cell) add(client, cell, int64_t(cell));
    std::vector<Future<Reply<Summed>>> futures;
    std::vector<int64_t> expected;
    std::mt19937_64 random(73);
    for (int i = 0; i < 200; ++i) {
      const uint64_t first = random() % 56;
      const uint32_t count = uint32_t(random() % Summer::most + 1);
      futures.push_back(client.ask<Sum>(Address<Summer>{random() % 7}, sum_of(first, count, SumKind::CELLS)));
      expected.push_back(int64_t(first * count + count * (count - 1) / 2));
      if (futures.size() < 24) continue;
      for (size_t n = 0; n < futures.size(); ++n) {
        const auto reply = futures[n].get();
        REQUIRE(reply);
        CHECK(reply.value()->getSum() == expected[n]);
        CHECK(reply.value()->getFailures() == 0);
      }
      futures.clear();
      expected.clear();
    }
    const auto gates = client.ask<Sum>(Address<Summer>{1}, sum_of(10, 5, SumKind::GATES)).get();
    REQUIRE(gates);
    CHECK(gates.value()->getFailures() == 5);
    CHECK(gates.value()->getStatus() == uint32_t(Status::no_such_actor));
    REQUIRE(client.start(Address<Gate>{12}));
    const auto one_gate = client.ask<Sum>(Address<Summer>{1}, sum_of(10, 5, SumKind::GATES)).get();
    REQUIRE(one_gate);
    CHECK(one_gate.value()->getFailures() == 4);
    CHECK(one_gate.value()->getSum() == 5);
    const auto strangers = client.ask<Sum>(Address<Summer>{1}, sum_of(0, 2, SumKind::STRANGERS)).get();
    REQUIRE_FALSE(strangers);
    CHECK(strangers.error().status == Status::unknown_actor);
    const auto itself = client.ask<Sum>(Address<Summer>{5}, sum_of(100, 20, SumKind::MYSELF)).get();
    REQUIRE(itself);
    CHECK(itself.value()->getSum() == 120);
    CHECK(runtime.terminate().books.balanced());
    check_types_add_up(runtime.stats());
  }
}

TEST_CASE("what a handler may not ask or promise fails its message by name, and asks nothing",
          "[gpu][unified][sending][asking]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(
        askers(), on_this_engine({.workers = 2, .block = block, .timeout = std::chrono::seconds(30)}));
    Client client = runtime.client();
    for (int again = 0; again < 100; ++again) {  // more calls than a worker has room for
      for (const auto& [how, status] :
           std::map<Mistake, Status>{{Mistake::ASKS_WITHOUT_HANDLER, Status::check_failed},
                                     {Mistake::ASKS_ONE_TOO_MANY, Status::check_failed},
                                     {Mistake::PROMISES_ANOTHER, Status::check_failed},
                                     {Mistake::PROMISES_TWICE, Status::check_failed},
                                     {Mistake::FAILS_AFTER_ASKING, Status::handler_failed},
                                     {Mistake::FORWARDS_ANOTHER, Status::check_failed}}) {
        const auto reply =
            client
                .ask<Misuse>(Address<Summer>{0}, [how = how](Misuse::Builder misuse) { misuse.setHow(how); })
                .get();
        REQUIRE_FALSE(reply);
        CHECK(reply.error().status == status);
      }
    }
    CHECK(runtime.terminate().books.balanced());
    check_types_add_up(runtime.stats());
    CHECK(mail(runtime).sent == 0);
  }
}

TEST_CASE("a worker has room for 256 open calls, and a handler that wants more fails by name",
          "[gpu][unified][sending][asking]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(
        askers(),
        on_this_engine({.workers = 2, .block = block, .slots = 512, .timeout = std::chrono::seconds(30)}));
    Client client = runtime.client();
    std::vector<Future<Reply<Value>>> held;
    for (uint32_t n = 0; n < OpenCalls::capacity; ++n) {
      held.push_back(client.ask<Hold>(Address<Keeper>{2 * (n / 8)}, [](Hold::Builder) {}));
    }
    const auto one_too_many = client.ask<Hold>(Address<Keeper>{1000}, [](Hold::Builder) {}).get();
    REQUIRE_FALSE(one_too_many);
    CHECK(one_too_many.error().status == Status::open_calls_full);
    CHECK(one_too_many.error().detail == OpenCalls::capacity);
    for (uint32_t n = 0; n < OpenCalls::capacity; ++n) {
      REQUIRE(client.tell<Release>(Address<Keeper>{2 * (n / 8)}, releasing(n)));
    }
    for (uint32_t n = 0; n < OpenCalls::capacity; ++n) {
      const auto reply = held[n].get();
      REQUIRE(reply);
      CHECK(reply.value()->getAmount() == n);
    }
    auto again = client.ask<Hold>(Address<Keeper>{1000}, [](Hold::Builder) {});
    REQUIRE(client.tell<Release>(Address<Keeper>{1000}, releasing(4)));
    CHECK(again.get());
    CHECK(runtime.terminate().books.balanced());
    check_types_add_up(runtime.stats());
  }
}

TEST_CASE("the asks that a stopped actor was to answer end by name, the host's and actors'",
          "[gpu][unified][sending][asking]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(
        askers(), on_this_engine({.workers = 3, .block = block, .timeout = std::chrono::seconds(30)}));
    Client client = runtime.client();
    auto of_host = client.ask<Hold>(Address<Keeper>{8}, [](Hold::Builder) {});
    auto of_other = client.ask<Hold>(Address<Keeper>{11}, [](Hold::Builder) {});
    // By the summer of another worker, to keepers 8 and 9.
    auto of_actor = client.ask<Sum>(Address<Summer>{1}, sum_of(8, 2, SumKind::KEEPERS));
    auto second = client.ask<Hold>(Address<Keeper>{9}, [](Hold::Builder) {});
    await(runtime, [](const MailStats& mail) { return mail.processed == 2; });
    REQUIRE(client.stop(Address<Keeper>{8}));
    const auto host_reply = of_host.get();
    REQUIRE_FALSE(host_reply);
    CHECK(host_reply.error().status == Status::actor_stopped);
    REQUIRE(client.stop(Address<Keeper>{9}));
    const auto sum = of_actor.get();
    REQUIRE(sum);
    CHECK(sum.value()->getFailures() == 2);
    CHECK(sum.value()->getStatus() == uint32_t(Status::actor_stopped));
    CHECK_FALSE(second.get());
    REQUIRE(client.tell<Release>(Address<Keeper>{11}, releasing(1)));
    CHECK(of_other.get());
    CHECK(runtime.terminate().books.balanced());
    check_types_add_up(runtime.stats());
  }
}

TEST_CASE("a reply to an actor that was stopped meanwhile is dropped, though there is one with its key again",
          "[gpu][unified][sending][asking]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(
        askers(), on_this_engine({.workers = 2, .block = block, .timeout = std::chrono::seconds(30)}));
    Client client = runtime.client();
    auto lost = client.ask<Sum>(Address<Summer>{1}, sum_of(10, 1, SumKind::KEEPERS));
    await(runtime, [](const MailStats& mail) { return mail.processed == 1; });
    REQUIRE(client.stop(Address<Summer>{1}));
    const auto reply = lost.get();
    REQUIRE_FALSE(reply);
    CHECK(reply.error().status == Status::actor_stopped);
    auto of_next = client.ask<Sum>(Address<Summer>{1}, sum_of(12, 1, SumKind::KEEPERS));
    REQUIRE(client.tell<Release>(Address<Keeper>{10}, releasing(1)));  // to the summer that is gone
    // The asks of both summers, the first keeper's answer, and the reply that is dropped.
    await(runtime, [](const MailStats& mail) { return mail.failed == 1 && mail.processed == 3; });
    CHECK_FALSE(of_next.ready());
    REQUIRE(client.tell<Release>(Address<Keeper>{12}, releasing(5)));
    const auto sum = of_next.get();
    REQUIRE(sum);
    CHECK(sum.value()->getSum() == 5);
    CHECK(runtime.terminate().books.balanced());
    check_types_add_up(runtime.stats());
  }
}

TEST_CASE("an ask that nobody answers ends with the runtime, and the books balance",
          "[gpu][unified][sending][asking]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(
        askers(), on_this_engine({.workers = 2, .block = block, .timeout = std::chrono::seconds(30)}));
    Client client = runtime.client();
    auto of_host = client.ask<Hold>(Address<Keeper>{1}, [](Hold::Builder) {});
    auto of_actor = client.ask<Sum>(Address<Summer>{1}, sum_of(2, 3, SumKind::KEEPERS));
    CHECK(runtime.drain(std::chrono::seconds(20)));
    CHECK(runtime.terminate().books.balanced());
    check_types_add_up(runtime.stats());
    for (const Status status : {of_host.get().error().status, of_actor.get().error().status}) {
      CHECK(status == Status::terminated);
    }
  }
}
