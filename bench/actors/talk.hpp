// Actors that send to each other, for gyre-bench actors.
#pragma once

#include <bench/actors/ping.hpp>
#include <bench/actors/talk.view.hpp>
#include <gyre/device/sending.hpp>

namespace gyre_bench {

/// The value of the pass behind the one with `value`.
GYRE_DEVICE constexpr uint64_t passed_value(uint64_t value) {
  return value * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
}
/// Which counter a sender tells number `number`.
GYRE_DEVICE constexpr uint64_t counter_of(uint64_t number, uint64_t counters) {
  return (number * 0x9e3779b97f4a7c15u >> 32) % counters;
}

/// Passes messages to and fro.
struct Talker {
  using Handles = gyre::Handles<view::Pass, view::PassedRequest>;

  uint64_t value = 0, ns = 0;  // of the last pass, once it has come

  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Pass::Reader in) {
    const uint64_t now = ctx.now_ns(), begun = in.getBegunNs() == 0 ? now : in.getBegunNs();
    if (in.getLeft() == 0) {
      ctx.sync();
      if (ctx.rank() != 0) return;
      value = in.getValue();
      ns = now - begun;
      return;
    }
    ctx.tell<view::Pass>(gyre::Address<Talker>{in.getOther()}, [&](view::Pass::Builder pass) {
      pass.setOther(ctx.key());
      pass.setLeft(in.getLeft() - 1);
      pass.setValue(passed_value(in.getValue()));
      if (ctx.rank() == 0) pass.setBegunNs(begun);  // each thread has read the clock itself
    });
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::PassedRequest::Reader, view::Passed::Builder out) {
    out.setValue(value);
    out.setNs(ns);
    ctx.sync();
  }
};

/// Tells counters numbers, one of each message.
struct Sender {
  GYRE_DEVICE void on(gyre::Sending<2>& ctx, view::Flood::Reader in) {
    const uint64_t number = in.getNumber();
    ctx.tell<view::Count>(gyre::Address<Counter>{counter_of(number, in.getCounters())},
                          [&](view::Count::Builder count) { count.setValue(number); });
    if (in.getLeft() == 0) return;
    ctx.tell<view::Flood>(gyre::Address<Sender>{ctx.key()}, [&](view::Flood::Builder next) {
      next.setLeft(in.getLeft() - 1);
      next.setNumber(number + 1);
      next.setCounters(in.getCounters());
    });
  }
};

}  // namespace gyre_bench
