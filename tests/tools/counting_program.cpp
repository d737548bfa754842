// A program with counts of its own in its runtime's stats, until its standard input ends.
#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <iostream>

int main() {
  gyre::Runtime runtime =
      gyre::Runtime::launch(gyre::builtin_actors(), {.engine = gyre::EngineKind::cpu,
                                                     .publish_stats = true,
                                                     .stats_interval = std::chrono::milliseconds(10)});
  const gyre::AddedCounts counts =
      runtime.add_counts({"cache",
                          {{"hits", "Requests found in the cache."},
                           {"entries", "Entries in the cache now.", gyre::CountKind::gauge}}},
                         [](std::span<uint64_t> values) {
                           values[0] = 41;
                           values[1] = 12;
                         });
  for (std::string line; std::getline(std::cin, line);) {
  }
}
