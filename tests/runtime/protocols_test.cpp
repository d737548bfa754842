// Actors that know each other by their protocols alone, on either engine.
#include <gyre/gyre.hpp>
#include <gyre_rally_actors_sources.hpp>
#include <support/actors/rally.official.hpp>
#include <support/actors/rally_protocols.hpp>

#include <chrono>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

// Neither player is defined here.
struct RallyScore {
  uint64_t strokes = 0, strangers = 0, rests = 0;
};
template <class Request, class Player>
RallyScore score_of(Client& client, Address<Player> player) {
  const auto reply = client.ask<Request>(player, [](typename Request::Builder) {}).get();
  REQUIRE(reply);
  return {reply.value()->getStrokes(), reply.value()->getStrangers(), reply.value()->getRests()};
}
RallyScore score_of_pong(Client& client, uint64_t key) {
  return score_of<gyre_rally::ScoreRequest>(client, Address<gyre_rally::Pong>{key});
}
RallyScore score_of_ping(Client& client, uint64_t key) {
  return score_of<gyre_rally::ScoreRequest>(client, Address<gyre_rally::Ping>{key});
}
bool serve(Client& client, uint64_t key, uint64_t strokes) {
  return bool(client.tell<gyre_rally::Ball>(
      Address<gyre_rally::Ping>{key}, [&](gyre_rally::Ball::Builder ball) { ball.setStrokes(strokes); }));
}

}  // namespace

#include "support/actors/ping.hpp"
#include "support/actors/pong.hpp"

namespace {

ActorSet players() { return ActorSet::of<gyre_rally::Ping, gyre_rally::Pong>(gyre_rally_actors::sources); }
// On CUDA by one warp, which has paths of its own, and by several.
std::vector<uint32_t> rally_blocks() {
  return engine_under_test == EngineKind::cuda ? std::vector<uint32_t>{32, 128} : std::vector<uint32_t>{32};
}

}  // namespace

TEST_CASE("an actor without Handles handles what its protocol lists, in that order") {
  using namespace gyre_rally::view;
  CHECK(std::is_same_v<HandlesOf<gyre_rally::Pong>, Handles<Ball, ScoreRequest, OthersScoreRequest>>);
  CHECK(message_number<gyre_rally::Pong, OthersScoreRequest>() == 2);
  CHECK(std::is_same_v<ResponseFrom<gyre_rally::Pong, OthersScoreRequest>, Score>);
  // Of the other player the protocol lists two messages, and its Handles three more.
  CHECK(HandlesOf<gyre_rally::Ping>::count == 5);
  CHECK(message_number<gyre_rally::Ping, ScoreRequest>() == 1);
  CHECK(message_number<gyre_rally::Ping, Rest>() == 4);
  const ActorSet set = players();
  const auto number_of = [&set](uint64_t actor, uint64_t message) {
    const Handler* const handler = set.find(actor, message);
    return handler == nullptr ? 99 : int(handler->message_type);
  };
  CHECK(number_of(actor_id<gyre_rally::Pong>, OthersScoreRequest::type_id) == 2);
  CHECK(number_of(actor_id<gyre_rally::Ping>, Rest::type_id) == 4);
}

TEST_CASE("two actors that know each other by their protocols tell, ask and forward",
          "[gpu][sending][protocols]") {
  for (const uint32_t block : rally_blocks()) {
    INFO("block " << block);
    Runtime runtime = Runtime::launch(players(), on_this_engine({.workers = 3, .block = block}));
    Client client = runtime.client();
    constexpr uint64_t pairs = 7;
    for (uint64_t key = 0; key < pairs; ++key) REQUIRE(serve(client, key, 100 + key));
    for (uint64_t key = 0; key < pairs; ++key) {
      const uint64_t strokes = 100 + key, of_ping = strokes / 2 + 1, of_pong = (strokes + 1) / 2;
      const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      RallyScore ping = score_of_ping(client, key), pong = score_of_pong(client, key);
      while ((ping.rests < of_ping || pong.strokes < of_pong) && std::chrono::steady_clock::now() < end) {
        ping = score_of_ping(client, key);
        pong = score_of_pong(client, key);
      }
      CHECK(ping.strokes == of_ping);
      CHECK(ping.strangers == 1);  // the host's ball
      CHECK(ping.rests == of_ping);
      CHECK(pong.strokes == of_pong);
      CHECK(pong.strangers == 0);
      const RallyScore forwarded =
          score_of<gyre_rally::OthersScoreRequest>(client, Address<gyre_rally::Ping>{key});
      CHECK(forwarded.strokes == of_pong);
      const auto both = client
                            .ask<gyre_rally::BothScoresRequest>(Address<gyre_rally::Ping>{key},
                                                                [](gyre_rally::BothScoresRequest::Builder) {})
                            .get();
      REQUIRE(both);
      CHECK(both.value()->getOwn() == of_ping);
      CHECK(both.value()->getOthers() == of_pong);
    }
    REQUIRE(runtime.drain(std::chrono::minutes(1)));
    const Books books = runtime.terminate().books;
    CHECK(books.balanced());
    CHECK(books.mail.failed == 0);
    CHECK(books.mail.under_way() == 0);
  }
}
