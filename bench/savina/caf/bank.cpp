// bank-transaction on CAF: see ../bank.hpp.
#include <bench/savina/bank.hpp>

#include "savina/caf/instance.hpp"

namespace gyre::bench::savina {

namespace {

using namespace gyre_savina::bank;

using Amount = uint32_t;
using Settled = caf::unit_t;
using Close = bool;

struct AccountState {
  int32_t cents = 0;
};
caf::behavior account(caf::stateful_actor<AccountState>* self, uint32_t number, const caf::actor& teller) {
  return {[=](const caf::actor& to, Amount amount) {  // a transfer
            self->state.cents -= int32_t(amount);
            self->request(to, caf::infinite, amount).then([=](Amount) { self->send(teller, Settled()); });
          },
          [=](Amount amount) {  // a deposit
            self->state.cents += int32_t(amount);
            return amount;
          },
          [=](Close) {
            self->send(teller, number, self->state.cents);
            self->quit();
          }};
}

struct TellerState {
  std::vector<caf::actor> accounts;
  uint64_t sum = 0;
  uint32_t begun = 0, settled = 0, reported = 0;
};
void transfer(caf::stateful_actor<TellerState>* self, const CafInstance& instance) {
  TellerState& state = self->state;
  if (state.begun == instance.size.messages) return;
  const Planned next = planned(instance.number, state.begun++, instance.size.actors);
  self->send(state.accounts[next.from], state.accounts[next.to], next.amount);
}
caf::behavior teller(caf::stateful_actor<TellerState>* self, const CafInstance& instance) {
  TellerState& state = self->state;
  const uint32_t accounts = instance.size.actors;
  for (uint32_t i = 0; i < accounts; ++i) state.accounts.push_back(self->spawn(account, i, caf::actor(self)));
  for (uint32_t n = 0; n < instance.size.under_way; ++n) transfer(self, instance);
  return {[=](Settled) {
            TellerState& state = self->state;
            transfer(self, instance);
            if (++state.settled != instance.size.messages) return;
            for (const caf::actor& account : state.accounts) self->send(account, Close());
          },
          [=](uint32_t number, int32_t cents) {  // an account's balance
            TellerState& state = self->state;
            state.sum += weighed(number, cents);
            if (++state.reported != accounts) return;
            instance.report(self, state.sum);
            state.accounts.clear();
            self->quit();
          }};
}

}  // namespace

void start_bank(const CafInstance& instance) { instance.system.spawn(teller, instance); }

}  // namespace gyre::bench::savina
