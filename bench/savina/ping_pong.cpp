// ping-pong: see ping_pong.hpp.
#include <bench/savina/ping_pong.hpp>
#include <bench/savina/ping_pong.official.hpp>

#include "savina/describe.hpp"

namespace gyre::bench::savina {

Benchmark ping_pong() {
  using namespace gyre_savina::ping_pong;
  return {.name = "ping-pong",
          .full = {.messages = 40'000},
          .scaled = fewer_messages,
          .text = [](const Size& size) { return fmt::format("{} pings", size.messages); },
          .messages = [](const Size& size) { return 2 * uint64_t(size.messages); },
          .expected =
              [](const Size& size, uint64_t instance) {
                uint64_t pong = gyre_savina::mix(instance);
                for (uint32_t n = 1; n < size.messages; ++n) pong = gyre_savina::mix(pong + 1);
                return pong;
              },
          .actors = set_of<Pinger, Ponger>,
          .actors_of_a_type = [](const Size&) { return uint64_t(1); },
          .start = [](Client& client, uint64_t instances,
                      const Size& size) { return start_each<Pinger>(client, instances, size); }};
}

}  // namespace gyre::bench::savina
