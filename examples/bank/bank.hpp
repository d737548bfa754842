// A bank whose transfers ask two accounts: actors that ask each other, and answer later.
#pragma once

#include <bank/bank.view.hpp>
#include <gyre/device/asking.hpp>

namespace bank {

// Codes of failures, which the program gets.
inline constexpr uint32_t too_little = 1;    // in the account that pays
inline constexpr uint32_t not_positive = 2;  // the amount
inline constexpr uint32_t unavailable = 3;   // an account

struct Account {
  int64_t balance = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Change::Reader in, view::Balance::Builder out) {
    const int64_t after = balance + in.getAmount();
    if (after < 0) return ctx.fail(too_little);
    ctx.sync();  // every thread has read the balance
    if (ctx.rank() == 0) balance = after;
    out.setAmount(after);
  }
};

// What a bank must know when an account has answered.
struct Paid {  // by the account that pays
  gyre::Promise<view::Transferred> promise;
  uint64_t from, to;
  int64_t amount;
};
struct Received {  // by the other
  gyre::Promise<view::Transferred> promise;
  uint64_t from;
  int64_t amount, left;
};
struct PaidBack {  // where the other did not receive it
  gyre::Promise<view::Transferred> promise;
  uint32_t code;
};

struct Bank {
  using Awaits = gyre::Awaits<Paid, Received, PaidBack>;

  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Transfer::Reader in, view::Transferred::Builder) {
    if (in.getAmount() <= 0) return ctx.fail(not_positive);
    const Paid state{ctx.later<view::Transferred>(), in.getFrom(), in.getTo(), in.getAmount()};
    change(ctx, state.from, -state.amount, state);
  }

  // It has paid: asks the other account.
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, Paid paid, view::Balance::Reader in) {
    change(ctx, paid.to, paid.amount, Received{paid.promise, paid.from, paid.amount, in.getAmount()});
  }
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, Received received, view::Balance::Reader) {
    ctx.answer(received.promise, [&](view::Transferred::Builder out) { out.setLeft(received.left); });
  }
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, PaidBack back, view::Balance::Reader) {
    ctx.fail(back.promise, back.code);
  }

  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, Paid paid, gyre::ErrorBody error) {
    ctx.fail(paid.promise, code_of(error));
  }
  // Pays the amount back.
  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, Received received, gyre::ErrorBody error) {
    change(ctx, received.from, received.amount, PaidBack{received.promise, code_of(error)});
  }
  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, PaidBack back, gyre::ErrorBody) {
    ctx.fail(back.promise, unavailable);
  }

 private:
  template <class State>
  GYRE_DEVICE static void change(gyre::Asking<1>& ctx, uint64_t account, int64_t amount, const State& state) {
    ctx.ask<view::Change>(
        gyre::Address<Account>{.key = account},
        [&](view::Change::Builder change) { change.setAmount(amount); }, state);
  }
  // Only a handler's own failure has a code.
  GYRE_DEVICE static uint32_t code_of(gyre::ErrorBody error) {
    return error.status == gyre::Status::handler_failed ? error.detail : unavailable;
  }
};

}  // namespace bank
