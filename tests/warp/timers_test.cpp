// A worker of one warp whose handlers set timers, lane by lane on a CPU, held against a plain list of timers.
#include <algorithm>
#include <random>
#include <vector>

#include "mail_warp.hpp"
#include "support/catch.hpp"
#include "support/rounds.hpp"

namespace {

using namespace gyre;
using namespace gyre_test;

// Notes the numbers that it is sent, and when.
struct Bell {
  struct Ring {
    uint64_t number, at_ns, list_sum;
  };
  inline static std::vector<Ring> rings;

  void on(Context& ctx, Letter::Reader in) {
    const auto list = in.list();
    uint64_t sum = 0;
    for (uint32_t i = 0; i < list.size(); ++i) sum += list[i];
    if (ctx.rank() == 0) rings.push_back({in[1], now_ns(), sum});
  }
};

// As in[0] says, sets in[1] timers, timer i for in[1] - i microseconds, or for 20 ms more; or one that sends
// each in[1] microseconds; or cancels the timer in[1]; or tells in[1] letters, and then moves the clock on by
// 25 ms. Timers have numbers from `numbers` on. Answers the first timer's id.
struct Clock {
  static constexpr uint64_t after = 0, every = 1, cancel = 2, fails = 3, later = 4, tell = 5;
  static constexpr uint32_t most = 64;
  uint64_t numbers = 0;

  void on(Sending<most, Timers>& ctx, Letter::Reader in, Letter::Builder out) {
    if (in[0] == cancel) return ctx.cancel(Timer{in[1]});
    const uint64_t count = in[0] == every ? 1 : in[1], first = numbers;
    for (uint64_t i = 0; i < count; ++i) {
      const auto fill = [&](Letter::Builder letter) {
        letter.fields.set<uint64_t>(1, first + i);
        const auto list = letter.fields.init<wire::List<uint64_t>>(0, uint32_t(i % 9));
        for (uint32_t k = ctx.rank(); k < list.size(); k += ctx.size()) list.set(k, first + i + k);
      };
      const Address<Bell> bell{0};  // of this worker
      if (in[0] == tell) {
        ctx.tell<Letter>(bell, fill);
        continue;
      }
      const Timer timer =
          in[0] == every ? ctx.send_every<Letter>(Duration::microseconds(in[1]), bell, fill)
                         : ctx.send_after<Letter>(
                               Duration::microseconds(count - i + (in[0] == later ? 20'000 : 0)), bell, fill);
      if (i == 0) out.fields.set<uint64_t>(1, timer.id);
    }
    ctx.sync();
    if (in[0] == tell && ctx.rank() == 0) worker_clock_ahead_ns += 25'000'000;
    ctx.sync();
    if (in[0] == fails && ctx.rank() == 5) ctx.fail(1);
    if (ctx.rank() == 0 && in[0] != fails) numbers += count;
    ctx.sync();
  }
};

constexpr uint16_t clock_type = 0;
uint64_t list_sum(uint64_t number, uint64_t i) {
  uint64_t sum = 0;
  for (uint64_t k = 0; k < i % 9; ++k) sum += number + k;
  return sum;
}

}  // namespace

TEST_CASE("a warp's timers send the earliest first, each once and whole, and none before its time") {
  MailWarp<Clock, Bell> worker({64, 512, 1});
  std::mt19937_64 random(91);
  Bell::rings.clear();
  uint64_t first = 0;
  for (int round = 0; round < rounds(60); ++round) {
    if (random() % 4 == 0) {
      worker.ask(clock_type, Clock::fails, 1 + random() % Clock::most);
      CHECK(worker.take_answer().status == Status::handler_failed);
    }
    const uint64_t count = 1 + random() % Clock::most, begun_ns = now_ns();
    worker.ask(clock_type, Clock::after, count);
    REQUIRE(worker.take_answer().status == Status::ok);
    while (Bell::rings.size() < count) worker.let_run(50);
    worker.let_run(500);
    REQUIRE(Bell::rings.size() == count);
    for (uint64_t n = 0; n < count; ++n) {
      const Bell::Ring& ring = Bell::rings[n];
      // The last one was set for the shortest time.
      const uint64_t i = count - 1 - n;
      CHECK(ring.number == first + i);
      CHECK(ring.list_sum == list_sum(first + i, i));
      CHECK(ring.at_ns >= begun_ns + (count - i) * 1000);
    }
    Bell::rings.clear();
    first += count;
  }
  worker.let_run(6000);
  CHECK(worker.line().timers_set == first);
  CHECK(worker.line().timers_done == first);
  CHECK(worker.line().timers_cancelled == 0);
}

TEST_CASE("a warp's periodic timers keep their rhythm until they are cancelled") {
  MailWarp<Clock, Bell> worker({64, 512, 1});
  std::mt19937_64 random(92);
  for (int round = 0; round < rounds(20); ++round) {
    Bell::rings.clear();
    const uint64_t period_us = 40 + random() % 40, begun_ns = now_ns();
    worker.ask(clock_type, Clock::every, period_us);
    const uint64_t timer = worker.take_answer().value;
    REQUIRE(timer != 0);
    while (Bell::rings.size() < 6) worker.let_run(50);
    worker.ask(clock_type, Clock::cancel, timer);
    worker.take_answer();
    const size_t count = Bell::rings.size();
    worker.let_run(2000);
    CHECK(Bell::rings.size() <= count + 1);
    // The n-th one comes after n periods, some times may be left out.
    for (size_t n = 0; n < Bell::rings.size(); ++n)
      CHECK(Bell::rings[n].at_ns >= begun_ns + (n + 1) * period_us * 1000);
  }
  worker.let_run(6000);
  CHECK(worker.line().timers_set == uint64_t(rounds(20)));
  CHECK(worker.line().timers_cancelled == uint64_t(rounds(20)));
}

TEST_CASE("a warp sets as many timers as there is room for, and no more") {
  MailWarp<Clock, Bell> worker({64, 512, 1});
  for (int round = 0; round < 3; ++round) {
    std::vector<uint64_t> timers;
    for (uint32_t n = 0; n < MailLayout::timers; ++n) {
      worker.ask(clock_type, Clock::every, 3'600'000'000);
      timers.push_back(worker.take_answer().value);
    }
    worker.ask(clock_type, Clock::every, 3'600'000'000);
    CHECK(worker.take_answer().status == Status::timers_full);
    std::sort(timers.begin(), timers.end());
    CHECK(std::unique(timers.begin(), timers.end()) == timers.end());
    for (const uint64_t timer : timers) {
      worker.ask(clock_type, Clock::cancel, timer);
      CHECK(worker.take_answer().status == Status::ok);
    }
  }
  worker.let_run(6000);
  CHECK(worker.line().timers_set == 3 * MailLayout::timers);
  CHECK(worker.line().timers_cancelled == 3 * MailLayout::timers);
}

TEST_CASE(
    "timers that are due at once wait for room beside messages that a handler sent, without spill memory") {
  MailWarp<Clock, Bell> worker({64, 512, 1}, false, 0);
  Bell::rings.clear();
  const uint64_t ahead_ns = worker_clock_ahead_ns;
  worker.ask(clock_type, Clock::later, Clock::most);
  worker.ask(clock_type, Clock::tell, 31);  // when its handler returns, all timers are due
  for (int n = 0; n < 2; ++n) REQUIRE(worker.take_answer().status == Status::ok);
  while (Bell::rings.size() < Clock::most + 31 && worker.line().mail_refused == 0) worker.let_run(50);
  worker.let_run(6000);
  worker_clock_ahead_ns = ahead_ns;
  CHECK(worker.line().mail_refused == 0);
  std::vector<uint64_t> numbers;
  for (const Bell::Ring& ring : Bell::rings) numbers.push_back(ring.number);
  std::sort(numbers.begin(), numbers.end());
  REQUIRE(numbers.size() == Clock::most + 31);
  for (uint64_t n = 0; n < numbers.size(); ++n) CHECK(numbers[n] == n);
}
