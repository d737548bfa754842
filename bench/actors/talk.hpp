// Actors that send to each other, for gyre-bench actors.
#pragma once

#include <bench/actors/ping.hpp>
#include <bench/actors/ping.view.hpp>
#include <bench/actors/talk.view.hpp>
#include <gyre/device/asking.hpp>

namespace gyre_bench {

/// The value of the pass behind the one with `value`.
GYRE_DEVICE constexpr uint32_t passed_value(uint32_t value) { return value * 1'664'525u + 1'013'904'223u; }
/// Which tally a sender tells number `number`.
GYRE_DEVICE constexpr uint64_t tally_of(uint64_t number, uint64_t tallies) {
  return ((number * 0x9e3779b97f4a7c15u >> 32) * tallies) >> 32;
}

/// Passes messages to and fro.
struct Talker {
  using Handles = gyre::Handles<view::Talk, view::Pass, view::PassedRequest>;

  uint64_t other = 0, begun = 0;
  uint64_t value = 0, ns = 0;  // of the last pass, once it has come

  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Talk::Reader in) {
    if (ctx.rank() == 0) {
      other = in.getOther();
      begun = ctx.now_ns();
    }
    if (in.getPasses() != 0) pass(ctx, in.getOther(), in.getPasses() - 1, 1);
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Pass::Reader in) {
    if (in.getLeft() != 0) return pass(ctx, other, in.getLeft() - 1, in.getValue());
    if (ctx.rank() != 0) return;
    value = in.getValue();
    ns = ctx.now_ns() - begun;
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::PassedRequest::Reader in, view::Passed::Builder out) {
    out.setValue(in.getTime() ? ns : value);
    ctx.sync();
  }

 private:
  GYRE_DEVICE static void pass(gyre::Sending<1>& ctx, uint64_t to, uint32_t left, uint32_t value) {
    ctx.tell<view::Pass>(gyre::Address<Talker>{to}, [&](view::Pass::Builder next) {
      next.setLeft(left);
      next.setValue(passed_value(value));
    });
  }
};

/// Asks a Ping actor again and again, the next time when it is answered.
struct Inquirer {
  using Handles = gyre::Handles<view::Talk, view::PassedRequest>;
  struct Asked {
    uint64_t to;
    uint32_t left;
  };

  uint64_t begun = 0;
  uint64_t value = 0, ns = 0;  // of the last reply, once it has come

  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Talk::Reader in) {
    if (ctx.rank() == 0) begun = ctx.now_ns();
    ask(ctx, {in.getOther(), in.getPasses() - 1}, 1);
  }
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, Asked asked, view::PingResponse::Reader in) {
    if (asked.left != 0) return ask(ctx, {asked.to, asked.left - 1}, in.getValue());
    if (ctx.rank() != 0) return;
    value = in.getValue();
    ns = ctx.now_ns() - begun;
  }
  GYRE_DEVICE void on_failure(gyre::Context&, Asked, gyre::ErrorBody) {}
  GYRE_DEVICE void on(gyre::Context& ctx, view::PassedRequest::Reader in, view::Passed::Builder out) {
    out.setValue(in.getTime() ? ns : value);
    ctx.sync();
  }

 private:
  GYRE_DEVICE static void ask(gyre::Asking<1>& ctx, Asked asked, uint64_t value) {
    ctx.ask<view::PingRequest>(
        gyre::Address<Ping>{asked.to}, [&](view::PingRequest::Builder ping) { ping.setValue(value); }, asked);
  }
};

/// Tells the host a pass again and again, the next one when the host has told it the answer.
struct Reporter {
  using Handles = gyre::Handles<view::Talk, view::Pass, view::PassedRequest>;

  uint64_t begun = 0;
  uint64_t value = 0, ns = 0;  // of the last answer, once it has come

  GYRE_DEVICE void on(gyre::Sending<1, gyre::ToHost>& ctx, view::Talk::Reader in) {
    if (ctx.rank() == 0) begun = ctx.now_ns();
    report(ctx, in.getPasses() - 1, 1);
  }
  GYRE_DEVICE void on(gyre::Sending<1, gyre::ToHost>& ctx, view::Pass::Reader in) {
    if (in.getLeft() != 0) return report(ctx, in.getLeft() - 1, in.getValue());
    if (ctx.rank() != 0) return;
    value = in.getValue();
    ns = ctx.now_ns() - begun;
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::PassedRequest::Reader in, view::Passed::Builder out) {
    out.setValue(in.getTime() ? ns : value);
    ctx.sync();
  }

 private:
  GYRE_DEVICE static void report(gyre::Sending<1, gyre::ToHost>& ctx, uint32_t left, uint32_t value) {
    ctx.tell_host<view::Pass>([&](view::Pass::Builder pass) {
      pass.setLeft(left);
      pass.setValue(value);
    });
  }
};

/// Adds up the values that it is told, as Counter does, without atomics.
struct Tally {
  using Handles = gyre::Handles<view::Count, view::CountedRequest>;
  static constexpr bool keys_side_by_side = true;

  uint64_t messages = 0, sum = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Count::Reader in) {
    if (ctx.rank() != 0) return;
    ++messages;
    sum += in.getValue();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::CountedRequest::Reader in, view::Counted::Builder out) {
    ctx.sync();
    out.setValue(in.getSum() ? sum : messages);
  }
};

/// Tells tallies numbers, `at_once` by each call of its handler.
template <uint32_t at_once>
struct FloodSender {
  using Handles = gyre::Handles<view::Flood, view::GoOn>;

  uint64_t number = 0;
  uint32_t left = 0, tallies = 0;

  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, view::Flood::Reader in) {
    send(ctx, ctx.key() << 32, in.getNumbers(), in.getTallies());
  }
  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, view::GoOn::Reader) {
    const FloodSender now = *this;
    ctx.sync();  // every thread has read it
    send(ctx, now.number, now.left, now.tallies);
  }

 private:
  GYRE_DEVICE void send(gyre::Sending<at_once + 1>& ctx, uint64_t from, uint32_t count, uint32_t among) {
    const uint32_t now = count < at_once ? count : at_once;
    if constexpr (at_once == 1) {
      ctx.template tell<view::Count>(gyre::Address<Tally>{tally_of(from, among)},
                                     [&](view::Count::Builder told) { told.setValue(from); });
    } else {
      ctx.template tell_each<view::Count>(
          now, [&](uint32_t n) { return gyre::Address<Tally>{tally_of(from + n, among)}; },
          [&](uint32_t n, view::Count::Builder told) { told.setValue(from + n); });
    }
    if (ctx.rank() == 0) {
      number = from + now;
      left = count - now;
      tallies = among;
    }
    if (count == now) return;
    ctx.template tell<view::GoOn>(gyre::Address<FloodSender>{ctx.key()}, [](view::GoOn::Builder) {});
  }
};
using Sender = FloodSender<1>;
using MassSender = FloodSender<31>;

}  // namespace gyre_bench
