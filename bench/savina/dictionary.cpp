// concurrent-dictionary: see dictionary.hpp.
#include <bench/savina/dictionary.hpp>
#include <bench/savina/dictionary.official.hpp>

#include "savina/describe.hpp"

namespace gyre::bench::savina {

Benchmark dictionary() {
  using namespace gyre_savina::dictionary;
  static_assert(gyre_savina::dictionary::most_under_way == savina::most_under_way);
  return {.name = "concurrent-dictionary",
          .full = {.messages = 10'000, .actors = clients},
          .has_window = true,
          .scaled = fewer_messages,
          .text =
              [](const Size& size) {
                return fmt::format("{} clients, {} requests each", clients, size.messages);
              },
          .messages = [](const Size& size) { return 2 * uint64_t(size.messages) * clients; },
          .expected =
              [](const Size& size, uint64_t instance) {
                uint64_t written = 0;
                for (uint64_t client = instance * clients; client < (instance + 1) * clients; ++client) {
                  for (uint32_t step = 0; step < size.messages; ++step) {
                    const uint32_t value = operation(client, step).value;
                    if (value != 0) written += gyre_savina::mix(value);
                  }
                }
                return written + uint64_t(clients) * size.messages;
              },
          .actors = set_of<Dictionary, gyre_savina::dictionary::Client>,
          .actors_of_a_type = [](const Size&) { return uint64_t(clients); },
          .start = [](gyre::Client& client, uint64_t instances,
                      const Size& size) { return start_each<Dictionary>(client, instances, size); }};
}

}  // namespace gyre::bench::savina
