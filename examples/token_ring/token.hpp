// Players that pass a token around: actors that tell each other.
#pragma once

#include <gyre/device/sending.hpp>
#include <token/token.view.hpp>

namespace token {

/// Player n passes the token to player n + 1, the last one to player 0.
inline constexpr uint64_t players = 12;

struct Referee {
  using Handles = gyre::Handles<view::Stopped, view::HolderRequest>;

  bool known = false;
  uint64_t holder = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Stopped::Reader in) {
    if (ctx.rank() != 0) return;
    known = true;
    holder = in.getHolder();
  }
  GYRE_DEVICE void on(gyre::Context&, view::HolderRequest::Reader, view::Holder::Builder out) {
    out.setKnown(known);
    out.setPlayer(holder);
  }
};

struct Player {
  using Handles = gyre::Handles<view::Token, view::PassesRequest>;

  uint64_t passes = 0;

  // Sends one message at most.
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Token::Reader in) {
    const uint64_t hops = in.getHops();
    if (hops == 0) {  // the same in all threads: all of them tell, or none
      ctx.tell<view::Stopped>(gyre::Address<Referee>{},
                              [&](view::Stopped::Builder stopped) { stopped.setHolder(ctx.key()); });
      return;
    }
    if (ctx.rank() == 0) ++passes;
    const gyre::Address<Player> next{.key = (ctx.key() + 1) % players};
    ctx.tell<view::Token>(next, [&](view::Token::Builder token) { token.setHops(hops - 1); });
  }
  GYRE_DEVICE void on(gyre::Context&, view::PassesRequest::Reader, view::Passes::Builder out) {
    out.setCount(passes);
  }
};

}  // namespace token
