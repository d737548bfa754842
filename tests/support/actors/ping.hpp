// A player that knows the other one by its protocol alone.
#pragma once

#include <gyre/device/asking.hpp>
#include <support/actors/rally_protocols.hpp>

namespace gyre_rally {

/// Handles more than its protocol has.
struct Ping {
  using Handles = gyre::Handles<view::Ball, view::ScoreRequest, view::OthersScoreRequest,
                                view::BothScoresRequest, view::Rest>;
  using Awaits = gyre::Awaits<gyre::Promise<view::BothScores>>;

  uint64_t strokes = 0, strangers = 0, rests = 0;

  GYRE_DEVICE void on(gyre::Sending<2>& ctx, view::Ball::Reader in) {
    const uint64_t left = in.getStrokes();
    ctx.sync();
    if (ctx.rank() == 0) {
      ++strokes;
      strangers += ctx.is_from<Pong>() ? 0 : 1;
    }
    ctx.sync();
    ctx.tell<view::Rest>(ctx.self<Ping>(), [](view::Rest::Builder) {});
    if (left == 0) return;
    ctx.tell<view::Ball>(gyre::Address<Pong>{ctx.key()},
                         [&](view::Ball::Builder ball) { ball.setStrokes(left - 1); });
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::ScoreRequest::Reader, view::Score::Builder out) {
    out.setStrokes(strokes);
    out.setStrangers(strangers);
    out.setRests(rests);
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Rest::Reader) {
    ctx.sync();
    if (ctx.rank() == 0) ++rests;
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::OthersScoreRequest::Reader in, view::Score::Builder) {
    ctx.forward(gyre::Address<Pong>{ctx.key()}, in);
  }
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::BothScoresRequest::Reader, view::BothScores::Builder) {
    ctx.ask<view::ScoreRequest>(
        gyre::Address<Pong>{ctx.key()}, [](view::ScoreRequest::Builder) {}, ctx.later<view::BothScores>());
  }
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, gyre::Promise<view::BothScores> promise,
                            view::Score::Reader in) {
    ctx.answer(promise, [&](view::BothScores::Builder out) {
      out.setOwn(strokes);
      out.setOthers(in.getStrokes());
    });
  }
  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, gyre::Promise<view::BothScores> promise,
                              gyre::ErrorBody error) {
    ctx.fail(promise, uint32_t(error.status));
  }
};

}  // namespace gyre_rally
