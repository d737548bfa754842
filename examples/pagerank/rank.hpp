// Vertices that send shares of their ranks along their edges, in synchronous rounds without a coordinator.
#pragma once

#include <gyre/device/sending.hpp>
#include <pagerank/rank.view.hpp>

namespace pagerank {

inline constexpr uint32_t rounds = 20, most_edges = 8;

/// Ranks are integers, so that sums are the same in any order. The mean rank is about `one`.
inline constexpr uint64_t one = uint64_t(1) << 32;
GYRE_DEVICE constexpr uint64_t share_of(uint64_t rank, uint32_t edges) { return rank * 85 / 100 / edges; }
GYRE_DEVICE constexpr uint64_t rank_of(uint64_t shares) { return one * 15 / 100 + shares; }

struct Vertex {
  using Handles = gyre::Handles<view::Edges, view::Begin, view::Share, view::RankRequest>;

  uint64_t rank = one;
  uint32_t to[most_edges] = {}, edges = 0, incoming = 0;
  // Of each round: other vertices may be several rounds ahead.
  uint64_t shares[rounds] = {};
  uint32_t arrived[rounds] = {};

  GYRE_DEVICE void on(gyre::Context& ctx, view::Edges::Reader in) {
    const auto targets = in.getTo();
    GYRE_CHECK(targets.size() <= most_edges);
    for (uint32_t i = ctx.rank(); i < targets.size(); i += ctx.size()) to[i] = targets[i];
    if (ctx.rank() != 0) return;
    edges = targets.size();
    incoming = in.getIncoming();
  }
  GYRE_DEVICE void on(gyre::Sending<most_edges + 1>& ctx, view::Begin::Reader) { send(ctx, 0); }
  GYRE_DEVICE void on(gyre::Sending<most_edges + 1>& ctx, view::Share::Reader in) {
    const uint32_t round = in.getRound();
    if (ctx.rank() == 0) {
      shares[round] += in.getAmount();
      ++arrived[round];
    }
    ctx.sync();
    if (arrived[round] <= incoming) return;  // some are missing: one comes by each edge, and one from itself
    if (ctx.rank() == 0) rank = rank_of(shares[round]);
    ctx.sync();
    if (round + 1 < rounds) send(ctx, round + 1);
  }
  GYRE_DEVICE void on(gyre::Context&, view::RankRequest::Reader, view::Rank::Builder out) {
    out.setRank(rank);
    out.setLast(arrived[rounds - 1] > incoming);
  }

 private:
  // Sends to itself, too. A round ends only after that message, so no handler ends two rounds, and none sends
  // more than most_edges + 1 messages.
  GYRE_DEVICE void send(gyre::Sending<most_edges + 1>& ctx, uint32_t round) {
    const uint64_t amount = share_of(rank, edges);
    ctx.tell_each<view::Share>(
        edges + 1, [&](uint32_t n) { return gyre::Address<Vertex>{n < edges ? to[n] : ctx.key()}; },
        [&](uint32_t n, view::Share::Builder share) {
          share.setRound(round);
          share.setAmount(n < edges ? amount : 0);
        });
  }
};

}  // namespace pagerank
