// The other player, which lists no Handles: it handles what its protocol has.
#pragma once

#include <gyre/device/asking.hpp>
#include <support/actors/rally_protocols.hpp>

namespace gyre_rally {

struct Pong {
  uint64_t strokes = 0, strangers = 0;

  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Ball::Reader in) {
    const uint64_t left = in.getStrokes();
    ctx.sync();
    if (ctx.rank() == 0) {
      ++strokes;
      strangers += ctx.is_from<Ping>() ? 0 : 1;
    }
    ctx.sync();
    if (left == 0) return;
    ctx.tell_each<view::Ball>(
        1, [&](uint32_t) { return gyre::Address<Ping>{ctx.key()}; },
        [&](uint32_t, view::Ball::Builder ball) { ball.setStrokes(left - 1); });
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::ScoreRequest::Reader, view::Score::Builder out) {
    score(ctx, out);
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::OthersScoreRequest::Reader, view::Score::Builder out) {
    score(ctx, out);
  }

 private:
  GYRE_DEVICE void score(gyre::Context& ctx, view::Score::Builder out) {
    out.setStrokes(strokes);
    out.setStrangers(strangers);
    ctx.sync();
  }
};

}  // namespace gyre_rally
