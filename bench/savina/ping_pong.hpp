// Savina's ping-pong: two actors, one message under way.
#pragma once

#include <bench/savina/collector.hpp>
#include <bench/savina/ping_pong.view.hpp>

namespace gyre_savina::ping_pong {

struct Ponger;

/// Has the instance as its key. Sends `messages` pings to the ponger behind its key, the next one when it is
/// answered. The result is the last pong.
struct Pinger {
  using Handles = gyre::Handles<run::view::Start, view::Pong>;
  static constexpr uint32_t max_per_worker = most_instances + 1;

  uint32_t left = 0;  // pings to send

  GYRE_DEVICE void on(gyre::Sending<1>& ctx, run::view::Start::Reader in) {
    if (ctx.rank() == 0) left = in.getMessages() - 1;
    ping(ctx, ctx.key());
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Pong::Reader in) {
    const uint32_t now = left;
    ctx.sync();  // every thread has read it
    if (now == 0) return report(ctx, ctx.key(), in.getValue());
    if (ctx.rank() == 0) left = now - 1;
    ping(ctx, in.getValue() + 1);
  }

 private:
  GYRE_DEVICE static void ping(gyre::Sending<1>& ctx, uint64_t value);
};

struct Ponger {
  static constexpr uint32_t max_per_worker = most_instances + 1;

  uint64_t pongs = 0;

  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Ping::Reader in) {
    if (ctx.rank() == 0) ++pongs;
    ctx.tell<view::Pong>(gyre::Address<Pinger>{ctx.key() - 1},
                         [&](view::Pong::Builder pong) { pong.setValue(mix(in.getValue())); });
  }
};

GYRE_DEVICE inline void Pinger::ping(gyre::Sending<1>& ctx, uint64_t value) {
  ctx.tell<view::Ping>(gyre::Address<Ponger>{ctx.key() + 1},
                       [&](view::Ping::Builder ping) { ping.setValue(value); });
}

}  // namespace gyre_savina::ping_pong
