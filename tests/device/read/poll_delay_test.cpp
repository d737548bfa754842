// When a worker polls for the host's next message.
#include <gyre/device/read/poll_delay.hpp>

#include "support/catch.hpp"

namespace {

using gyre::PollDelay;

// A conversation whose next message comes `turn` ticks after the reply, over a bus where a poll takes
// `crossing`: the polls that found nothing.
uint32_t empty_polls(uint32_t delay, uint32_t turn, uint32_t crossing) {
  return delay >= turn ? 0 : (turn - delay + crossing - 1) / crossing;
}

TEST_CASE("the first poll comes to wait for the next message of a conversation, and rarely misses it") {
  for (const uint32_t turn : {50u, 700u, 1500u}) {
    PollDelay delay(true);
    uint32_t misses = 0;
    for (int message = 0; message < 10'000; ++message) {
      const uint32_t missed = empty_polls(delay.ticks(), turn, 2000);
      misses += missed;
      delay.adapt(missed, false);
    }
    CHECK(delay.ticks() + 1 >= turn);
    CHECK(delay.ticks() <= turn + PollDelay::miss_step);
    CHECK(misses <= turn / PollDelay::miss_step + 1 + 10'000 / PollDelay::miss_step + 1);
  }
}

TEST_CASE("messages that come late, or not in time for any wait, leave the first poll as it is") {
  PollDelay delay(true);
  for (int message = 0; message < 100; ++message) delay.adapt(2 + message % 50, false);
  CHECK(delay.ticks() == 0);
  for (int message = 0; message < 100; ++message) delay.adapt(1, false);
  CHECK(delay.ticks() == PollDelay::longest);
}

TEST_CASE("a stream ends the wait at once, and hits without misses end it in time") {
  PollDelay delay(true);
  for (int message = 0; message < 5; ++message) delay.adapt(1, false);
  CHECK(delay.ticks() == 5 * PollDelay::miss_step);
  delay.adapt(0, true);
  CHECK(delay.ticks() == 0);
  delay.adapt(1, false);
  for (uint32_t message = 0; message < PollDelay::miss_step; ++message) delay.adapt(0, false);
  CHECK(delay.ticks() == 0);
}

TEST_CASE("where polls do not cross a bus they never wait") {
  PollDelay delay(false);
  for (int message = 0; message < 100; ++message) delay.adapt(1, false);
  CHECK(delay.ticks() == 0);
}

}  // namespace
