// What handlers can use beyond messages and state, on either engine: scratch memory in shared memory,
// products of matrices.
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre_handlers_actors_sources.hpp>
#include <support/actors/handlers.official.hpp>

#include <random>
#include <vector>

#include "support/actors/handlers.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_handlers;

namespace {

ActorSet handler_actors() {
  return ActorSet::of<Filler, SideFiller, Multiplier>(gyre_handlers_actors::sources);
}

// On CUDA by one warp, which has paths of its own, and by several.
std::vector<uint32_t> handler_blocks() {
  return engine_under_test == EngineKind::cuda ? std::vector<uint32_t>{32, 256} : std::vector<uint32_t>{32};
}

uint64_t sum_of_elements(uint64_t seed, uint64_t count) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) sum += element(seed, i);
  return sum;
}

}  // namespace

TEST_CASE("scratch memory in shared memory is the team's own, aligned, and apart from device memory",
          "[gpu][unified][handlers]") {
  for (const uint32_t block : handler_blocks()) {
    Runtime runtime = Runtime::launch(handler_actors(), on_this_engine({.block = block}));
    Client client = runtime.client();
    std::mt19937_64 random(31);
    std::vector<std::pair<uint64_t, uint32_t>> asked(120);  // seed and count
    for (auto& [seed, count] : asked) {
      seed = random();
      count = 1 + uint32_t(random() % 7000);
    }
    std::vector<Future<Reply<Filled>>> futures(asked.size());
    REQUIRE(client.ask_many<Fill>([](size_t i) { return Address<Filler>{i % 3}; }, futures,
                                  [&](size_t i, Fill::Builder fill) {
                                    fill.setSeed(asked[i].first);
                                    fill.setCount(asked[i].second);
                                    fill.setMore(30);
                                  }) == futures.size());
    for (size_t i = 0; i < asked.size(); ++i) {
      const auto [seed, count] = asked[i];
      const auto reply = futures[i].get();
      INFO(fmt::format("{} elements, block {}", count, block));
      REQUIRE(reply);
      REQUIRE(reply.value()->getSum() == sum_of_elements(seed, count));
      REQUIRE(reply.value()->getMoreSum() == 30 * 29 / 2);
      REQUIRE(reply.value()->getApart() == (count + 1) / 2 * 16);
      REQUIRE(reply.value()->getMisaligned() == 0);
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("more shared scratch memory than the actor says it needs is refused with the numbers",
          "[gpu][handlers]") {
  Runtime runtime = Runtime::launch(handler_actors(), on_this_engine());
  Client client = runtime.client();
  const auto fill = [&](uint32_t count, uint32_t more) {
    return client
        .ask<Fill>(Address<Filler>{7},
                   [&](Fill::Builder message) {
                     message.setCount(count);
                     message.setMore(more);
                   })
        .get();
  };
  CHECK(fill(7500, 0));  // all 60,000 bytes
  const auto refused = fill(7500, 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().status == Status::scratch_full);
  CHECK(refused.error().asked == 60'004);
  CHECK(refused.error().limit == 60'000);
  CHECK(refused.error().message().find("shared_scratch_bytes") != std::string::npos);
  CHECK(fill(0xffffffff, 0xffffffff).error().status == Status::scratch_full);
  CHECK(fill(2, 2));
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("messages handled side by side have shared scratch memory of their own",
          "[gpu][unified][handlers]") {
  Runtime runtime = Runtime::launch(handler_actors(), on_this_engine());
  Client client = runtime.client();
  uint64_t by_a_part = 0;
  for (uint64_t round = 0; round < 20; ++round) {
    std::vector<Future<Reply<Filled>>> futures(200);
    REQUIRE(client.ask_many<Fill>(Address<SideFiller>{1}, futures, [&](size_t i, Fill::Builder fill) {
      fill.setSeed(1000 * round + i);
      fill.setCount(i % 50 == 49 ? 9 : 8);
    }) == futures.size());
    for (size_t i = 0; i < futures.size(); ++i) {
      const auto reply = futures[i].get();
      if (i % 50 == 49) {
        REQUIRE(reply.error().status == Status::scratch_full);
        continue;
      }
      REQUIRE(reply);
      REQUIRE(reply.value()->getSum() == sum_of_elements(1000 * round + i, 8));
      by_a_part += reply.value()->getThreads() < 32 ? 1 : 0;
    }
  }
  CHECK(by_a_part != 0);  // on the CPU each thread is a team
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("each block of a grid-scoped actor has shared scratch memory of its own", "[gpu][handlers]") {
  Options options = on_this_engine({.block = 64});
  options.blocks = engine_under_test == EngineKind::cuda ? 5 : 0;
  Runtime runtime =
      Runtime::launch(ActorSet::of<GridFiller>(gyre_handlers_actors::sources).grid_scoped(), options);
  Client client = runtime.client();
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const uint32_t count = 1 + uint32_t(seed * 13);
    const auto reply = client
                           .ask<Fill>(Address<GridFiller>{},
                                      [&](Fill::Builder message) {
                                        message.setSeed(seed);
                                        message.setCount(count);
                                      })
                           .get();
    REQUIRE(reply);
    const uint32_t threads = reply.value()->getThreads(), blocks = threads == 1 ? 1 : threads / 64;
    uint64_t sum = 0;
    for (uint32_t block = 0; block < blocks; ++block) sum += sum_of_elements(seed + block, count);
    REQUIRE(reply.value()->getSum() == sum);
  }
  CHECK(runtime.terminate().books.balanced());
}

// Whole numbers: every order of addition gives the same sum.
TEST_CASE("a matrix in a buffer is multiplied with a vector, of any size and alignment", "[gpu][handlers]") {
  struct Size {
    uint32_t rows, columns;
  };
  for (const uint32_t block : handler_blocks()) {
    Runtime runtime = Runtime::launch(handler_actors(), on_this_engine({.block = block, .slot_bytes = 8192}));
    Client client = runtime.client();
    std::mt19937 random(32);
    for (const Size& size : {Size{128, 64}, Size{64, 128}, Size{8, 64}, Size{1, 1}, Size{3, 5}, Size{33, 30},
                             Size{7, 1000}, Size{200, 4}, Size{129, 132}, Size{1, 1024}, Size{300, 1}}) {
      const uint32_t rows = size.rows, columns = size.columns;
      std::vector<float> matrix(size_t(rows) * columns + rows), vector(columns);
      for (float& number : matrix) number = float(int(random() % 15) - 7);
      for (float& number : vector) number = float(int(random() % 15) - 7);
      auto buffer = runtime.allocate<float>(MemoryKind::device, matrix.size());
      buffer.write(matrix);
      for (int form = 0; form < 4; ++form) {
        const bool bias = (form & 1) != 0, shifted = (form & 2) != 0;
        const auto reply = client
                               .ask<Multiply>(Address<Multiplier>{},
                                              [&](Multiply::Builder message) {
                                                buffer.set(message.initMatrix());
                                                message.setRows(rows);
                                                message.setColumns(columns);
                                                message.setBias(bias);
                                                message.setShifted(shifted);
                                                auto x = message.initVector(columns);
                                                for (uint32_t i = 0; i < columns; ++i) x.set(i, vector[i]);
                                              })
                               .get();
        INFO(fmt::format("{} x {}, form {}, block {}", rows, columns, form, block));
        REQUIRE(reply);
        const auto values = reply.value()->getValues();
        REQUIRE(values.size() == rows);
        uint32_t wrong = 0;
        for (uint32_t row = 0; row < rows; ++row) {
          float sum = bias ? matrix[size_t(rows) * columns + row] : 0;
          for (uint32_t k = 0; k < columns; ++k) sum += matrix[size_t(row) * columns + k] * vector[k];
          wrong += values[row] != (sum < 0 ? 0 : sum);
        }
        CHECK(wrong == 0);
      }
    }
    CHECK(runtime.terminate().books.balanced());
  }
}
