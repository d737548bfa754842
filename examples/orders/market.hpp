// Actors of a market: errors that leave no trace, and scratch memory. docs/reference/actors.md explains them.
#pragma once

#include <gyre/device/context.hpp>
#include <market/market.view.hpp>

namespace market {

struct Book {
  static constexpr uint32_t most = 100;
  // The largest reply: root pointer, root, and a list of all ids. An ask makes room for it.
  static constexpr uint32_t max_reply_bytes = 8 * (1 + 1 + most);

  uint64_t ids[most] = {};
  uint32_t count = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Order::Reader in, view::Resting::Builder out) {
    // Read the whole request: what is wrong with it is found now.
    const uint64_t id = in.getId();
    const auto note = in.getNote();
    GYRE_CHECK(count < most && note.size() < 80);

    // Build the whole reply: whether it fits is known now.
    const uint32_t place = count;
    const auto resting = out.initIds(place + 1);
    for (uint32_t i = ctx.rank(); i < place; i += ctx.size()) resting.set(i, ids[i]);
    resting.set(place, id);

    // False in every thread where any of that went wrong in one: the sender gets the error.
    if (!ctx.ok()) return;

    // From here on nothing fails, and the state may change.
    if (ctx.rank() == 0) {
      ids[place] = id;
      ++count;
    }
  }
};

struct Stock {
  // What a message did to the state is undone where it ends in an error.
  static constexpr bool rollback_on_error = true;

  uint32_t pieces[8] = {2, 2, 2, 2, 2, 2, 2, 2};

  GYRE_DEVICE void on(gyre::Context& ctx, view::Basket::Reader in, view::Left::Builder out) {
    const auto kinds = in.getKinds();
    if (ctx.rank() == 0) {
      for (uint32_t i = 0; i < kinds.size(); ++i) {
        uint32_t& left = pieces[kinds[i] % 8];
        if (left == 0) return ctx.fail(kinds[i]);  // those before it were taken: they come back
        --left;
      }
      uint32_t all = 0;
      for (const uint32_t left : pieces) all += left;
      out.setPieces(all);
    }
  }
};

struct Auction {
  // Bytes of scratch memory that a message may use: here 8 for each of 500 bids, and 16.
  static constexpr uint32_t scratch_bytes = 500 * 8 + 16;
  static constexpr uint32_t max_reply_bytes = 4096;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Bids::Reader in, view::Allotments::Builder out) {
    const auto prices = in.getPrices(), quantities = in.getQuantities();
    const uint32_t n = prices.size();
    const auto wanted = ctx.scratch<uint64_t>(n);   // the whole team's, until the handler returns
    const auto decided = ctx.scratch<uint32_t>(1);  // memory apart from the first
    const auto allotted = out.initQuantities(n);
    if (!ctx.ok()) return;  // more bids than that is scratch_full

    // All threads, a bid each: how much is wanted at its price and above.
    for (uint32_t i = ctx.rank(); i < n; i += ctx.size()) {
      wanted[i] = 0;
      for (uint32_t k = 0; k < n; ++k) {
        if (prices[k] >= prices[i]) wanted[i] += quantities[k];
      }
    }
    ctx.sync();
    // One thread decides: the lowest price at which there is enough.
    if (ctx.rank() == 0) {
      decided[0] = ~0u;
      for (uint32_t i = 0; i < n; ++i) {
        if (wanted[i] <= in.getSupply() && prices[i] < decided[0]) decided[0] = prices[i];
      }
    }
    ctx.sync();
    // All write.
    for (uint32_t i = ctx.rank(); i < n; i += ctx.size()) {
      allotted.set(i, prices[i] >= decided[0] ? quantities[i] : 0);
    }
    out.setPrice(decided[0]);
  }
};

}  // namespace market
