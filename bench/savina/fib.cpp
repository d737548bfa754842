// fib: see fib.hpp.
#include <bench/savina/fib.hpp>
#include <bench/savina/fib.official.hpp>

#include "savina/describe.hpp"

namespace gyre::bench::savina {

Benchmark fib() {
  using namespace gyre_savina::fib;
  return {.name = "fib",
          .full = {.messages = 25},
          // The largest number whose recursion has at most so many percent of the nodes.
          .scaled =
              [](const Size& full, uint32_t percent) {
                Size size = full;
                while (size.messages > 1 &&
                       nodes_of(size.messages) > uint64_t(nodes_of(full.messages)) * percent / 100)
                  --size.messages;
                return size;
              },
          .text =
              [](const Size& size) {
                return fmt::format("fib({}), {} actors", size.messages, nodes_of(size.messages));
              },
          .messages = [](const Size& size) { return 2 * uint64_t(nodes_of(size.messages) - 1); },
          .expected =
              [](const Size& size, uint64_t) {
                uint64_t before = 0, value = 1;
                for (uint32_t n = 1; n < size.messages; ++n) before = std::exchange(value, value + before);
                return value;
              },
          .actors = set_of<Node>,
          .actors_of_a_type = [](const Size& size) { return uint64_t(nodes_of(size.messages)); },
          .most_waiting = [](const Size& size) { return uint64_t(nodes_of(size.messages)); },
          .start =
              [](Client& client, uint64_t instances, const Size& size) {
                return start_each<Node>(client, instances, size, nodes_of(size.messages));
              }};
}

}  // namespace gyre::bench::savina
