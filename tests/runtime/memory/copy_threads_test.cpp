#include <sys/wait.h>
#include <unistd.h>
#include <gyre/runtime/memory/copy_threads.hpp>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using gyre::detail::CopyThreads;

namespace {

std::vector<char> noise(size_t bytes, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<char> made(bytes);
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    const uint64_t word = random();
    std::memcpy(&made[i], &word, sizeof word);
  }
  return made;
}

// Copies and zeroes blocks of several sizes between odd addresses; how many came out wrong, or with a byte
// beside them changed.
int wrong_blocks(CopyThreads& threads, unsigned seed) {
  const std::vector<char> from = noise(3 << 20, seed);
  int wrong = 0;
  for (const size_t bytes : {size_t(0), size_t(1), CopyThreads::worth_helping - 1, CopyThreads::worth_helping,
                             CopyThreads::worth_helping + 1, size_t(1'000'003), size_t(3 << 20) - 7}) {
    std::vector<char> to = noise(bytes + 64, seed + 1), expected = to;
    threads.copy(to.data() + 3, from.data() + 7, bytes);
    std::memcpy(expected.data() + 3, from.data() + 7, bytes);
    wrong += to != expected;
    threads.zero(to.data() + 5, bytes);
    std::memset(expected.data() + 5, 0, bytes);
    wrong += to != expected;
  }
  return wrong;
}

}  // namespace

TEST_CASE("blocks that several threads copy and zero are whole, and nothing beside them changes") {
  for (const uint32_t helpers : {0u, 1u, 3u, 7u}) {
    CopyThreads threads(helpers);
    CHECK(wrong_blocks(threads, helpers) == 0);
  }
}

TEST_CASE("blocks that go past the caches are whole at any address, and nothing beside them changes") {
  constexpr size_t bytes = (size_t(32) << 20) + 4096 + 5;
  const std::vector<char> from = noise(bytes + 16, 1);
  CopyThreads threads(1);
  for (const size_t offset : {16, 3}) {
    std::vector<char> to(bytes + 64, 'x'), expected = to;
    threads.copy(to.data() + offset, from.data() + 7, bytes);
    std::memcpy(expected.data() + offset, from.data() + 7, bytes);
    CHECK((to == expected));
    threads.zero(to.data() + offset, bytes);
    std::memset(expected.data() + offset, 0, bytes);
    CHECK((to == expected));
  }
}

TEST_CASE(
    "threads that copy at the same time, some with helpers and some without, each get their own bytes") {
  CopyThreads shared(3);
  std::vector<int> wrong(4, -1);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      wrong[t] = 0;
      for (unsigned round = 0; round < 3; ++round) wrong[t] += wrong_blocks(shared, 10 * t + round);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("helpers that sleep are woken by the next block") {
  CopyThreads threads(2);
  for (int round = 0; round < 3; ++round) {
    CHECK(wrong_blocks(threads, unsigned(round)) == 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // longer than they spin
  }
}

#if !defined(GYRE_THREAD_SANITIZER)
TEST_CASE("a forked child copies without the helpers, which it does not have") {
  CopyThreads threads(3);
  REQUIRE(wrong_blocks(threads, 1) == 0);
  const pid_t child = fork();
  if (child == 0)
    _exit(wrong_blocks(threads, 2) == 0 && wrong_blocks(*CopyThreads::shared(), 3) == 0 ? 0 : 1);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(wrong_blocks(threads, 4) == 0);
}
#endif

TEST_CASE("all who ask while somebody keeps them get the same helpers") {
  const auto one = CopyThreads::shared(), other = CopyThreads::shared();
  CHECK(one == other);
}
