// A first actor, as docs/tutorials/01-first-actor.md explains it.
#include <averages_sources.hpp>
#include <gyre/gyre.hpp>

#include <cstdio>
#include <initializer_list>
#include <string_view>

#include <averages/average.hpp>
#include <averages/average.official.hpp>

using namespace averages;

namespace {

void add(gyre::Client client, uint64_t key, std::initializer_list<double> numbers) {
  const gyre::Address<Average> average{.key = key};
  auto future = client.ask<Add>(average, [&](Add::Builder request) { request.setNumbers(numbers); });
  const auto reply = future.get();  // or do something else first
  if (reply) {
    std::printf("average %d: %g, of %d numbers\n", int(key), reply.value()->getMean(),
                int(reply.value()->getCount()));
  } else {
    std::printf("average %d: %s\n", int(key), reply.error().message().c_str());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  gyre::Options options;  // the GPU where there is one
  if (argc > 1 && argv[1] == std::string_view("cpu")) options.engine = gyre::EngineKind::cpu;
  if (argc > 1 && argv[1] == std::string_view("cuda")) options.engine = gyre::EngineKind::cuda;
  gyre::Runtime runtime = gyre::Runtime::launch(gyre::ActorSet::of<Average>(averages::sources), options);
  gyre::Client client = runtime.client();

  add(client, 1, {1, 2, 3});
  add(client, 1, {10});   // the same key: it remembers
  add(client, 2, {0.5});  // another key: another actor
  add(client, 2, {});     // nothing to average

  const gyre::Books books = runtime.terminate().books;
  std::printf("%d asked, %d answered, %d with an error\n", int(books.asks.accepted), int(books.asks.answered),
              int(books.asks.error_replies));
  return books.balanced() ? 0 : 1;
} catch (const gyre::Error& error) {  // no GPU, no room: its text says what to do
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
