// The bank of examples/bank, step by step: what becomes of an amount when something goes wrong on its way.
#include <bank_actors_sources.hpp>
#include <gyre/testing.hpp>

#include <bank/bank.hpp>
#include <bank/bank.official.hpp>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace bank;
using namespace std::chrono_literals;
using gyre::testing::Order;
using gyre::testing::SteppedRuntime;

namespace {

// Account n is worker n mod 3's; the banks have room for two accounts on each.
gyre::Options three_workers() { return {.workers = 3, .actors_per_worker = 2}; }

struct Town {
  explicit Town(Order order = Order::round_robin(), const gyre::Options& options = three_workers())
      : kit(gyre::ActorSet::of<Account, Bank>(bank_actors::sources), options, order) {}

  gyre::Result<gyre::Reply<Balance>> change(uint64_t account, int64_t amount) {
    const gyre::Address<Account> address{.key = account};
    return kit.get(client.ask<Change>(address, [&](Change::Builder change) { change.setAmount(amount); }));
  }
  int64_t balance(uint64_t account) { return change(account, 0).value()->getAmount(); }
  gyre::Future<gyre::Reply<Transferred>> transfer(uint64_t from, uint64_t to, int64_t amount) {
    const gyre::Address<Bank> bank{.key = 2};
    return client.ask<Transfer>(bank, [&](Transfer::Builder transfer) {
      transfer.setFrom(from);
      transfer.setTo(to);
      transfer.setAmount(amount);
    });
  }

  SteppedRuntime kit;
  gyre::Client client = kit.client();
};

}  // namespace

TEST_CASE("a transfer asks the account that pays, then the other, then answers") {
  Town town;
  REQUIRE(town.change(0, 100));
  REQUIRE(town.change(1, 100));
  auto transfer = town.transfer(0, 1, 30);
  CHECK(town.kit.step()->text() == "worker 2: bank::Bank 2, Transfer");
  CHECK(town.kit.step()->text() == "worker 0: bank::Account 0, Change");
  CHECK(town.balance(0) == 70);  // it has paid, and nobody has received it yet
  CHECK(town.balance(1) == 100);
  CHECK(town.kit.get(transfer).value()->getLeft() == 70);
  CHECK(town.balance(1) == 130);
}

TEST_CASE("an amount is paid back when the other account cannot receive it") {
  Town town;
  for (const uint64_t account : {0, 1, 4}) REQUIRE(town.change(account, 100));  // worker 1 is full
  const auto outcome = town.kit.get(town.transfer(0, 7, 30));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().status == gyre::Status::handler_failed);
  CHECK(outcome.error().detail == unavailable);
  CHECK(town.balance(0) == 100);
}

TEST_CASE("a transfer of more than there is, or of nothing, is refused and changes nothing") {
  Town town;
  REQUIRE(town.change(0, 20));
  CHECK(town.kit.get(town.transfer(0, 1, 21)).error().detail == too_little);
  CHECK(town.kit.get(town.transfer(0, 1, 0)).error().detail == not_positive);
  CHECK(town.balance(0) == 20);
  CHECK(town.balance(1) == 0);
}

TEST_CASE("a client that no longer waits does not stop its transfer") {
  Town town;
  REQUIRE(town.change(0, 100));
  town.kit.hold(1);
  auto transfer = town.transfer(0, 1, 30);
  town.kit.run_until_idle();  // account 0 has paid, and account 1 is slow
  CHECK(town.balance(0) == 70);
  town.kit.advance(town.kit.runtime().options().timeout);
  CHECK(transfer.get().error().status == gyre::Status::timed_out);
  town.kit.release(1);
  town.kit.run_until_idle();
  CHECK(town.balance(1) == 30);
  CHECK(town.kit.books().asks.late_replies == 1);
}

TEST_CASE("in any order of the workers no amount is lost") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    Town town(Order::random(seed));
    for (uint64_t account = 0; account < 6; ++account) REQUIRE(town.change(account, 50));
    std::vector<gyre::Future<gyre::Reply<Transferred>>> transfers;
    for (uint64_t n = 0; n < 30; ++n) {
      transfers.push_back(town.transfer(n % 6, (n * 5 + 2) % 6, int64_t(n * 7 % 40 + 1)));
    }
    town.kit.run_until_idle();
    uint64_t done = 0;
    for (auto& transfer : transfers) {
      REQUIRE(transfer.ready());
      done += transfer.get() ? 1 : 0;
    }
    CHECK(done > 0);
    int64_t all = 0;
    for (uint64_t account = 0; account < 6; ++account) {
      CHECK(town.balance(account) >= 0);
      all += town.balance(account);
    }
    CHECK(all == 300);
    CHECK(town.kit.books().balanced());
  }
}

TEST_CASE("a transfer whose engine dies ends by name, and the banks begin anew") {
  Town town;
  REQUIRE(town.change(0, 100));
  auto transfer = town.transfer(0, 1, 30);
  REQUIRE(town.kit.step());
  town.kit.fail_engine("the device is gone");
  CHECK(transfer.get().error().status == gyre::Status::engine_failed);
  town.kit.runtime().relaunch();
  CHECK(town.balance(0) == 0);
}
