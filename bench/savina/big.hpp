// Savina's big: many actors ping random others.
#pragma once

#include <bench/savina/big.view.hpp>
#include <bench/savina/collector.hpp>

namespace gyre_savina::big {

/// Limits how many pings of an actor are under way.
inline constexpr uint32_t most_under_way = 31;

/// Returns which of `actors` peers the peer `key` pings by the row that begins with ping `first`: not itself.
GYRE_DEVICE constexpr uint32_t target_of(uint32_t key, uint32_t first, uint32_t actors) {
  const uint32_t other = uint32_t(mix(key, first) % (actors - 1));
  return other < key % actors ? other : other + 1;
}

struct Peer;

/// Has the instance as its key. Its peer p has the key `instance * actors + p`. Tells its peers to begin, and
/// to report once all their pings were answered. The result is the sum of what they received.
struct Sink {
  using Handles = gyre::Handles<run::view::Start, run::view::GoOn, view::Answered, view::Received>;
  static constexpr uint32_t max_per_worker = most_instances + 1;
  static constexpr uint32_t at_once = 31;

  uint64_t sum = 0;
  uint32_t messages = 0, actors = 0, under_way = 0;
  uint32_t told = 0;  // peers told to begin, and told to report
  uint32_t answered = 0, received = 0;

  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, run::view::Start::Reader in) {
    if (ctx.rank() == 0) {
      messages = in.getMessages();
      actors = in.getActors();
      under_way = in.getUnderWay();
    }
    ctx.sync();
    tell_peers(ctx);
  }
  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, run::view::GoOn::Reader) { tell_peers(ctx); }
  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, view::Answered::Reader) {
    const uint32_t now = answered + 1;
    ctx.sync();  // every thread has read it
    if (ctx.rank() == 0) answered = now;
    if (now == actors) tell_peers(ctx);
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Received::Reader in) {
    if (ctx.rank() == 0) {
      sum += in.getValue();
      ++received;
    }
    ctx.sync();
    if (received == actors) report(ctx, ctx.key(), sum);
  }

 private:
  GYRE_DEVICE void tell_peers(gyre::Sending<at_once + 1>& ctx);
};

/// Sends `messages` pings, in rows of `under_way` to one random other peer each: the next row when the last
/// one is answered. All but the last message of a row are handled side by side, for their handlers send
/// nothing.
struct Peer {
  using Handles =
      gyre::Handles<view::Begin, view::Ping, view::LastPing, view::Pong, view::LastPong, view::Report>;
  static constexpr bool keys_side_by_side = true;

  uint64_t received = 0;  // sum of hashes of pings and pongs
  uint32_t next = 0;      // number of the next row's first ping
  uint32_t messages = 0, actors = 0, under_way = 0;

  GYRE_DEVICE void on(gyre::Sending<most_under_way>& ctx, view::Begin::Reader in) {
    if (ctx.rank() == 0) {
      messages = in.getMessages();
      actors = in.getActors();
      under_way = in.getUnderWay();
    }
    ctx.sync();
    send_row(ctx);
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Ping::Reader in) {
    if (ctx.rank() == 0) received += mix(in.getFrom(), in.getNumber());
  }
  GYRE_DEVICE void on(gyre::Sending<most_under_way>& ctx, view::LastPing::Reader in) {
    const uint32_t first = in.getFirst(), last = in.getNumber();
    if (ctx.rank() == 0) received += mix(in.getFrom(), last);
    const gyre::Address<Peer> to{in.getFrom()};
    ctx.tell_each<view::Pong>(
        last - first, [&](uint32_t) { return to; },
        [&](uint32_t n, view::Pong::Builder pong) { pong.setNumber(uint16_t(first + n)); });
    ctx.tell<view::LastPong>(to, [&](view::LastPong::Builder pong) { pong.setNumber(uint16_t(last)); });
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Pong::Reader in) {
    if (ctx.rank() == 0) received += mix(in.getNumber(), uint32_t(ctx.key()));
  }
  GYRE_DEVICE void on(gyre::Sending<most_under_way>& ctx, view::LastPong::Reader in) {
    if (ctx.rank() == 0) received += mix(in.getNumber(), uint32_t(ctx.key()));
    if (next < messages) return send_row(ctx);
    ctx.tell<view::Answered>(gyre::Address<Sink>{ctx.key() / actors}, [](view::Answered::Builder) {});
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Report::Reader) {
    ctx.tell<view::Received>(gyre::Address<Sink>{ctx.key() / actors},
                             [&](view::Received::Builder out) { out.setValue(received); });
  }

 private:
  GYRE_DEVICE void send_row(gyre::Sending<most_under_way>& ctx) {
    const uint32_t key = uint32_t(ctx.key()), first = next, left = messages - first;
    const uint32_t others = (left < under_way ? left : under_way) - 1, last = first + others;
    const gyre::Address<Peer> to{key - key % actors + target_of(key, first, actors)};
    ctx.sync();  // every thread has read the state
    ctx.tell_each<view::Ping>(
        others, [&](uint32_t) { return to; },
        [&](uint32_t n, view::Ping::Builder ping) {
          ping.setFrom(key);
          ping.setNumber(uint16_t(first + n));
        });
    ctx.tell<view::LastPing>(to, [&](view::LastPing::Builder ping) {
      ping.setFrom(key);
      ping.setNumber(uint16_t(last));
      ping.setFirst(uint16_t(first));
    });
    if (ctx.rank() == 0) next = last + 1;
  }
};

// Tells the next 31 peers to begin, or, when all were told that, to report.
GYRE_DEVICE inline void Sink::tell_peers(gyre::Sending<at_once + 1>& ctx) {
  const uint32_t from = told, left = actors - from % actors, now = left < at_once ? left : at_once;
  const auto peer = [&](uint32_t n) { return gyre::Address<Peer>{ctx.key() * actors + (from + n) % actors}; };
  if (from < actors) {
    ctx.tell_each<view::Begin>(now, peer, [&](uint32_t, view::Begin::Builder begin) {
      begin.setMessages(uint16_t(messages));
      begin.setActors(uint16_t(actors));
      begin.setUnderWay(uint16_t(under_way));
    });
  } else {
    ctx.tell_each<view::Report>(now, peer, [](uint32_t, view::Report::Builder) {});
  }
  ctx.sync();  // every thread has read the state
  if (ctx.rank() == 0) told = from + now;
  if (left == now) return;
  ctx.tell<run::view::GoOn>(gyre::Address<Sink>{ctx.key()}, [](run::view::GoOn::Builder) {});
}

}  // namespace gyre_savina::big
