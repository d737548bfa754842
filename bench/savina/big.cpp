// big: see big.hpp.
#include <bench/savina/big.hpp>
#include <bench/savina/big.official.hpp>

#include "savina/describe.hpp"

namespace gyre::bench::savina {

Benchmark big() {
  using namespace gyre_savina::big;
  static_assert(gyre_savina::big::most_under_way == savina::most_under_way);
  return {.name = "big",
          .full = {.messages = 20'000, .actors = 120},
          .has_window = true,
          .scaled = fewer_messages,
          .text =
              [](const Size& size) {
                return fmt::format("{} actors, {} pings each", size.actors, size.messages);
              },
          .messages = [](const Size& size) { return 2 * uint64_t(size.messages) * size.actors; },
          .expected =
              [](const Size& size, uint64_t instance) {
                uint64_t sum = 0;
                for (uint32_t peer = 0; peer < size.actors; ++peer) {
                  const uint32_t key = uint32_t(instance) * size.actors + peer;
                  for (uint32_t n = 0; n < size.messages; ++n)
                    sum += gyre_savina::mix(key, n) + gyre_savina::mix(n, key);
                }
                return sum;
              },
          .actors = set_of<Sink, Peer>,
          .actors_of_a_type = [](const Size& size) { return uint64_t(size.actors); },
          .start = [](Client& client, uint64_t instances,
                      const Size& size) { return start_each<Sink>(client, instances, size); }};
}

}  // namespace gyre::bench::savina
