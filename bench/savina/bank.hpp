// Savina's bank transaction: a teller has amounts transferred between accounts.
#pragma once

#include <bench/savina/bank.view.hpp>
#include <bench/savina/collector.hpp>
#include <gyre/device/asking.hpp>

namespace gyre_savina::bank {

struct Planned {
  uint32_t from, to;  // accounts that differ
  uint32_t amount;
};
/// Returns transfer `number` of an instance.
GYRE_DEVICE constexpr Planned planned(uint64_t instance, uint32_t number, uint32_t accounts) {
  const uint64_t hash = mix(uint32_t(instance), number);
  const uint32_t from = uint32_t(hash % accounts), to = uint32_t((hash >> 32) % (accounts - 1));
  return {from, to < from ? to : to + 1, uint32_t(hash >> 20) % 1000 + 1};
}
/// Returns what an account adds to the result.
GYRE_DEVICE constexpr uint64_t weighed(uint32_t account, int32_t cents) {
  return mix(account, uint32_t(cents));
}

struct Teller;

struct Account {
  using Handles = gyre::Handles<view::Transfer, view::Deposit, view::Close>;
  struct Waiting {
    uint64_t teller;
  };

  int32_t cents = 0;

  // Pays, and asks the other account to take it.
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Transfer::Reader in) {
    if (ctx.rank() == 0) cents -= int32_t(in.getAmount());
    const uint64_t teller = ctx.key() / in.getActors();
    ctx.ask<view::Deposit>(
        gyre::Address<Account>{teller * in.getActors() + in.getTo()},
        [&](view::Deposit::Builder deposit) { deposit.setAmount(in.getAmount()); }, Waiting{teller});
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Deposit::Reader in, view::Deposited::Builder out) {
    if (ctx.rank() == 0) cents += int32_t(in.getAmount());
    out.setAmount(in.getAmount());
  }
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, Waiting waiting, view::Deposited::Reader) {
    settle(ctx, waiting, false);
  }
  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, Waiting waiting, gyre::ErrorBody) {
    settle(ctx, waiting, true);
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Close::Reader in);

 private:
  GYRE_DEVICE static void settle(gyre::Asking<1>& ctx, Waiting waiting, bool failed);
};

/// Has the instance as its key. Has `messages` transfers made between `actors` accounts, at most `under_way`
/// at one time. Its account a has the key `instance * actors + a`. The result depends on all balances.
struct Teller {
  using Handles = gyre::Handles<run::view::Start, run::view::GoOn, view::Settled, view::Balance>;
  static constexpr uint32_t max_per_worker = most_instances + 1;
  static constexpr uint32_t at_once = 31;

  uint64_t sum = 0;
  uint32_t messages = 0, actors = 0, under_way = 0;
  uint32_t begun = 0, settled = 0, failed = 0, closed = 0, reported = 0;

  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, run::view::Start::Reader in) {
    if (ctx.rank() == 0) {
      messages = in.getMessages();
      actors = in.getActors();
      under_way = in.getUnderWay();
    }
    ctx.sync();
    go_on(ctx);
  }
  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, run::view::GoOn::Reader) { go_on(ctx); }
  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, view::Settled::Reader in) {
    if (ctx.rank() == 0) {
      ++settled;
      if (in.getFailed()) ++failed;
    }
    ctx.sync();
    if (begun < messages) return transfer(ctx, 1);
    if (settled == messages) close(ctx);
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Balance::Reader in) {
    if (ctx.rank() == 0) {
      sum += weighed(in.getAccount(), in.getCents());
      ++reported;
    }
    ctx.sync();
    if (reported == actors) report(ctx, ctx.key(), sum + failed);
  }

 private:
  // Begins the first transfers; or, once all are settled, tells the accounts to report.
  GYRE_DEVICE void go_on(gyre::Sending<at_once + 1>& ctx) {
    if (settled == messages) return close(ctx);
    const uint32_t now_under_way = begun - settled;
    const uint32_t room = under_way > now_under_way ? under_way - now_under_way : 0, left = messages - begun;
    const uint32_t most = room < left ? room : left, now = most < at_once ? most : at_once;
    transfer(ctx, now);
    if (now != most) tell_itself(ctx);
  }
  GYRE_DEVICE void transfer(gyre::Sending<at_once + 1>& ctx, uint32_t count) {
    const uint32_t from = begun, accounts = actors;
    const uint64_t instance = ctx.key();
    ctx.sync();  // every thread has read the state
    ctx.tell_each<view::Transfer>(
        count,
        [&](uint32_t n) {
          return gyre::Address<Account>{instance * accounts + planned(instance, from + n, accounts).from};
        },
        [&](uint32_t n, view::Transfer::Builder out) {
          const Planned next = planned(instance, from + n, accounts);
          out.setTo(uint16_t(next.to));
          out.setActors(uint16_t(accounts));
          out.setAmount(next.amount);
        });
    if (ctx.rank() == 0) begun = from + count;
  }
  GYRE_DEVICE void close(gyre::Sending<at_once + 1>& ctx) {
    const uint32_t from = closed, accounts = actors, left = accounts - from;
    const uint32_t now = left < at_once ? left : at_once;
    ctx.sync();  // every thread has read the state
    ctx.tell_each<view::Close>(
        now, [&](uint32_t n) { return gyre::Address<Account>{ctx.key() * accounts + from + n}; },
        [&](uint32_t, view::Close::Builder out) { out.setActors(uint16_t(accounts)); });
    if (ctx.rank() == 0) closed = from + now;
    if (now != left) tell_itself(ctx);
  }
  GYRE_DEVICE static void tell_itself(gyre::Sending<at_once + 1>& ctx) {
    ctx.tell<run::view::GoOn>(gyre::Address<Teller>{ctx.key()}, [](run::view::GoOn::Builder) {});
  }
};

GYRE_DEVICE inline void Account::on(gyre::Sending<1>& ctx, view::Close::Reader in) {
  ctx.tell<view::Balance>(gyre::Address<Teller>{ctx.key() / in.getActors()}, [&](view::Balance::Builder out) {
    out.setAccount(uint16_t(ctx.key() % in.getActors()));
    out.setCents(cents);
  });
}
GYRE_DEVICE inline void Account::settle(gyre::Asking<1>& ctx, Waiting waiting, bool failed) {
  ctx.tell<view::Settled>(gyre::Address<Teller>{waiting.teller},
                          [&](view::Settled::Builder out) { out.setFailed(failed); });
}

}  // namespace gyre_savina::bank
