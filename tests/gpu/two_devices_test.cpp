// Two GPUs, a runtime on each, in one process. Skipped where there is one GPU.
#include <fmt/format.h>
#include <gyre/bridge/cuda/driver.hpp>

#include <atomic>
#include <thread>

#include "support/catch.hpp"
#include "support/counters.hpp"
#include "support/skip.hpp"
#include "support/three_cases.hpp"

using namespace gyre;
using namespace gyre_counters;

TEST_CASE("runtimes on two GPUs work at once, and each has actors of its own", "[gpu][devices]") {
  if (cuda::Driver::device_count() < 2) {
    return gyre_test::skip("one GPU here");
  }
  {
    Runtime first =
        Runtime::launch(counter_actors(), {.engine = EngineKind::cuda, .device = 0, .workers = 4});
    Runtime second =
        Runtime::launch(counter_actors(), {.engine = EngineKind::cuda, .device = 1, .workers = 4});
    std::atomic<uint64_t> wrong{0};
    const auto count = [&wrong](Runtime& runtime, uint64_t amount) {
      Client client = runtime.client();
      for (uint64_t n = 1; n <= 20'000; ++n) {
        const auto reply = client.ask<Add>(counter(2 * (n % 8)), adding(amount)).get();
        if (!reply || reply.value()->getValue() != (n + 7) / 8 * amount) ++wrong;
      }
    };
    // Keys 2, 4 … 14, 0, over and over: the n-th ask is its actor's ((n + 7) / 8)-th.
    std::thread beside([&] { count(second, 3); });
    count(first, 1);
    beside.join();
    CHECK(wrong == 0);
    CHECK(first.terminate().books.balanced());
    CHECK(second.client().ask<Add>(counter(2), adding(0)).get().value()->getValue() == 2500 * 3);
    CHECK(second.terminate().books.balanced());
  }
  Runtime again = Runtime::launch(counter_actors(), {.engine = EngineKind::cuda, .device = 1});
  CHECK(again.client().ask<Add>(counter(2), adding(1)).get().value()->getValue() == 1);
}

TEST_CASE("a runtime ends, and is launched again, while one on another GPU lives", "[gpu][devices]") {
  if (cuda::Driver::device_count() < 2) {
    return gyre_test::skip("one GPU here");
  }
  Runtime first = Runtime::launch(counter_actors(), {.engine = EngineKind::cuda, .device = 0});
  for (int round = 1; round <= 3; ++round) {
    Runtime second = Runtime::launch(counter_actors(), {.engine = EngineKind::cuda, .device = 1});
    auto buffer = second.allocate<float>(MemoryKind::pinned, 1000);
    CHECK(second.client().ask<Add>(counter(4), adding(7)).get().value()->getValue() == 7);
    CHECK(first.client().ask<Add>(counter(4), adding(7)).get().value()->getValue() == 7u * uint64_t(round));
  }
}

TEST_CASE("the validation's cases on two GPUs at once, by two runtimes of one process", "[gpu][devices]") {
  if (cuda::Driver::device_count() < 2) {
    return gyre_test::skip("one GPU here");
  }
  Runtime first = Runtime::launch(builtin_actors(), {.engine = EngineKind::cuda, .device = 0});
  Runtime second = Runtime::launch(builtin_actors(), {.engine = EngineKind::cuda, .device = 1});
  std::string wrong_on_second;
  std::thread beside([&] {
    for (int round = 0; round < 20 && wrong_on_second.empty(); ++round) {
      wrong_on_second = gyre_test::wrong_in_three_cases(second);
    }
  });
  std::string wrong_on_first;
  for (int round = 0; round < 20 && wrong_on_first.empty(); ++round) {
    wrong_on_first = gyre_test::wrong_in_three_cases(first);
  }
  beside.join();
  CHECK(wrong_on_first == "");
  CHECK(wrong_on_second == "");
  CHECK(first.terminate().books.balanced());
  CHECK(second.terminate().books.balanced());
}
