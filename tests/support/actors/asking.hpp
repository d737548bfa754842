// Actors that ask each other, forward what they are asked, and answer later.
#pragma once

#include <gyre/device/asking.hpp>
#include <support/actors/asking.view.hpp>

namespace gyre_asking {

/// Holds an amount.
struct Cell {
  using Handles = gyre::Handles<view::Get, view::Add, view::Route>;
  static constexpr uint32_t too_little = 3;

  int64_t amount = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Get::Reader, view::Value::Builder out) {
    out.setAmount(amount);
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Add::Reader in, view::Value::Builder out) {
    const int64_t sum = amount + in.getAmount();
    ctx.sync();
    if (sum < 0) return ctx.fail(too_little);
    if (ctx.rank() == 0) amount = sum;
    out.setAmount(sum);
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Route::Reader in, view::Value::Builder out) {
    out.setAmount(in.getCell() == ctx.key() ? amount : -1);
    ctx.sync();
  }
};

/// Forwards to the router before it, and the first one to a cell. The router `slow` does, too, after 30 ms.
struct Router {
  static constexpr uint64_t slow = 1'000'000;

  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Route::Reader in, view::Value::Builder) {
    if (ctx.key() == slow) {
      const uint64_t begin = ctx.now_ns();
      while (ctx.now_ns() - begin < 30'000'000) {
      }
      ctx.sync();
      return ctx.forward(gyre::Address<Cell>{in.getCell()}, in);
    }
    if (ctx.key() != 0) return ctx.forward(gyre::Address<Router>{ctx.key() - 1}, in);
    ctx.forward(gyre::Address<Cell>{in.getCell()}, in);
  }
};

/// Answers later.
struct Keeper {
  using Handles = gyre::Handles<view::Hold, view::Release, view::Get>;
  static constexpr bool rollback_on_error = true;

  gyre::Promise<view::Value> kept[8];
  uint64_t held = 0, released = 0;

  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Hold::Reader, view::Value::Builder) { keep(ctx); }
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Get::Reader, view::Value::Builder) { keep(ctx); }
  GYRE_DEVICE void on(gyre::Asking<2>& ctx, view::Release::Reader in);

 private:
  GYRE_DEVICE void keep(gyre::Asking<1>& ctx) {
    const auto promise = ctx.later<view::Value>();
    ctx.sync();
    if (ctx.rank() == 0) kept[held++ % 8] = promise;
    ctx.sync();
  }
};

/// Answers what a keeper promised.
struct Helper {
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Pass::Reader in) {
    const gyre::Promise<view::Value> promise{in.getCall()};
    if (in.getFail()) return ctx.fail(promise, uint32_t(in.getAmount()));
    ctx.answer(promise, [&](view::Value::Builder value) { value.setAmount(in.getAmount()); });
  }
};

GYRE_DEVICE inline void Keeper::on(gyre::Asking<2>& ctx, view::Release::Reader in) {
  const gyre::Promise<view::Value> promise = kept[released % 8];
  ctx.sync();
  if (ctx.rank() == 0) ++released;
  for (uint32_t i = 0; i < in.getTimes(); ++i) {
    if (in.getHelper() != 0) {
      ctx.tell<view::Pass>(gyre::Address<Helper>{in.getHelper()}, [&](view::Pass::Builder pass) {
        pass.setCall(promise.call);
        pass.setAmount(in.getAmount());
        pass.setFail(in.getFail());
      });
    } else if (in.getFail()) {
      ctx.fail(promise, uint32_t(in.getAmount()));
    } else {
      ctx.answer(promise, [&](view::Value::Builder value) { value.setAmount(in.getAmount()); });
    }
  }
}

struct Withdrawn {
  gyre::Promise<view::Transferred> promise;
  uint64_t from, to;
  int64_t amount;
};
struct Deposited {
  gyre::Promise<view::Transferred> promise;
  int64_t left;
};
/// Moves amounts between cells.
struct Bank {
  using Awaits = gyre::Awaits<Withdrawn, Deposited>;

  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Transfer::Reader in, view::Transferred::Builder) {
    const Withdrawn state{ctx.later<view::Transferred>(), in.getFrom(), in.getTo(), in.getAmount()};
    add(ctx, state.from, -state.amount, state);
  }
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, Withdrawn state, view::Value::Reader in) {
    add(ctx, state.to, state.amount, Deposited{state.promise, in.getAmount()});
  }
  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, Withdrawn state, gyre::ErrorBody error) {
    ctx.fail(state.promise, error.detail);
  }
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, Deposited state, view::Value::Reader in) {
    ctx.answer(state.promise, [&](view::Transferred::Builder done) {
      done.setLeft(state.left);
      done.setHas(in.getAmount());
    });
  }
  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, Deposited state, gyre::ErrorBody error) {
    ctx.fail(state.promise, error.detail);
  }

 private:
  template <class State>
  GYRE_DEVICE static void add(gyre::Asking<1>& ctx, uint64_t cell, int64_t amount, const State& state) {
    ctx.ask<view::Add>(
        gyre::Address<Cell>{cell}, [&](view::Add::Builder add) { add.setAmount(amount); }, state);
  }
};

/// Is in no set.
struct Stranger {
  GYRE_DEVICE void on(gyre::Context&, view::Get::Reader, view::Value::Builder) {}
};
/// Is created by the host alone.
struct Gate {
  static constexpr bool created_by_message = false;
  uint64_t asked = 0;
  GYRE_DEVICE void on(gyre::Context&, view::Get::Reader, view::Value::Builder out) { out.setAmount(5); }
};

/// Has another response to a message than Summer.
struct Other {
  GYRE_DEVICE void on(gyre::Context&, view::Misuse::Reader, view::Summed::Builder) {}
};

/// Asks a cell in[`first`] again and again, by eight asks at once, `count` times in all.
struct Looper {
  struct Again {
    gyre::Promise<view::Summed> promise;
    uint64_t cell;
  };
  uint32_t left = 0, open = 0, replies = 0;

  GYRE_DEVICE void on(gyre::Asking<8>& ctx, view::Sum::Reader in, view::Summed::Builder) {
    const Again again{ctx.later<view::Summed>(), in.getFirst()};
    ctx.sync();
    if (ctx.rank() == 0) {
      left = in.getCount() - 8;
      open = 8;
    }
    for (uint32_t i = 0; i < 8; ++i) ask(ctx, again);
  }
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, Again again, view::Value::Reader) {
    const bool more = left != 0, last = open == 1;
    ctx.sync();
    if (ctx.rank() == 0) {
      ++replies;
      more ? --left : --open;
    }
    ctx.sync();
    if (more) return ask(ctx, again);
    if (last) {
      ctx.answer(again.promise, [&](view::Summed::Builder summed) { summed.setReplies(replies); });
    }
  }
  GYRE_DEVICE void on_failure(gyre::Context&, Again, gyre::ErrorBody) {}

 private:
  template <uint32_t most>
  GYRE_DEVICE static void ask(gyre::Asking<most>& ctx, const Again& again) {
    ctx.template ask<view::Get>(
        gyre::Address<Cell>{again.cell}, [](view::Get::Builder) {}, again);
  }
};

/// Asks many at once.
struct Summer {
  using Handles = gyre::Handles<view::Sum, view::Misuse>;
  static constexpr uint32_t most = 8;
  static constexpr bool rollback_on_error = true;

  struct One {
    uint64_t sum;  // its number
  };
  struct Part {
    uint64_t sum;
  };
  struct Unawaited {
    uint64_t sum;
  };
  using Awaits = gyre::Awaits<One, Part>;

  struct Open {
    gyre::Promise<view::Summed> promise;
    uint16_t asked, replies, failures, status;
    uint32_t detail;
    int64_t sum;
    GYRE_DEVICE bool is_open() const { return replies + failures != asked; }
  };
  // Each has two open calls at least, its promise and an ask.
  static constexpr uint32_t most_open = gyre::OpenCalls::capacity / 2;
  Open open[most_open];

  GYRE_DEVICE void on(gyre::Asking<most>& ctx, view::Sum::Reader in, view::Summed::Builder out) {
    if (in.getCount() == 0) return out.setSum(int64_t(in.getFirst()));
    uint64_t number = 0;
    while (number < most_open && open[number].is_open()) ++number;
    GYRE_CHECK(number < most_open);
    const auto promise = ctx.later<view::Summed>();
    ctx.sync();
    if (ctx.rank() == 0) {
      open[number] = {promise, uint16_t(asked_for(in)), 0, 0, 0, 0, 0};
    }
    ctx.sync();
    if (in.getKind() == view::SumKind::MYSELF || in.getKind() == view::SumKind::TREE) {
      for (uint32_t i = 0; i < asked_for(in); ++i) {
        ctx.ask<view::Sum>(
            gyre::Address<Summer>{ctx.key()},
            [&](view::Sum::Builder sum) {
              sum.setFirst(in.getFirst() + 1);
              sum.setCount(in.getCount() - 1);
              sum.setKind(in.getKind());
            },
            Part{number});
      }
      return;
    }
    for (uint32_t i = 0; i < in.getCount(); ++i) ask_one(ctx, in.getKind(), in.getFirst() + i, number);
  }
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, One one, view::Value::Reader in) {
    add(ctx, one.sum, in.getAmount());
  }
  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, One one, gyre::ErrorBody error) {
    fail(ctx, one.sum, error);
  }
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, Part part, view::Summed::Reader in) {
    add(ctx, part.sum, in.getSum());
  }
  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, Part part, gyre::ErrorBody error) {
    fail(ctx, part.sum, error);
  }

  GYRE_DEVICE void on(gyre::Asking<2>& ctx, view::Misuse::Reader in, view::Value::Builder) {
    const auto get = [](view::Get::Builder) {};
    switch (in.getHow()) {
      case view::Mistake::ASKS_WITHOUT_HANDLER:
        return ctx.ask<view::Get>(gyre::Address<Cell>{1}, get, Unawaited{0});
      case view::Mistake::ASKS_ONE_TOO_MANY:
        for (uint32_t i = 0; i < 3; ++i) ctx.ask<view::Get>(gyre::Address<Cell>{1}, get, One{0});
        return;
      case view::Mistake::PROMISES_ANOTHER:
        (void)ctx.later<view::Summed>();
        return;
      case view::Mistake::PROMISES_TWICE:
        (void)ctx.later<view::Value>();
        (void)ctx.later<view::Value>();
        return;
      case view::Mistake::FAILS_AFTER_ASKING:
        (void)ctx.later<view::Value>();
        ctx.ask<view::Get>(gyre::Address<Cell>{1}, get, One{0});
        return ctx.fail(9);
      case view::Mistake::FORWARDS_ANOTHER:
        return ctx.forward(gyre::Address<Other>{1}, in);
      default:
        return;
    }
  }

 private:
  GYRE_DEVICE static uint32_t asked_for(view::Sum::Reader in) {
    if (in.getKind() == view::SumKind::TREE) return 4;
    return in.getKind() == view::SumKind::MYSELF ? 1 : in.getCount();
  }
  GYRE_DEVICE static void ask_one(gyre::Asking<most>& ctx, view::SumKind kind, uint64_t key,
                                  uint64_t number) {
    const auto get = [](view::Get::Builder) {};
    switch (kind) {
      case view::SumKind::ROUTERS:
        return ctx.ask<view::Route>(
            gyre::Address<Router>{2}, [&](view::Route::Builder route) { route.setCell(key); }, One{number});
      case view::SumKind::KEEPERS:
        return ctx.ask<view::Get>(gyre::Address<Keeper>{key}, get, One{number});
      case view::SumKind::STRANGERS:
        return ctx.ask<view::Get>(gyre::Address<Stranger>{key}, get, One{number});
      case view::SumKind::GATES:
        return ctx.ask<view::Get>(gyre::Address<Gate>{key}, get, One{number});
      default:
        return ctx.ask<view::Get>(gyre::Address<Cell>{key}, get, One{number});
    }
  }
  GYRE_DEVICE void add(gyre::Asking<1>& ctx, uint64_t number, int64_t amount) {
    Open& sum = open[number];
    ctx.sync();
    if (ctx.rank() == 0) {
      ++sum.replies;
      sum.sum += amount;
    }
    ctx.sync();
    answer_if_all(ctx, sum);
  }
  GYRE_DEVICE void fail(gyre::Asking<1>& ctx, uint64_t number, gyre::ErrorBody error) {
    Open& sum = open[number];
    ctx.sync();
    if (ctx.rank() == 0) {
      ++sum.failures;
      sum.status = uint16_t(error.status);
      sum.detail = error.detail;
    }
    ctx.sync();
    answer_if_all(ctx, sum);
  }
  GYRE_DEVICE static void answer_if_all(gyre::Asking<1>& ctx, const Open& sum) {
    if (sum.is_open()) return;
    ctx.answer(sum.promise, [&](view::Summed::Builder summed) {
      summed.setSum(sum.sum);
      summed.setReplies(sum.replies);
      summed.setFailures(sum.failures);
      summed.setStatus(sum.status);
      summed.setDetail(sum.detail);
    });
  }
};

}  // namespace gyre_asking
