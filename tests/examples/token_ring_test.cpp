// The players of examples/token_ring, step by step.
#include <gyre/testing.hpp>
#include <token_actors_sources.hpp>

#include <string>
#include <token/token.hpp>
#include <token/token.official.hpp>
#include <vector>

#include "support/catch.hpp"

using namespace token;
using gyre::testing::Order;
using gyre::testing::SteppedRuntime;

namespace {

gyre::ActorSet ring() { return gyre::ActorSet::of<Player, Referee>(token_actors::sources); }

void start(SteppedRuntime& kit, uint64_t player, uint64_t hops) {
  const gyre::Address<Player> first{.key = player};
  REQUIRE(kit.client().tell<Token>(first, [&](Token::Builder token) { token.setHops(hops); }));
}
uint64_t passes_of(SteppedRuntime& kit, uint64_t player) {
  const gyre::Address<Player> address{.key = player};
  return kit.get(kit.client().ask<PassesRequest>(address, [](PassesRequest::Builder) {})).value()->getCount();
}
auto holder(SteppedRuntime& kit) {
  return kit.get(kit.client().ask<HolderRequest>(gyre::Address<Referee>{}, [](HolderRequest::Builder) {}));
}

}  // namespace

TEST_CASE("the token goes from player to player, and the last one tells the referee") {
  SteppedRuntime kit(ring(), {.workers = 3});
  start(kit, 10, 3);
  CHECK(kit.step()->text() == "worker 1: token::Player 10, Token");
  CHECK(kit.step()->text() == "worker 2: token::Player 11, Token");
  CHECK(kit.step()->text() == "worker 0: token::Player 0, Token");
  CHECK_FALSE(holder(kit).value()->getKnown());  // and by then player 1 has the token
  kit.run_until_idle();
  const auto last = holder(kit);
  CHECK(last.value()->getKnown());
  CHECK(last.value()->getPlayer() == 1);
  CHECK(kit.books().mail.sent == 4);  // three passes, and the referee's
  CHECK(kit.books().balanced());
}

TEST_CASE("in any order of the workers each player passes a token on as often as it gets it") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    SteppedRuntime kit(ring(), {.workers = 3}, Order::random(seed));
    // Three tokens at once.
    for (const uint64_t player : {0, 4, 9}) start(kit, player, 30);
    kit.run_until_idle();
    uint64_t passes[players] = {};
    for (const uint64_t first : {0, 4, 9}) {
      for (uint64_t hop = 0; hop < 30; ++hop) ++passes[(first + hop) % players];
    }
    for (uint64_t player = 0; player < players; ++player) CHECK(passes_of(kit, player) == passes[player]);
    const uint64_t last = holder(kit).value()->getPlayer();
    CHECK((last == 6 || last == 10 || last == 3));
    CHECK(kit.books().mail.processed == 93);
  }
}

TEST_CASE("a slow player holds up its own token alone") {
  SteppedRuntime kit(ring(), {.workers = 3});
  kit.hold(2);
  start(kit, 0, 5);  // players 0 and 1 pass it on, and player 2 is of worker 2
  start(kit, 3, 1);  // player 4 has it at the end
  kit.run_until_idle();
  CHECK(holder(kit).value()->getPlayer() == 4);
  CHECK(kit.books().mail.under_way() == 1);
  kit.release(2);
  kit.run_until_idle();
  CHECK(holder(kit).value()->getPlayer() == 5);
}
