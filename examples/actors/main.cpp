// Actors with state, as docs/reference/actors.md explains them.
#include <account_actors_sources.hpp>
#include <gyre/gyre.hpp>

#include <cstdio>
#include <string>

#include <bank/account.hpp>
#include <bank/account.official.hpp>

using namespace bank;

namespace {

gyre::Address<Account> account(uint64_t number) { return {.key = number}; }

void deposit(gyre::Client client, uint64_t number, uint64_t cents) {
  const auto told = client.tell<Deposit>(account(number), [&](Deposit::Builder d) { d.setCents(cents); });
  if (!told) std::printf("not told: %s\n", told.error().message().c_str());
}

void withdraw(gyre::Client client, uint64_t number, uint64_t cents) {
  const auto reply =
      client.ask<Withdraw>(account(number), [&](Withdraw::Builder w) { w.setCents(cents); }).get();
  if (reply) {
    std::printf("account %lu: %lu cents left, %u withdrawals\n", number, reply.value()->getCents(),
                reply.value()->getWithdrawals());
  } else {
    std::printf("account %lu: %s\n", number, gyre::name(reply.error().status).data());
  }
}

void live_and_die(gyre::Client client) {
  deposit(client, 7, 100);   // the first message creates the account: 500 cents, and these
  withdraw(client, 7, 250);  // 350 are left
  withdraw(client, 8, 1);    // another account, perhaps on another worker
  withdraw(client, 7, 999);  // check_failed: its message has the file and the line
  withdraw(client, 0, 1);    // on_start fails: nobody has account 0

  if (const auto stopped = client.stop(account(7)); !stopped) {
    std::printf("stopped: %s\n", gyre::name(stopped.error().status).data());
  }
  withdraw(client, 7, 500);  // a new life
}

void pause(gyre::Runtime& runtime) {
  if (!runtime.deactivate()) return;
  deposit(runtime.client(), 8, 40);  // taken and not handled, and nobody waits for an answer: a dead letter
  withdraw(runtime.client(), 8, 1);  // answered inactive; the deposit before it has been taken by then
  if (!runtime.activate()) return;
  withdraw(runtime.client(), 8, 1);  // its state is as it was
}

}  // namespace

int main(int argc, char** argv) {
  gyre::Options options;
  if (argc > 1 && std::string(argv[1]) == "cpu") options.engine = gyre::EngineKind::cpu;
  options.workers = 2;                 // account n belongs to worker n mod 2
  options.actors_per_worker = 10'000;  // 16 bytes of state and 28 besides, for each
  gyre::Runtime runtime =
      gyre::Runtime::launch(gyre::ActorSet::of<Account>(account_actors::sources), options);
  live_and_die(runtime.client());
  pause(runtime);
  if (!runtime.drain()) return 1;

  for (const gyre::DeadLetter& letter : runtime.take_dead_letters()) {
    std::printf("dead letter for %s %lu: %s, %s\n", letter.actor.c_str(), letter.envelope.key,
                letter.message_type.c_str(), gyre::name(letter.reason).data());
  }
  return runtime.terminate().books.balanced() ? 0 : 1;
}
