// A program with counters at the keys of its arguments, until its standard input ends.
#include <gyre/gyre.hpp>
#include <gyre_state_actors_sources.hpp>
#include <support/actors/counter.official.hpp>

#include <cstdlib>
#include <iostream>
#include <string>

#include "support/actors/counter.hpp"

int main(int count, char** keys) {
  using namespace gyre_counters;
  gyre::Runtime runtime =
      gyre::Runtime::launch(gyre::ActorSet::of<Counter, Guest>(gyre_state_actors::sources),
                            {.engine = gyre::EngineKind::cpu,
                             .workers = 2,
                             .publish_stats = true,
                             .stats_interval = std::chrono::milliseconds(10)});
  gyre::Client client = runtime.client();
  for (int n = 1; n < count; ++n) {
    const gyre::Address<Counter> counter{std::strtoull(keys[n], nullptr, 10)};
    if (!client.ask<Add>(counter, [](Add::Builder add) { add.setAmount(1); }).get()) return 1;
  }
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
  }
}
