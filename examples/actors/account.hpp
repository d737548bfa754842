// An account: an actor with state, one for each key.
#pragma once

#include <bank/account.view.hpp>
#include <gyre/device/context.hpp>

namespace bank {

struct Account {
  using Handles = gyre::Handles<view::Deposit, view::Withdraw>;

  // The state: 16 bytes an account, in device memory. Trivially copyable; no pointers to the host.
  uint64_t cents = 0;
  uint32_t withdrawals = 0;

  // Once in each life, before the first message.
  GYRE_DEVICE void on_start(gyre::Context& ctx) {
    GYRE_CHECK(ctx.key() !=
               0);  // the message that would have created it gets the error, and there is no account 0
    if (ctx.rank() == 0) cents = 500;  // a present
  }

  // When it is stopped, and when the runtime ends.
  GYRE_DEVICE void on_stop(gyre::Context& ctx) {
    constexpr uint32_t not_empty = 1;
    if (cents != 0) ctx.fail(not_empty);  // Client::stop returns it; the account is gone all the same
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Deposit::Reader in) {
    if (ctx.rank() == 0) cents += in.getCents();
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Withdraw::Reader in, view::Balance::Builder out) {
    GYRE_CHECK(in.getCents() <= cents);  // the same in all threads: one may return only where all do
    ctx.sync();                          // all have read the state
    if (ctx.rank() == 0) {
      cents -= in.getCents();
      ++withdrawals;
    }
    ctx.sync();  // and now all see what one wrote
    out.setCents(cents);
    out.setWithdrawals(withdrawals);
  }
};

}  // namespace bank
