// Errors that leave no trace, and scratch memory, as docs/reference/actors.md explains them.
#include <capnp/message.h>
#include <gyre/gyre.hpp>
#include <market_actors_sources.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include <market/market.hpp>
#include <market/market.official.hpp>

using namespace market;

namespace {

constexpr gyre::Address<Book> book{.key = 1};

template <class Outcome>
bool failed(const char* what, const Outcome& outcome) {
  if (outcome) return false;
  std::printf("%s: %s\n", what, outcome.error().message().c_str());
  return true;
}

void order(gyre::Client client, uint64_t id, const char* note) {
  const auto reply = client
                         .ask<Order>(book,
                                     [&](Order::Builder o) {
                                       o.setId(id);
                                       o.setNote(note);
                                     })
                         .get();
  if (failed("order", reply)) return;
  const auto ids = reply.value()->getIds();
  std::printf("order %lu rests, with %u before it\n", ids[ids.size() - 1], ids.size() - 1);
}

// An order whose note points out of the message, as no library builds it.
void damaged_order(gyre::Client client, uint64_t id) {
  capnp::MallocMessageBuilder message;
  message.initRoot<Order>().setId(id);
  const auto segment = message.getSegmentsForOutput()[0].asBytes();
  std::vector<std::byte> body(reinterpret_cast<const std::byte*>(segment.begin()),
                              reinterpret_cast<const std::byte*>(segment.end()));
  body[16] = std::byte(0x41);  // the note's pointer: a list, 16 words further on
  body[20] = std::byte(0x0a);  // of one byte
  const auto reply = client.ask<Order>(book, gyre::Encoded{body, gyre::Encoding::body}).get();
  failed("damaged order", reply);
}

void take(gyre::Client client, std::vector<uint8_t> kinds) {
  const auto reply = client
                         .ask<Basket>(gyre::Address<Stock>{},
                                      [&](Basket::Builder basket) {
                                        auto list = basket.initKinds(uint32_t(kinds.size()));
                                        for (uint32_t i = 0; i < list.size(); ++i) list.set(i, kinds[i]);
                                      })
                         .get();
  if (!failed("basket", reply)) std::printf("basket: %u pieces are left\n", reply.value()->getPieces());
}

void auction(gyre::Client client, uint64_t supply, uint32_t bids) {
  const auto reply = client
                         .ask<Bids>(gyre::Address<Auction>{},
                                    [&](Bids::Builder request) {
                                      request.setSupply(supply);
                                      auto prices = request.initPrices(bids);
                                      auto quantities = request.initQuantities(bids);
                                      for (uint32_t i = 0; i < bids; ++i) {
                                        prices.set(i, 100 + i * 37 % bids);
                                        quantities.set(i, 10);
                                      }
                                    })
                         .get();
  if (failed("auction", reply)) return;
  uint64_t allotted = 0;
  for (const uint32_t quantity : reply.value()->getQuantities()) allotted += quantity;
  std::printf("auction: %lu of %lu are allotted, at %u and above\n", allotted, supply,
              reply.value()->getPrice());
}

}  // namespace

int main(int argc, char** argv) {
  gyre::Options options;
  if (argc > 1 && std::string(argv[1]) == "cpu") options.engine = gyre::EngineKind::cpu;
  gyre::Runtime runtime =
      gyre::Runtime::launch(gyre::ActorSet::of<Book, Stock, Auction>(market_actors::sources), options);
  gyre::Client client = runtime.client();

  order(client, 501, "at once");
  damaged_order(client, 502);          // refused, and it does not rest in the book
  order(client, 503, "when you can");  // one before it, not two

  // The reply outgrows a slot, and no sender says anything about that.
  for (uint64_t id = 600; id < 690; ++id) {
    if (failed("order", client.ask<Order>(book, [&](Order::Builder o) { o.setId(id); }).get())) return 1;
  }
  order(client, 700, "the last");

  take(client, {1, 2, 3});     // 13 of 16
  take(client, {4, 5, 1, 1});  // there is one of kind 1: nothing is taken
  take(client, {4, 5});

  auction(client, 250, 100);
  auction(client, 250, 600);  // more than its scratch memory has room for
  return runtime.terminate().books.balanced() ? 0 : 1;
}
