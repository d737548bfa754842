// A matching engine without actors, to compare with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <order_book/book.hpp>
#include <order_book/book.official.hpp>

namespace order_book {

struct PlainOrder {
  uint64_t id = 0, trader = 0;
  Side side = Side::BUY;
  uint32_t price = 0, quantity = 0;

  bool operator==(const PlainOrder&) const = default;
};

struct PlainTrade {
  uint64_t buy_order = 0, sell_order = 0;
  uint32_t price = 0, quantity = 0;

  bool operator==(const PlainTrade&) const = default;
};

struct PlainDone {
  Outcome outcome = Outcome::FILLED;
  uint32_t trades = 0, left = 0;

  bool operator==(const PlainDone&) const = default;
};

struct PlainAccount {
  uint64_t fills = 0;
  int64_t cash = 0;
  std::vector<int64_t> positions = std::vector<int64_t>(books);

  bool operator==(const PlainAccount&) const = default;
};

class PlainBook {
 public:
  /// @param accounts  of all traders, by number
  PlainBook(uint64_t instrument, std::vector<PlainAccount>& accounts)
      : instrument_(instrument), accounts_(&accounts) {}

  PlainDone place(PlainOrder order) {
    Queue& others = order.side == Side::BUY ? asks_ : bids_;
    uint32_t trades = 0;
    while (order.quantity != 0 && matches(order, others)) {
      if (trades == most_trades) return {Outcome::TOO_MANY_TRADES, trades, order.quantity};
      trade(order, others);
      ++trades;
    }
    if (order.quantity == 0) return {Outcome::FILLED, trades, 0};
    Queue& own = order.side == Side::BUY ? bids_ : asks_;
    if (own.size() == most_resting) return {Outcome::BOOK_FULL, trades, order.quantity};
    own.emplace(rank_of(order), order);  // behind those of the same rank
    return {Outcome::RESTS, trades, order.quantity};
  }

  PlainDone cancel(uint64_t id) {
    for (Queue* const queue : {&bids_, &asks_}) {
      for (auto at = queue->begin(); at != queue->end(); ++at) {
        if (at->second.id != id) continue;
        const uint32_t quantity = at->second.quantity;
        queue->erase(at);
        return {Outcome::CANCELLED, 0, quantity};
      }
    }
    return {Outcome::UNKNOWN_ORDER, 0, 0};
  }

  const std::vector<PlainTrade>& trades() const { return trades_; }
  std::vector<PlainOrder> bids() const { return in_order(bids_); }
  std::vector<PlainOrder> asks() const { return in_order(asks_); }

 private:
  using Queue = std::multimap<int64_t, PlainOrder>;  // by rank_of(), the best first

  static int64_t rank_of(const PlainOrder& order) {
    return order.side == Side::BUY ? -int64_t(order.price) : int64_t(order.price);
  }
  static bool matches(const PlainOrder& order, const Queue& others) {
    if (others.empty()) return false;
    const uint32_t price = others.begin()->second.price;
    return order.side == Side::BUY ? price <= order.price : price >= order.price;
  }
  // With the best of the others.
  void trade(PlainOrder& order, Queue& others) {
    PlainOrder& other = others.begin()->second;
    const uint32_t quantity = std::min(order.quantity, other.quantity), price = other.price;
    const PlainOrder &buy = order.side == Side::BUY ? order : other,
                     &sell = order.side == Side::BUY ? other : order;
    trades_.push_back({buy.id, sell.id, price, quantity});
    fill(buy.trader, price, quantity);
    fill(sell.trader, price, -int64_t(quantity));
    order.quantity -= quantity;
    other.quantity -= quantity;
    if (other.quantity == 0) others.erase(others.begin());
  }
  void fill(uint64_t trader, uint32_t price, int64_t bought) {
    PlainAccount& account = (*accounts_)[trader];
    ++account.fills;
    account.cash -= bought * price;
    account.positions[instrument_] += bought;
  }
  static std::vector<PlainOrder> in_order(const Queue& queue) {
    std::vector<PlainOrder> orders;
    for (const auto& [rank, order] : queue) orders.push_back(order);
    return orders;
  }

  uint64_t instrument_;
  std::vector<PlainAccount>* accounts_;
  Queue bids_, asks_;
  std::vector<PlainTrade> trades_;
};

}  // namespace order_book
