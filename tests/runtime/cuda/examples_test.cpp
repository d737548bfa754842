// The examples of actors that send to each other compile with NVRTC. No GPU is needed.
#include <bank_actors_sources.hpp>
#include <farm_actors_sources.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <order_book_actors_sources.hpp>
#include <pagerank_actors_sources.hpp>
#include <ticker_actors_sources.hpp>
#include <token_actors_sources.hpp>

#include <bank/bank.hpp>
#include <farm/farm.hpp>
#include <order_book/book.hpp>
#include <pagerank/rank.hpp>
#include <ticker/ticker.hpp>
#include <token/token.hpp>

#include "support/catch.hpp"
#include "support/without_nvrtc.hpp"

namespace {

void check_example(const gyre::ActorSet& actors) {
  if (gyre_test::without_nvrtc()) return;
  const gyre::cuda::CompiledKernel kernel = gyre::cuda::compile(actors, 90, 32);
  CHECK(kernel.log == "");
  CHECK(!kernel.cubin.empty());
}

}  // namespace

TEST_CASE("the example token_ring compiles for a GPU", "[.example]") {
  check_example(gyre::ActorSet::of<token::Player, token::Referee>(token_actors::sources));
}
TEST_CASE("the example counter_farm compiles for a GPU", "[.example]") {
  check_example(gyre::ActorSet::of<farm::Driver, farm::Counter>(farm_actors::sources));
}
TEST_CASE("the example pagerank compiles for a GPU", "[.example]") {
  check_example(gyre::ActorSet::of<pagerank::Vertex>(pagerank_actors::sources));
}
TEST_CASE("the example bank compiles for a GPU", "[.example]") {
  check_example(gyre::ActorSet::of<bank::Account, bank::Bank>(bank_actors::sources));
}
TEST_CASE("the example ticker compiles for a GPU", "[.example]") {
  check_example(gyre::ActorSet::of<ticker::Subscriber, ticker::Instrument>(ticker_actors::sources));
}
TEST_CASE("the example order_book compiles for a GPU", "[.example]") {
  check_example(gyre::ActorSet::of<order_book::Book, order_book::Trader>(order_book_actors::sources));
}
