// A reduction over a buffer, on either engine; on CUDA by a block, and by the whole grid.
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre_reduction_actors_sources.hpp>
#include <support/actors/reduction.official.hpp>

#include <vector>

#include "support/actors/reduction.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_reduction;

namespace {

ActorSet reduction_actors() { return ActorSet::of<Reduction>(gyre_reduction_actors::sources); }

// Small whole numbers: every sum of them is exact, whatever its order.
std::vector<float> numbers(uint64_t count) {
  std::vector<float> values(count);
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;  // Numerical Recipes
    value = float(state >> 28);
  }
  return values;
}

// Asks for sums of the first elements, of ever other lengths, and compares each; how many were wrong.
uint64_t wrong_sums(Runtime& runtime, uint64_t elements, uint64_t asks, uint64_t expected_threads) {
  Buffer<float> buffer = runtime.allocate<float>(MemoryKind::device, elements);
  const std::vector<float> values = numbers(elements);
  buffer.write(values);
  std::vector<double> sums(elements + 1, 0);
  for (uint64_t i = 0; i < elements; ++i) sums[i + 1] = sums[i] + double(values[i]);
  Client client = runtime.client();
  uint64_t wrong = 0;
  for (uint64_t n = 0; n < asks; ++n) {
    const uint64_t length = n % 4 == 0 ? elements : n * 48271 % (elements + 1);
    const auto reply = client
                           .ask<Reduce>(Address<Reduction>{},
                                        [&](Reduce::Builder reduce) {
                                          buffer.set(reduce.initNumbers());
                                          reduce.setLength(length);
                                          reduce.setFactor(double(1 + n % 7));
                                        })
                           .get();
    if (!reply || reply.value()->getSum() != sums[length] * double(1 + n % 7) ||
        reply.value()->getThreads() != expected_threads) {
      ++wrong;
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("a reduction over a device buffer, every sum as it should be", "[gpu]") {
  const bool on_gpu = gyre_test::engine_under_test == EngineKind::cuda;
  Runtime runtime = Runtime::launch(reduction_actors(), gyre_test::on_this_engine({.block = 256}));
  CHECK(wrong_sums(runtime, 100'000, 200, on_gpu ? 256 : 1) == 0);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a grid-scoped reduction, every sum as it should be", "[gpu]") {
  const bool on_gpu = gyre_test::engine_under_test == EngineKind::cuda;
  Runtime runtime = Runtime::launch(reduction_actors().grid_scoped(),
                                    gyre_test::on_this_engine({.block = 512, .blocks = on_gpu ? 20u : 0u}));
  CHECK(wrong_sums(runtime, 300'000, 200, on_gpu ? 20 * 512 : 1) == 0);
  CHECK(runtime.terminate().books.balanced());
}

// gyre-gpu-tests "[grid-sums]", which `tools/test.sh --all` and tools/gpu_test.sh run.
TEST_CASE("10,000 sums of up to 2^24 floats by every multiprocessor", "[.][grid-sums]") {
  Runtime runtime = Runtime::launch(reduction_actors().grid_scoped(),
                                    gyre_test::on_this_engine({.block = 1024, .blocks = 132}));
  const auto begin = std::chrono::steady_clock::now();
  CHECK(wrong_sums(runtime, uint64_t(1) << 24, 10'000, 132 * 1024) == 0);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CHECK(runtime.terminate().books.balanced());
  WARN(fmt::format("10,000 sums over at most 2^24 floats in {:.2f} s, the buffer's filling included",
                   seconds));
}
