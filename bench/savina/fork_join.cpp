// fork-join-throughput: see fork_join.hpp.
#include <bench/savina/fork_join.hpp>
#include <bench/savina/fork_join.official.hpp>

#include "savina/describe.hpp"

namespace gyre::bench::savina {

Benchmark fork_join() {
  using namespace gyre_savina::fork_join;
  return {
      .name = "fork-join-throughput",
      .full = {.messages = 10'000, .actors = 60},
      .scaled = fewer_messages,
      .text =
          [](const Size& size) { return fmt::format("{} each to {} actors", size.messages, size.actors); },
      .messages = [](const Size& size) { return (uint64_t(size.messages) + 2) * size.actors; },
      .expected =
          [](const Size& size, uint64_t instance) {
            uint64_t sum = 0;
            for (uint32_t worker = 0; worker < size.actors; ++worker) {
              uint64_t value = 0;
              for (uint64_t n = 0; n < size.messages; ++n)
                value = gyre_savina::work(value, instance << 32 | (n * size.actors + worker));
              sum += value;
            }
            return sum;
          },
      .actors = set_of<Forker, gyre_savina::fork_join::Worker>,
      .actors_of_a_type = [](const Size& size) { return uint64_t(size.actors); },
      .start = [](Client& client, uint64_t instances,
                  const Size& size) { return start_each<Forker>(client, instances, size); }};
}

}  // namespace gyre::bench::savina
