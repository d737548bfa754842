// Transfers between accounts, as docs/tutorials/06-actors-that-talk.md explains them. The program holds all
// balances against a plain computation.
#include <bank_actors_sources.hpp>
#include <gyre/gyre.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include <bank/bank.hpp>
#include <bank/bank.official.hpp>

using namespace bank;

namespace {

constexpr uint64_t accounts = 20, banks = 4, transfers = 500;
constexpr int64_t opening_balance = 1000;

int64_t change(gyre::Client client, uint64_t account, int64_t amount) {
  const gyre::Address<Account> address{.key = account};
  return client.ask<Change>(address, [&](Change::Builder change) { change.setAmount(amount); })
      .get()
      .value()
      ->getAmount();
}

auto transferring(uint64_t from, uint64_t to, int64_t amount) {
  return [=](Transfer::Builder transfer) {
    transfer.setFrom(from);
    transfer.setTo(to);
    transfer.setAmount(amount);
  };
}

}  // namespace

int main(int argc, char** argv) try {
  gyre::Options options;
  if (argc > 1 && std::string(argv[1]) == "cpu") options.engine = gyre::EngineKind::cpu;
  options.workers = 3;
  options.actors_per_worker = 7;  // room for the twenty accounts, and for one more on worker 2
  gyre::Runtime runtime =
      gyre::Runtime::launch(gyre::ActorSet::of<Account, Bank>(bank_actors::sources), options);
  gyre::Client client = runtime.client();

  std::vector<int64_t> expected(accounts, opening_balance);
  for (uint64_t account = 0; account < accounts; ++account) change(client, account, opening_balance);

  // Fifty transfers at once, by several banks. None asks for more than its account has.
  std::vector<gyre::Future<gyre::Reply<Transferred>>> asked;
  uint64_t done = 0;
  for (uint64_t n = 0; n < transfers; ++n) {
    const uint64_t from = n % accounts, to = (n * 7 + 3) % accounts;
    const auto amount = int64_t(n % 20 + 1);
    asked.push_back(
        client.ask<Transfer>(gyre::Address<Bank>{.key = n % banks}, transferring(from, to, amount)));
    expected[from] -= amount;
    expected[to] += amount;
    if (asked.size() < 50) continue;
    for (auto& transfer : asked) done += transfer.get() ? 1 : 0;
    asked.clear();
  }
  std::printf("%lu of %lu transfers done\n", done, transfers);

  // From an account that has too little, and to one that worker 0 has no room for.
  for (const auto& wanted : {transferring(0, 1, 1'000'000), transferring(0, 21, 5)}) {
    const auto refused = client.ask<Transfer>(gyre::Address<Bank>{}, wanted).get();
    if (!refused) std::printf("refused: %s\n", refused.error().message().c_str());
  }

  uint64_t wrong = 0;
  for (uint64_t account = 0; account < accounts; ++account) {
    if (change(client, account, 0) != expected[account]) ++wrong;
  }
  std::printf("%lu accounts, %lu wrong balances\n", accounts, wrong);

  const gyre::Books books = runtime.terminate().books;
  std::printf("between actors: %lu messages, %lu handled, %lu failed\n", books.mail.sent,
              books.mail.processed, books.mail.failed);
  return wrong == 0 && done == transfers && books.balanced() ? 0 : 1;
} catch (const gyre::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
