// fork-join-create: see create.hpp.
#include <bench/savina/create.hpp>
#include <bench/savina/create.official.hpp>

#include "savina/describe.hpp"

namespace gyre::bench::savina {

Benchmark create() {
  using namespace gyre_savina::create;
  return {.name = "fork-join-create",
          .full = {.messages = 40'000},
          .scaled = fewer_messages,
          .text = [](const Size& size) { return fmt::format("{} actors", size.messages); },
          .messages = [](const Size& size) { return 2 * uint64_t(size.messages); },
          .expected =
              [](const Size& size, uint64_t instance) {
                uint64_t sum = 0;
                for (uint64_t n = 0; n < size.messages; ++n)
                  sum += gyre_savina::work(0, uint32_t(instance * size.messages + n));
                return sum;
              },
          .actors = set_of<Forker, Task>,
          .actors_of_a_type = [](const Size& size) { return uint64_t(size.messages); },
          .start = [](Client& client, uint64_t instances,
                      const Size& size) { return start_each<Forker>(client, instances, size); }};
}

}  // namespace gyre::bench::savina
