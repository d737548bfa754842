// Actors with state: what the tests of actors by key talk to.
#pragma once

#include <gyre/device/context.hpp>
#include <gyre/device/parallel.hpp>
#include <support/actors/counter.view.hpp>

namespace gyre_counters {

/// 64 bytes of state. Starts at 100 where its key is odd; key 1000003 cannot start (code 5); at 42 it cannot
/// stop (code 42).
struct Counter {
  using Handles = gyre::Handles<view::Add, view::Increment>;

  uint64_t value = 0;
  uint64_t started_at = 0;
  uint64_t key = 0;
  uint64_t more[5] = {};

  GYRE_DEVICE void on_start(gyre::Context& ctx) {
    if (ctx.key() == 1000003) return ctx.fail(5);
    if (ctx.rank() != 0) return;
    key = ctx.key();
    started_at = value = ctx.key() % 2 == 1 ? 100 : 0;
  }
  GYRE_DEVICE void on_stop(gyre::Context& ctx) {
    if (value == 42) ctx.fail(42);
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Add::Reader in, view::Sum::Builder out) {
    GYRE_CHECK(in.getAmount() != 13);
    const uint64_t sum = value + in.getAmount();
    ctx.sync();
    if (ctx.rank() == 0) value = sum;
    out.setValue(sum);
    out.setKey(key);
    out.setStartedAt(started_at);
    out.setGroup(gyre::sum(ctx, uint32_t(1)));
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Increment::Reader in) {
    if (ctx.rank() == 0) value += in.getAmount();
  }
};

/// Notices messages that overtook each other.
struct Orderly {
  using Handles = gyre::Handles<view::Numbered, view::HowOrdered>;

  uint64_t last[8] = {};
  uint64_t wrong = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Numbered::Reader in) {
    const uint32_t sender = in.getSender();
    GYRE_CHECK(sender < 8);
    if (ctx.rank() != 0) return;
    if (in.getNumber() != last[sender] + 1) ++wrong;
    last[sender] = in.getNumber();
  }
  GYRE_DEVICE void on(gyre::Context&, view::HowOrdered::Reader, view::Order::Builder out) {
    uint64_t numbers = 0;
    for (const uint64_t number : last) numbers += number;
    out.setNumbers(numbers);
    out.setWrong(wrong);
  }
};

/// Is there only where somebody started it, three a worker at most.
struct Guest {
  static constexpr bool created_by_message = false;
  static constexpr uint32_t max_per_worker = 3;

  uint64_t visits = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Enter::Reader, view::Sum::Builder out) {
    const uint64_t visit = visits + 1;
    ctx.sync();
    if (ctx.rank() == 0) visits = visit;
    out.setValue(visit);
    out.setKey(ctx.key());
  }
};

}  // namespace gyre_counters
