// Order books that match limit orders by price and time, and traders who are told of each trade.
#pragma once

#include <gyre/device/sending.hpp>
#include <order_book/book.view.hpp>

namespace order_book {

inline constexpr uint64_t books = 8;           // one for each instrument
inline constexpr uint32_t most_resting = 32;   // orders on one side of a book
inline constexpr uint32_t most_trades = 10;    // of one order: each makes three messages
inline constexpr uint32_t host_is_behind = 1;  // code of a failure: send the order again

struct Trader {
  using Handles = gyre::Handles<view::Fill, view::AccountRequest>;
  // On a GPU fills of different traders are handled together.
  static constexpr bool keys_side_by_side = true;

  uint64_t fills = 0;
  int64_t cash = 0;
  int64_t positions[books] = {};

  GYRE_DEVICE void on(gyre::Context& ctx, view::Fill::Reader in) {
    GYRE_CHECK(in.getInstrument() < books);
    if (ctx.rank() != 0) return;
    ++fills;
    cash -= in.getBought() * in.getPrice();
    positions[in.getInstrument()] += in.getBought();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::AccountRequest::Reader, view::Account::Builder out) {
    out.setFills(fills);
    out.setCash(cash);
    const auto list = out.initPositions(books);
    for (uint32_t i = ctx.rank(); i < books; i += ctx.size()) list.set(i, positions[i]);
  }
};

struct Entry {
  uint64_t id, trader;
  uint32_t price, quantity;
};

/// The orders that rest on one side of a book, the best one last: the best price, and of equal prices the
/// oldest order.
struct Queue {
  Entry entries[most_resting] = {};
  uint32_t count = 0;

  /// Returns the n-th best order.
  GYRE_DEVICE const Entry& best(uint32_t n) const { return entries[count - 1 - n]; }
  /// Returns the place of an order; `count` if it is not there.
  GYRE_DEVICE uint32_t place_of(uint64_t id) const {
    uint32_t place = 0;
    while (place < count && entries[place].id != id) ++place;
    return place;
  }
  /// Adds an order behind those that are as good.
  /// @param better_or_equal  compares prices of this side
  template <class Compare>
  GYRE_DEVICE void add(const Entry& entry, Compare&& better_or_equal) {
    uint32_t place = count++;
    for (; place != 0 && better_or_equal(entries[place - 1].price, entry.price); --place) {
      entries[place] = entries[place - 1];
    }
    entries[place] = entry;
  }
  GYRE_DEVICE void remove(uint32_t place) {
    for (--count; place < count; ++place) entries[place] = entries[place + 1];
  }
  /// Takes quantities from the `orders` best: all of them whole, but `last` of the last one.
  GYRE_DEVICE void take(uint32_t orders, uint32_t last) {
    if (orders == 0) return;
    count -= orders - 1;
    entries[count - 1].quantity -= last;
    if (entries[count - 1].quantity == 0) --count;
  }
};

/// The trades that an order makes with the best of the other side.
struct Match {
  bool buys;
  Entry order;
  const Queue& others;
  uint32_t trades = 0;
  uint32_t last = 0;  // quantity of the last trade; those before it take the other order whole
  uint32_t left = 0;  // of the order

  GYRE_DEVICE const Entry& other(uint32_t n) const { return others.best(n); }
  GYRE_DEVICE uint32_t quantity(uint32_t n) const { return n + 1 < trades ? other(n).quantity : last; }
};

struct Book {
  using Handles = gyre::Handles<view::Order, view::Cancel, view::RestingRequest>;
  using Publishing = gyre::Sending<3 * most_trades, gyre::ToHost>;
  // Of the orders that rest on both sides.
  static constexpr uint32_t max_reply_bytes =
      8 * (1 + view::Resting::pointers + 2 * (1 + most_resting * view::Order::data_words));

  Queue bids, asks;

  // Every thread finds the trades and tells of them. Then one thread changes the book: a failure comes
  // before.
  GYRE_DEVICE void on(Publishing& ctx, view::Order::Reader in, view::Done::Builder out) {
    const bool buys = in.getSide() == view::Side::BUY;
    const Entry order{in.getId(), in.getTrader(), in.getPrice(), in.getQuantity()};
    GYRE_CHECK(order.quantity != 0 && ctx.key() < books);
    Queue& own = buys ? bids : asks;
    Queue& others = buys ? asks : bids;
    const Match match = match_of(buys, order, others);
    const view::Outcome outcome = outcome_of(match, own);

    tell_traders(ctx, match);
    if (!tell_program(ctx, match)) return ctx.fail(host_is_behind);  // nobody is told of any trade
    out.setOutcome(outcome);
    out.setTrades(match.trades);
    out.setLeft(match.left);
    if (!ctx.ok()) return;  // a barrier: every thread has read the book

    if (ctx.rank() != 0) return;
    others.take(match.trades, match.last);
    if (outcome != view::Outcome::RESTS) return;
    own.add({order.id, order.trader, order.price, match.left},
            [&](uint32_t price, uint32_t other) { return reaches(buys, price, other); });
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Cancel::Reader in, view::Done::Builder out) {
    const uint64_t id = in.getOrder();
    Queue& queue = bids.place_of(id) < bids.count ? bids : asks;
    const uint32_t place = queue.place_of(id);
    const bool rests = place < queue.count;
    out.setOutcome(rests ? view::Outcome::CANCELLED : view::Outcome::UNKNOWN_ORDER);
    out.setLeft(rests ? queue.entries[place].quantity : 0);
    ctx.sync();  // every thread has read the queue
    if (ctx.rank() == 0 && rests) queue.remove(place);
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::RestingRequest::Reader, view::Resting::Builder out) {
    list(ctx, bids, view::Side::BUY, out.initBids(bids.count));
    list(ctx, asks, view::Side::SELL, out.initAsks(asks.count));
  }

 private:
  // Returns whether a buyer at `price` takes what is offered at `other`, or a seller what is bid.
  GYRE_DEVICE static bool reaches(bool buys, uint32_t price, uint32_t other) {
    return buys ? price >= other : price <= other;
  }
  GYRE_DEVICE static bool matches(const Match& match) {
    return match.trades < match.others.count &&
           reaches(match.buys, match.order.price, match.other(match.trades).price);
  }
  GYRE_DEVICE static Match match_of(bool buys, const Entry& order, const Queue& others) {
    Match match{.buys = buys, .order = order, .others = others, .left = order.quantity};
    while (match.left != 0 && match.trades < most_trades && matches(match)) {
      const uint32_t offered = match.other(match.trades).quantity;
      match.last = match.left < offered ? match.left : offered;
      match.left -= match.last;
      ++match.trades;
    }
    return match;
  }
  GYRE_DEVICE static view::Outcome outcome_of(const Match& match, const Queue& own) {
    if (match.left == 0) return view::Outcome::FILLED;
    if (matches(match)) return view::Outcome::TOO_MANY_TRADES;
    return own.count == most_resting ? view::Outcome::BOOK_FULL : view::Outcome::RESTS;
  }
  // Message 2n is for the trader of the order, 2n + 1 for the one of the other order of trade n.
  GYRE_DEVICE static void tell_traders(Publishing& ctx, const Match& match) {
    ctx.tell_each<view::Fill>(
        2 * match.trades,
        [&](uint32_t n) {
          return gyre::Address<Trader>{n % 2 == 0 ? match.order.trader : match.other(n / 2).trader};
        },
        [&](uint32_t n, view::Fill::Builder fill) {
          const int64_t quantity = match.quantity(n / 2);
          const bool bought = match.buys == (n % 2 == 0);
          fill.setInstrument(ctx.key());
          fill.setBought(bought ? quantity : -quantity);
          fill.setPrice(match.other(n / 2).price);
        });
  }
  // Returns false, in all threads, if the program has not handled so many trades that there is no room.
  GYRE_DEVICE static bool tell_program(Publishing& ctx, const Match& match) {
    for (uint32_t n = 0; n < match.trades; ++n) {
      const Entry& other = match.other(n);
      const bool told = ctx.tell_host<view::Trade>([&](view::Trade::Builder trade) {
        trade.setBuyOrder(match.buys ? match.order.id : other.id);
        trade.setSellOrder(match.buys ? other.id : match.order.id);
        trade.setPrice(other.price);
        trade.setQuantity(match.quantity(n));
      });
      if (!told) return false;
    }
    return true;
  }
  template <class List>
  GYRE_DEVICE static void list(const gyre::Context& ctx, const Queue& queue, view::Side side,
                               const List& out) {
    for (uint32_t n = ctx.rank(); n < queue.count; n += ctx.size()) {
      const Entry& entry = queue.best(n);
      out[n].setId(entry.id);
      out[n].setTrader(entry.trader);
      out[n].setSide(side);
      out[n].setPrice(entry.price);
      out[n].setQuantity(entry.quantity);
    }
  }
};

}  // namespace order_book
