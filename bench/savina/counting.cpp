// counting: see counting.hpp.
#include <bench/savina/counting.hpp>
#include <bench/savina/counting.official.hpp>

#include "savina/describe.hpp"

namespace gyre::bench::savina {

Benchmark counting() {
  using namespace gyre_savina::counting;
  return {.name = "counting",
          .full = {.messages = 1'000'000},
          .scaled = fewer_messages,
          .text = [](const Size& size) { return fmt::format("{} increments", size.messages); },
          .messages = [](const Size& size) { return uint64_t(size.messages) + 1; },
          .expected = [](const Size& size, uint64_t) { return uint64_t(size.messages); },
          .actors = set_of<Producer, Counter>,
          .actors_of_a_type = [](const Size&) { return uint64_t(1); },
          .start = [](Client& client, uint64_t instances,
                      const Size& size) { return start_each<Producer>(client, instances, size); }};
}

}  // namespace gyre::bench::savina
