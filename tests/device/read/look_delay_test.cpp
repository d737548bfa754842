// When a worker looks for the host's next message.
#include <gyre/device/read/request_reader.hpp>

#include "support/catch.hpp"

namespace {

using gyre::LookDelay;

// A conversation whose next message comes `turn` ticks after the reply, over a bus where a look takes
// `crossing`: the looks that found nothing.
uint32_t empty_looks(uint32_t delay, uint32_t turn, uint32_t crossing) {
  return delay >= turn ? 0 : (turn - delay + crossing - 1) / crossing;
}

TEST_CASE("the first look comes to wait for the next message of a conversation, and rarely misses it") {
  for (const uint32_t turn : {50u, 700u, 1500u}) {
    LookDelay delay(true);
    uint32_t misses = 0;
    for (int message = 0; message < 10'000; ++message) {
      const uint32_t missed = empty_looks(delay.ticks(), turn, 2000);
      misses += missed;
      delay.found(missed, false);
    }
    CHECK(delay.ticks() + 1 >= turn);
    CHECK(delay.ticks() <= turn + LookDelay::later);
    CHECK(misses <= turn / LookDelay::later + 1 + 10'000 / LookDelay::later + 1);
  }
}

TEST_CASE("messages that come late, or not in time for any wait, leave the first look as it is") {
  LookDelay delay(true);
  for (int message = 0; message < 100; ++message) delay.found(2 + message % 50, false);
  CHECK(delay.ticks() == 0);
  for (int message = 0; message < 100; ++message) delay.found(1, false);
  CHECK(delay.ticks() == LookDelay::longest);
}

TEST_CASE("a stream ends the wait at once, and hits without misses end it in time") {
  LookDelay delay(true);
  for (int message = 0; message < 5; ++message) delay.found(1, false);
  CHECK(delay.ticks() == 5 * LookDelay::later);
  delay.found(0, true);
  CHECK(delay.ticks() == 0);
  delay.found(1, false);
  for (uint32_t message = 0; message < LookDelay::later; ++message) delay.found(0, false);
  CHECK(delay.ticks() == 0);
}

TEST_CASE("where looks do not cross a bus they never wait") {
  LookDelay delay(false);
  for (int message = 0; message < 100; ++message) delay.found(1, false);
  CHECK(delay.ticks() == 0);
}

}  // namespace
