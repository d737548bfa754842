// Players in a ring pass a token on, as docs/tutorials/06-actors-that-talk.md explains it. The program checks
// who has it at the end, and how often each player passed it on.
#include <gyre/gyre.hpp>
#include <token_actors_sources.hpp>

#include <cstdio>
#include <string>

#include <token/token.hpp>
#include <token/token.official.hpp>

using namespace token;

namespace {

constexpr uint64_t hops = 1000;

// Asks the referee until a player has told it that the token stopped. Returns the player.
uint64_t await_holder(gyre::Client client) {
  for (;;) {
    const auto reply =
        client.ask<HolderRequest>(gyre::Address<Referee>{}, [](HolderRequest::Builder) {}).get();
    if (reply.value()->getKnown()) return reply.value()->getPlayer();
  }
}

uint64_t passes_of(gyre::Client client, uint64_t player) {
  const gyre::Address<Player> address{.key = player};
  return client.ask<PassesRequest>(address, [](PassesRequest::Builder) {}).get().value()->getCount();
}

}  // namespace

int main(int argc, char** argv) try {
  gyre::Options options;
  if (argc > 1 && std::string(argv[1]) == "cpu") options.engine = gyre::EngineKind::cpu;
  options.workers = 3;  // player n belongs to worker n mod 3: each pass goes to another worker
  gyre::Runtime runtime =
      gyre::Runtime::launch(gyre::ActorSet::of<Player, Referee>(token_actors::sources), options);
  gyre::Client client = runtime.client();

  // The one message that the program sends.
  const gyre::Address<Player> first{.key = 0};
  if (!client.tell<Token>(first, [](Token::Builder token) { token.setHops(hops); })) return 1;

  const uint64_t holder = await_holder(client);
  std::printf("player %lu holds the token after %lu hops\n", holder, hops);
  uint64_t wrong = holder == hops % players ? 0 : 1;
  for (uint64_t player = 0; player < players; ++player) {
    const uint64_t expected = hops / players + (player < hops % players ? 1 : 0);
    if (passes_of(client, player) != expected) ++wrong;
  }
  std::printf("%lu players passed it on, %lu wrong counts\n", players, wrong);

  const gyre::Books books = runtime.terminate().books;
  std::printf("between actors: %lu messages, %lu handled\n", books.mail.sent, books.mail.processed);
  return wrong == 0 && books.balanced() ? 0 : 1;
} catch (const gyre::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
