#include <gyre/runtime/nats/lone_asks.hpp>

#include "support/catch.hpp"

namespace {

using gyre::nats::detail::LoneAsks;

constexpr int64_t long_gap = LoneAsks::pause_ns + 1;

// Notes `count` asks, each `gap_ns` after the one before. Returns how many are lone.
uint32_t note_asks(LoneAsks& asks, int64_t& now_ns, uint32_t count, int64_t gap_ns) {
  uint32_t lone = 0;
  for (uint32_t n = 0; n < count; ++n) lone += asks.note(now_ns += gap_ns);
  return lone;
}

}  // namespace

TEST_CASE("the first ask is lone, and so is each that comes after a pause") {
  LoneAsks asks;
  CHECK(asks.note(0));
  int64_t now_ns = 0;
  CHECK(note_asks(asks, now_ns, 100, long_gap) == 100);
}

TEST_CASE("an ask that comes without a pause is not lone") {
  LoneAsks asks;
  int64_t now_ns = 1'000'000'000;
  CHECK(asks.note(now_ns));
  CHECK(note_asks(asks, now_ns, 1, LoneAsks::pause_ns) == 0);
  CHECK(note_asks(asks, now_ns, 100, 1) == 0);
}

TEST_CASE("after a burst asks are lone again once enough of them came after pauses") {
  LoneAsks asks;
  int64_t now_ns = 0;
  note_asks(asks, now_ns, 2, 1);
  CHECK(note_asks(asks, now_ns, LoneAsks::pauses_after_burst, long_gap) == 0);
  CHECK(note_asks(asks, now_ns, 100, long_gap) == 100);
}

TEST_CASE("asks of a burst that often come after a pause are not lone") {
  LoneAsks asks;
  int64_t now_ns = 0;
  note_asks(asks, now_ns, 2, 1);
  uint32_t lone = 0;
  for (int n = 0; n < 100; ++n) {
    lone += note_asks(asks, now_ns, LoneAsks::pauses_after_burst, long_gap);
    lone += note_asks(asks, now_ns, 1, 1);
  }
  CHECK(lone == 0);
}

TEST_CASE("what comes soon after a wait came during it, and is not lone") {
  LoneAsks asks;
  int64_t now_ns = 0;
  CHECK(asks.note(now_ns));
  now_ns += LoneAsks::pause_ns;
  asks.note_wait(now_ns);
  CHECK_FALSE(asks.note(now_ns + 1));
  CHECK(note_asks(asks, now_ns, LoneAsks::pauses_after_burst, 2 * long_gap) == 0);
  CHECK(asks.note(now_ns + long_gap));
}
