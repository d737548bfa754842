// Messages that an actor cannot be sent, and actors that break their protocol: a mistake for each value of
// MISTAKE, none for 0. mistakes_test.sh compiles each by g++ and clang, program_test.cpp by NVRTC. The
// compiler must print what stands behind `names` and `says`.
#pragma once

#include <gyre/device/asking.hpp>
#include <support/actors/ping.hpp>
#if MISTAKE != 6
#include <support/actors/pong.hpp>
#endif

namespace gyre_mistakes {

namespace view = gyre_rally::view;
using gyre_rally::Pong;
struct Keeper;

}  // namespace gyre_mistakes

template <>
struct gyre::ProtocolOf<gyre_mistakes::Keeper>
#if MISTAKE == 12
    // names: void, gyre_rally::view::Ball
    // says: gyre::Accepts lists views: a message without a response as view::Message
    : gyre::Accepts<void(gyre_rally::view::Ball)> {
};
#else
    : gyre::Accepts<gyre_rally::view::Ball, gyre_rally::view::Score(gyre_rally::view::ScoreRequest)> {
};
#endif

namespace gyre_mistakes {

/// Sends what its receiver does not take.
struct Sender {
#if MISTAKE == 1
  // names: gyre_rally::Pong, gyre_rally::view::Rest
  // says: the actor at that address has no handler for the message: add on()
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Ball::Reader) {
    ctx.tell<view::Rest>(gyre::Address<Pong>{1}, [](view::Rest::Builder){});
  }
#elif MISTAKE == 2
  // names: gyre_rally::Pong, gyre_rally::view::Rest
  // says: the actor at that address has no handler for the message: add on()
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Ball::Reader) {
    ctx.tell_each<view::Rest>(1, [](uint32_t) { return gyre::Address<Pong>{1}; },
                              [](uint32_t, view::Rest::Builder){});
  }
#elif MISTAKE == 3
    // names: gyre_rally::Pong, gyre_rally::view::Rest
    // says: the actor at that address has no handler for the message: add on()
    GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Ball::Reader) {
      ctx.ask<view::Rest>(gyre::Address<Pong>{1}, [](view::Rest::Builder){}, uint32_t(7));
    }
#elif MISTAKE == 4
    // names: gyre_rally::Pong, gyre_rally::view::Rest
    // says: the actor at that address has no handler for the message: add on()
    GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Rest::Reader in) {
      ctx.forward(gyre::Address<Pong>{1}, in);
    }
#elif MISTAKE == 5
    // names: gyre_rally::Pong, gyre_rally::view::Ball
    // says: the actor's handler of the message has no response: tell the actor instead of asking it
    GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Ball::Reader) {
      ctx.ask<view::Ball>(gyre::Address<Pong>{1}, [](view::Ball::Builder){}, uint32_t(7));
    }
#elif MISTAKE == 6
    // names: gyre_rally::Pong, gyre_rally::view::Rest
    // says: the actor at that address is only declared here, and its protocol does not list the message
    GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Ball::Reader) {
      ctx.tell<view::Rest>(gyre::Address<Pong>{1}, [](view::Rest::Builder){});
    }
#elif MISTAKE == 7
    // names: gyre::SendingContext, gyre_rally::view::Ball
    // says: the handler's context says that it tells the host: gyre::Sending<N, gyre::ToHost>& ctx
    GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Ball::Reader) {
      ctx.tell_host<view::Ball>([](view::Ball::Builder){});
    }
#elif MISTAKE == 13
    // names: gyre::SendingContext, gyre_rally::view::Ball
    // says: the handler's context says that it sends to many: gyre::Sending<N, gyre::ToMany>& ctx
    GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Ball::Reader) {
      ctx.publish(gyre::Topic<view::Ball>{1}, [](view::Ball::Builder){});
    }
#elif MISTAKE == 16
    // names: SendingContext, 65
    // says: gyre::Sending<N>, gyre::Asking<N>: a handler may send 1 to 64 messages
    GYRE_DEVICE void on(gyre::Sending<65>& ctx, view::Ball::Reader) {
      ctx.tell<view::Ball>(gyre::Address<Pong>{1}, [](view::Ball::Builder){});
    }
#elif MISTAKE == 14
    // names: gyre_rally::Pong, gyre_rally::view::Rest
    // says: the actor at that address has no handler for the message: add on()
    GYRE_DEVICE void on(gyre::Sending<1, gyre::ToMany>& ctx, view::Ball::Reader) {
      ctx.broadcast<view::Rest, Pong>([](view::Rest::Builder){});
    }
#elif MISTAKE == 15
    // names: gyre_mistakes::Sender, check_can_be_broadcast_to
    // says: the actor's type has no state, so that workers know none of its actors; give it a member
    GYRE_DEVICE void on(gyre::Sending<1, gyre::ToMany>& ctx, view::Ball::Reader) {
      ctx.broadcast<view::Ball, Sender>([](view::Ball::Builder){});
    }
#else
    GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Ball::Reader) {
      ctx.tell<view::Ball>(gyre::Address<Keeper>{1}, [](view::Ball::Builder) {});
    }
#endif
};

/// Does not keep its protocol.
struct Keeper {
#if MISTAKE == 8
  // names: gyre_mistakes::Keeper, gyre_rally::view::ScoreRequest
  // says: the actor's protocol lists the message and its Handles do not: add the message to Handles
  using Handles = gyre::Handles<view::Ball>;
#elif MISTAKE == 9
  // names: gyre_mistakes::Keeper, gyre_rally::view::Ball
  // says: the actor's Handles list the message at another place than its protocol: begin Handles with
  using Handles = gyre::Handles<view::Rest, view::Ball, view::ScoreRequest>;
#endif
  GYRE_DEVICE void on(gyre::Context&, view::Ball::Reader) {}
  GYRE_DEVICE void on(gyre::Context&, view::Rest::Reader) {}
#if MISTAKE == 10
  // names: gyre_mistakes::Keeper, gyre_rally::view::ScoreRequest
  // says: the actor's handler has another response to the message than its protocol
  GYRE_DEVICE void on(gyre::Context&, view::ScoreRequest::Reader, view::BothScores::Builder) {}
#elif MISTAKE == 11
  // names: gyre_mistakes::Keeper, gyre_rally::view::ScoreRequest
  // says: the actor lists the message in its Handles or its protocol and has no handler for it: add
#else
    GYRE_DEVICE void on(gyre::Context&, view::ScoreRequest::Reader, view::Score::Builder) {}
#endif
};

}  // namespace gyre_mistakes
