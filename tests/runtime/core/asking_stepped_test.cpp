// Actors that ask each other, on workers that move one poll at a time.
#include <gyre_asking_actors_sources.hpp>
#include <support/actors/asking.official.hpp>

#include <atomic>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "support/actors/asking.hpp"
#include "support/catch.hpp"
#include "support/rounds.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_asking;

namespace {

ActorSet askers() {
  return ActorSet::of<Cell, Router, Keeper, Helper, Bank, Gate, Other, Looper, Summer>(
      gyre_asking_actors::sources);
}

struct SteppedAskers {
  explicit SteppedAskers(uint32_t workers, Options with = {.slots = 64, .timeout = 60s}) : options(with) {
    options.workers = workers;
    auto made = std::make_unique<SteppedEngine>(askers(), options);
    engine = made.get();
    core = detail::make_core(askers(), options, std::move(made));
    client = std::make_unique<Client>(client_of(core));
  }
  ~SteppedAskers() { core->terminate(5s); }

  Future<Reply<Summed>> sum(uint64_t summer, uint64_t first, uint32_t count, SumKind kind) {
    return client->ask<Sum>(Address<Summer>{summer}, [&](Sum::Builder sum) {
      sum.setFirst(first);
      sum.setCount(count);
      sum.setKind(kind);
    });
  }
  Future<Reply<Transferred>> transfer(uint64_t bank, uint64_t from, uint64_t to, int64_t amount) {
    return client->ask<Transfer>(Address<Bank>{bank}, [&](Transfer::Builder transfer) {
      transfer.setFrom(from);
      transfer.setTo(to);
      transfer.setAmount(amount);
    });
  }
  void release(uint64_t keeper, int64_t amount) {
    REQUIRE(client->tell<Release>(Address<Keeper>{keeper}, [&](Release::Builder release) {
      release.setAmount(amount);
      release.setTimes(1);
    }));
  }
  int64_t add(uint64_t cell, int64_t amount) {
    auto future = client->ask<Add>(Address<Cell>{cell}, [&](Add::Builder add) { add.setAmount(amount); });
    const auto reply = await(future);
    REQUIRE(reply);
    return reply.value()->getAmount();
  }
  // Steps all workers, until the reply is there or for long.
  template <class Response>
  Result<Reply<Response>> await(Future<Reply<Response>>& future) {
    for (int round = 0; round < 100'000 && !future.ready(); ++round) work(1);
    REQUIRE(future.ready());
    return future.get();
  }
  void work(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (uint32_t worker = 0; worker < options.workers; ++worker) engine->step(worker);
    }
  }
  Bridge bridge(uint32_t worker) const {
    return Bridge::of(engine->region(), options.region_layout(askers().handlers().size()), worker);
  }
  Command command(uint32_t worker) const {
    return CommandWord{uint32_t(Memory::load_relaxed(bridge(worker).command_line->command))}.command();
  }
  MailStats mail() const {
    MailStats all;
    for (uint32_t worker = 0; worker < options.workers; ++worker) {
      const WorkerLine& line = *bridge(worker).worker_line;
      all.sent += line.mail_sent;
      all.processed += line.mail_processed;
      all.failed += line.mail_failed;
      all.refused += line.mail_refused;
    }
    return all;
  }

  // Once the workers have published their counts.
  MailStats mail_after_a_while() {
    work(20);
    return mail();
  }

  Options options;
  SteppedEngine* engine = nullptr;
  std::shared_ptr<detail::Core> core;
  std::unique_ptr<Client> client;
};

}  // namespace

TEST_CASE("transfers in any order of steps end each with a reply, and no amount is lost") {
  for (int seed = 0; seed < rounds(40); ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(uint64_t(9000 + seed));
    const auto workers = uint32_t(random() % 4 + 1);
    const uint64_t cells = random() % 6 + 2;
    // At times no memory for queues: then asks between actors are refused.
    const bool has_memory = random() % 3 != 0;
    SteppedAskers askers(workers,
                         {.slots = 64, .timeout = 600s, .spill_bytes = has_memory ? uint64_t(16) << 20 : 0});
    for (uint64_t cell = 0; cell < cells; ++cell) askers.add(cell, 500);
    std::vector<Future<Reply<Transferred>>> open;
    std::vector<Future<Reply<Summed>>> sums;
    uint64_t asked = 0, ended = 0;
    while (ended < 150) {
      if (asked < 150 && open.size() + sums.size() < 50) {
        ++asked;
        if (random() % 4 == 0) {
          const auto kind = SumKind(uint16_t(random() % 2));
          sums.push_back(askers.sum(random() % 5, random() % cells, uint32_t(random() % 8 + 1), kind));
        } else {
          open.push_back(
              askers.transfer(random() % 5, random() % cells, random() % cells, int64_t(random() % 400)));
        }
      }
      for (uint64_t steps = random() % 30; steps != 0; --steps) {
        askers.engine->step(uint32_t(random() % workers));
      }
      const auto count_ended = [&](auto& futures, auto&& check) {
        for (size_t n = futures.size(); n-- != 0;) {
          if (!futures[n].ready()) continue;
          const auto reply = futures[n].get();
          ++ended;
          check(reply);
          futures.erase(futures.begin() + std::ptrdiff_t(n));
        }
      };
      count_ended(open, [&](const auto& reply) {
        if (!reply) CHECK(reply.error().status == Status::handler_failed);
      });
      count_ended(sums, [&](const auto& reply) {
        REQUIRE(reply);
        if (reply.value()->getFailures() != 0) {
          CHECK_FALSE(has_memory);
          CHECK(reply.value()->getStatus() == uint32_t(Status::mailbox_full));
        }
      });
    }
    askers.work(200);
    const MailStats mail = askers.mail();
    CHECK(mail.sent == mail.processed + mail.failed + mail.refused);
    if (!has_memory) continue;  // a transfer may have been refused between its two halves
    CHECK(mail.refused == 0);
    int64_t all = 0;
    for (uint64_t cell = 0; cell < cells; ++cell) all += askers.add(cell, 0);
    CHECK(all == 500 * int64_t(cells));
  }
}

TEST_CASE("asks and answers that find no memory, or no room for another call, end by name") {
  SteppedAskers askers(1, {.slots = 512, .timeout = 600s, .spill_bytes = 0});
  const auto is_known = [](Status status) {
    return status == Status::mailbox_full || status == Status::open_calls_full;
  };
  std::vector<Future<Reply<Summed>>> sums;
  for (int n = 0; n < 31; ++n) sums.push_back(askers.sum(0, 0, 3, SumKind::TREE));
  askers.work(20'000);
  uint64_t well = 0, in_part = 0, failed = 0;
  for (auto& sum : sums) {
    REQUIRE(sum.ready());
    const auto reply = sum.get();
    if (!reply) {
      CHECK(is_known(reply.error().status));
      ++failed;
      continue;
    }
    CHECK(reply.value()->getReplies() + reply.value()->getFailures() == 4);
    ++(reply.value()->getFailures() == 0 ? well : in_part);
    if (reply.value()->getFailures() != 0) CHECK(is_known(Status(reply.value()->getStatus())));
  }
  CHECK(in_part + failed != 0);
  const MailStats mail = askers.mail();
  CHECK(mail.refused != 0);
  CHECK(mail.sent == mail.processed + mail.failed + mail.refused);
  // No call is left open: as many as there is room for are opened again.
  std::vector<Future<Reply<Value>>> held;
  for (uint32_t n = 0; n < OpenCalls::capacity; ++n) {
    held.push_back(askers.client->ask<Hold>(Address<Keeper>{n / 8}, [](Hold::Builder) {}));
    askers.work(3);
    CHECK_FALSE(held.back().ready());
  }
}

TEST_CASE("replies, mail and the host's messages take turns") {
  SteppedAskers askers(2);
  // The looper of worker 0 always has replies: worker 1 answers eight asks whenever worker 0 moves once.
  auto loops = askers.client->ask<Sum>(Address<Looper>{0}, [](Sum::Builder sum) {
    sum.setFirst(1);
    sum.setCount(2000);
  });
  const auto step = [&] {
    askers.engine->step(0);
    for (int n = 0; n < 12; ++n) askers.engine->step(1);
  };
  for (int n = 0; n < 200; ++n) step();
  // A message of the host that sends one to its own worker, whose answer is one more.
  auto held = askers.client->ask<Hold>(Address<Keeper>{2}, [](Hold::Builder) {});
  askers.release(2, 77);
  int steps = 0;
  for (; !held.ready() && steps < 10'000; ++steps) step();
  CHECK_FALSE(loops.ready());
  CHECK(steps <= 3 * int(MailLimits::most_in_a_row) + 10);
  const auto reply = held.get();
  REQUIRE(reply);
  CHECK(reply.value()->getAmount() == 77);
  const auto looped = askers.await(loops);
  REQUIRE(looped);
  CHECK(looped.value()->getReplies() == 2000);
}

TEST_CASE("what is under way when a runtime is deactivated ends with a reply, and promises are kept") {
  SteppedAskers askers(2);
  askers.add(0, 10);
  askers.add(1, 10);
  auto transfer = askers.transfer(1, 0, 1, 5);
  while (askers.mail().sent == 0) {  // the first ask is sent, and not answered
    for (int n = 0; n < 12; ++n) askers.engine->step(1);
  }
  std::thread deactivates([&] { CHECK(askers.core->set_active(false, 60s)); });
  while (askers.command(0) != Command::inactive || askers.command(1) != Command::inactive) {
    std::this_thread::yield();
  }
  // Worker 1, the bank's, has seen the command when the reply comes.
  for (int n = 0; n < 12; ++n) askers.engine->step(1);
  askers.work(200);
  deactivates.join();
  REQUIRE(transfer.ready());
  const auto reply = transfer.get();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().status == Status::handler_failed);  // by the bank's on_failure()
}

TEST_CASE("a host's message with the numbers of a reply or of an answer is refused") {
  SteppedAskers askers(1);
  const uint16_t bank = 4;  // it has no state: any key is an actor
  askers.add(0, 100);
  auto transfer = askers.transfer(0, 0, 1, 30);  // and so an ask was answered before
  REQUIRE(askers.await(transfer));
  const uint64_t sent = askers.mail_after_a_while().sent;
  for (const uint16_t type : {call_message::reply, call_message::answer}) {
    const uint64_t body[] = {uint64_t(1) << 32, 5};  // a struct of one word
    auto future =
        askers.client->ask_by_number(bank, type, 0, Encoded{std::as_bytes(std::span(body)), Encoding::body});
    const auto reply = askers.await(future);
    REQUIRE_FALSE(reply);
    CHECK(reply.error().status == Status::unknown_message);
  }
  CHECK(askers.mail_after_a_while().sent == sent);
  CHECK(askers.add(1, 0) == 30);
}

TEST_CASE("an actor without state that is stopped ends what it promised, too") {
  SteppedAskers askers(2);
  askers.add(0, 10);
  auto transfer = askers.transfer(1, 0, 1, 5);
  while (askers.mail().sent == 0) askers.engine->step(1);  // its ask is sent, and not answered
  std::atomic<bool> stopped{false};
  std::thread stops([&] {
    CHECK(askers.client->stop(Address<Bank>{1}));
    stopped = true;
  });
  while (!stopped) askers.engine->step(1);
  stops.join();
  askers.work(20);
  REQUIRE(transfer.ready());
  const auto reply = transfer.get();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().status == Status::actor_stopped);
}

TEST_CASE("a forwarded tell with a receipt is receipted by the actor that it ends at") {
  SteppedAskers askers(2);
  for (const uint64_t router : {0, 1, 4}) {
    auto receipt = askers.client->tell_with_receipt<Route>(Address<Router>{router},
                                                           [](Route::Builder route) { route.setCell(3); });
    for (int n = 0; n < 1000 && !receipt.ready(); ++n) askers.work(1);
    REQUIRE(receipt.ready());
    CHECK(receipt.get());
  }
}
