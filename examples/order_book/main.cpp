// Order books for eight instruments. The program sends a stream of orders to each, and compares every reply
// and trade, the traders' accounts and what is left in the books with those of a plain matching engine.
#include <gyre/gyre.hpp>
#include <order_book_actors_sources.hpp>

#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <order_book/book.hpp>
#include <order_book/book.official.hpp>

#include "plain_book.hpp"

using namespace order_book;

namespace {

constexpr uint64_t traders = 24;
constexpr uint32_t requests_each = 1000;  // of a book

// An order, or the cancelling of one.
struct Request {
  bool cancels;
  PlainOrder order;
};

Request make_request(std::mt19937_64& random, uint64_t number) {
  if (number > 20 && random() % 4 == 0) return {true, {.id = number - 1 - random() % 20}};
  const bool large = random() % 20 == 0;
  return {false,
          {.id = number,
           .trader = random() % traders,
           .side = random() % 2 == 0 ? Side::BUY : Side::SELL,
           .price = uint32_t(1000 + number / 4 % 50 + random() % 20),
           .quantity = uint32_t(1 + random() % (large ? 500 : 50))}};
}

gyre::Future<gyre::Reply<Done>> ask(gyre::Client client, uint64_t book, const Request& request) {
  const gyre::Address<Book> address{.key = book};
  const PlainOrder& order = request.order;
  if (request.cancels)
    return client.ask<Cancel>(address, [&](Cancel::Builder cancel) { cancel.setOrder(order.id); });
  return client.ask<Order>(address, [&](Order::Builder out) {
    out.setId(order.id);
    out.setTrader(order.trader);
    out.setSide(order.side);
    out.setPrice(order.price);
    out.setQuantity(order.quantity);
  });
}

// Waits for the reply. A book that cannot tell the program of a trade fails the order, which leaves no trace.
// The program then sends it again.
PlainDone done_of(gyre::Client client, uint64_t book, const Request& request,
                  gyre::Future<gyre::Reply<Done>>& future) {
  auto reply = future.get();
  while (!reply && reply.error().status == gyre::Status::handler_failed &&
         reply.error().detail == host_is_behind) {
    reply = ask(client, book, request).get();
  }
  const Done::Reader done = *reply.value();
  return {done.getOutcome(), done.getTrades(), done.getLeft()};
}

struct Fed {
  uint64_t outcomes[6] = {}, trades = 0, wrong = 0;
};

// Sends the requests, one to each book at a time: an order that is sent again keeps its place.
Fed feed(gyre::Client client, std::vector<PlainBook>& plain) {
  std::mt19937_64 random(5);
  Fed fed;
  for (uint64_t number = 0; number < requests_each; ++number) {
    std::vector<Request> requests;
    std::vector<gyre::Future<gyre::Reply<Done>>> asked;
    for (uint64_t book = 0; book < books; ++book) {
      requests.push_back(make_request(random, number));
      asked.push_back(ask(client, book, requests[book]));
    }
    for (uint64_t book = 0; book < books; ++book) {
      const Request& request = requests[book];
      const PlainDone done = done_of(client, book, request, asked[book]);
      const PlainDone expected =
          request.cancels ? plain[book].cancel(request.order.id) : plain[book].place(request.order);
      ++fed.outcomes[size_t(expected.outcome)];
      fed.trades += done.trades;
      if (done != expected) ++fed.wrong;
    }
  }
  return fed;
}

std::vector<PlainOrder> orders_of(capnp::List<Order>::Reader list) {
  std::vector<PlainOrder> orders;
  for (const Order::Reader order : list) {
    orders.push_back(
        {order.getId(), order.getTrader(), order.getSide(), order.getPrice(), order.getQuantity()});
  }
  return orders;
}

bool is_right(gyre::Client client, uint64_t number, const PlainBook& expected) {
  const auto reply =
      client.ask<RestingRequest>(gyre::Address<Book>{.key = number}, [](RestingRequest::Builder) {}).get();
  return orders_of(reply.value()->getBids()) == expected.bids() &&
         orders_of(reply.value()->getAsks()) == expected.asks();
}

PlainAccount account_of(gyre::Client client, uint64_t trader) {
  const gyre::Address<Trader> address{.key = trader};
  const auto reply = client.ask<AccountRequest>(address, [](AccountRequest::Builder) {}).get();
  const Account::Reader account = *reply.value();
  std::vector<int64_t> positions;
  for (const int64_t position : account.getPositions()) positions.push_back(position);
  return {account.getFills(), account.getCash(), std::move(positions)};
}

// Asks the traders until they have been told of so many trades together.
std::vector<PlainAccount> await_accounts(gyre::Client client, uint64_t fills) {
  for (;;) {
    std::vector<PlainAccount> accounts;
    uint64_t told = 0;
    for (uint64_t trader = 0; trader < traders; ++trader) {
      accounts.push_back(account_of(client, trader));
      told += accounts.back().fills;
    }
    if (told >= fills) return accounts;
  }
}

}  // namespace

int main(int argc, char** argv) try {
  gyre::Options options;
  if (argc > 1 && std::string(argv[1]) == "cpu") options.engine = gyre::EngineKind::cpu;
  options.workers = 4;
  // The poller's thread writes them until drain() returns. They outlive the runtime.
  std::vector<std::vector<PlainTrade>> published(books);
  gyre::Runtime runtime =
      gyre::Runtime::launch(gyre::ActorSet::of<Book, Trader>(order_book_actors::sources), options);
  runtime.on<Trade>([&](const gyre::FromActor& from, Trade::Reader trade) {
    published[from.key].push_back(
        {trade.getBuyOrder(), trade.getSellOrder(), trade.getPrice(), trade.getQuantity()});
  });
  gyre::Client client = runtime.client();

  std::vector<PlainAccount> expected(traders);
  std::vector<PlainBook> plain;
  for (uint64_t book = 0; book < books; ++book) plain.emplace_back(book, expected);
  const Fed fed = feed(client, plain);
  std::printf("%lu books, %lu requests, %lu wrong replies\n", books, books * requests_each, fed.wrong);
  std::printf("%lu filled, %lu rests, %lu bookFull, %lu tooManyTrades, %lu cancelled, %lu unknownOrder\n",
              fed.outcomes[0], fed.outcomes[1], fed.outcomes[2], fed.outcomes[3], fed.outcomes[4],
              fed.outcomes[5]);

  uint64_t wrong_accounts = 0, wrong_books = 0, wrong_trades = 0, resting = 0;
  const std::vector<PlainAccount> accounts = await_accounts(client, 2 * fed.trades);  // buyers and sellers
  for (uint64_t trader = 0; trader < traders; ++trader) {
    if (accounts[trader] != expected[trader]) ++wrong_accounts;
  }
  for (uint64_t book = 0; book < books; ++book) {
    resting += plain[book].bids().size() + plain[book].asks().size();
    if (!is_right(client, book, plain[book])) ++wrong_books;
  }
  if (!runtime.drain()) return 1;  // waits until the program has handled every trade
  for (uint64_t book = 0; book < books; ++book) {
    if (published[book] != plain[book].trades()) ++wrong_trades;
  }
  std::printf("%lu traders, %lu wrong accounts; %lu orders rest, %lu wrong books\n", traders, wrong_accounts,
              resting, wrong_books);

  const gyre::Books report = runtime.terminate().books;
  std::printf("%lu trades told to the program, those of %lu books wrong\n", report.told.handled,
              wrong_trades);
  std::printf("between actors: %lu messages, %lu handled\n", report.mail.sent, report.mail.processed);
  const bool all_right = fed.wrong + wrong_accounts + wrong_books + wrong_trades == 0;
  return all_right && report.balanced() && report.told.handled == report.told.sent ? 0 : 1;
} catch (const gyre::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
