#include <gyre/runtime/call_table.hpp>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using namespace gyre;

namespace {

Arena no_arena(nullptr, 0);
// A body of one struct of one data word.
struct Body {
  uint64_t words[2];
  explicit Body(uint64_t value) : words{0x0000000100000000u, value} {}
  const uint32_t* data() const { return reinterpret_cast<const uint32_t*>(words); }
};
}  // namespace

TEST_CASE("a table gives out as many calls as it has, and again what was given back") {
  CallTable table(3, 16, no_arena);
  std::set<CallId> calls;
  for (int i = 0; i < 3; ++i) calls.insert(table.acquire().value());
  CHECK(calls.size() == 3);
  CHECK_FALSE(table.acquire());
  table.release(*calls.begin());
  const auto again = table.acquire();
  REQUIRE(again);
  CHECK(calls.count(*again) == 0);  // the same slot, another generation
}

TEST_CASE("a call has one outcome: the second to come is late") {
  CallTable table(1, 16, no_arena);
  const CallId call = table.acquire().value();
  CHECK_FALSE(table.begin_outcome(call));  // not in flight yet
  table.arm(call, 0, 100, 7);
  CHECK_FALSE(table.done(call));
  REQUIRE(table.begin_outcome(call));
  CHECK_FALSE(table.begin_outcome(call));
  table.complete_answered(call, Body(42).data(), 16);
  CHECK(table.done(call));
  CHECK(table.failure(call).status == Status::ok);
  CHECK_FALSE(table.begin_outcome(call));
  table.release(call);
  CHECK_FALSE(table.begin_outcome(call));
}

TEST_CASE("a reply to an earlier use of a slot does not reach its next user") {
  CallTable table(1, 16, no_arena);
  const CallId first = table.acquire().value();
  table.arm(first, 0, 100, 7);
  REQUIRE(table.begin_outcome(first));
  table.complete_failed(first, Failure{Status::timed_out});
  table.release(first);
  const CallId second = table.acquire().value();
  table.arm(second, 0, 100, 7);
  CHECK_FALSE(table.begin_outcome(first));
  CHECK_FALSE(table.done(second));
  CHECK(table.begin_outcome(second));
}

TEST_CASE("correlations that name no slot of the table are not calls") {
  CallTable table(2, 16, no_arena);
  CHECK_FALSE(table.begin_outcome(2));
  CHECK_FALSE(table.begin_outcome(CallTable::max_calls - 1));
  CHECK_FALSE(table.begin_outcome(~uint64_t(0)));
}

TEST_CASE("an abandoned call goes back when its outcome comes, or at once if it is there") {
  CallTable table(1, 16, no_arena);
  const CallId first = table.acquire().value();
  table.arm(first, 0, 100, 7);
  table.abandon(first);
  CHECK_FALSE(table.acquire());
  REQUIRE(table.begin_outcome(first));
  table.complete_answered(first, Body(1).data(), 16);
  const auto second = table.acquire();
  REQUIRE(second);
  table.arm(*second, 0, 100, 7);
  REQUIRE(table.begin_outcome(*second));
  table.complete_answered(*second, Body(2).data(), 16);
  CHECK_FALSE(table.acquire());
  table.abandon(*second);
  CHECK(table.acquire());
}

TEST_CASE("only calls in flight past their deadline are overdue") {
  CallTable table(4, 16, no_arena);
  const CallId early = table.acquire().value(), late = table.acquire().value(),
               done = table.acquire().value();
  (void)table.acquire().value();  // never armed
  table.arm(early, 0, 100, 1);
  table.arm(late, 0, 300, 1);
  table.arm(done, 0, 100, 1);
  REQUIRE(table.begin_outcome(done));
  table.complete_failed(done, Failure{Status::malformed});
  std::vector<CallId> overdue;
  table.for_each_overdue(200, [&](CallId call) { overdue.push_back(call); });
  CHECK(overdue == std::vector<CallId>{early});
}

TEST_CASE("completer, expirer and abandoner race for 20,000 calls: one outcome each, every slot comes back") {
  CallTable table(8, 16, no_arena);
  std::atomic<uint64_t> outcomes{0};
  for (int i = 0; i < 20'000; ++i) {
    const CallId call = table.acquire().value();
    table.arm(call, 0, 0, 0);
    std::thread expirer;
    const auto decide = [&](bool answer) {
      if (!table.begin_outcome(call)) return;
      ++outcomes;
      if (answer) {
        table.complete_answered(call, Body(uint64_t(i)).data(), 16);
      } else {
        table.complete_failed(call, Failure{Status::timed_out});
      }
    };
    if (i % 40 == 0) expirer = std::thread([&] { decide(false); });
    decide(true);
    if (expirer.joinable()) expirer.join();
    table.abandon(call);
  }
  CHECK(outcomes == 20'000);
  for (int i = 0; i < 8; ++i) CHECK(table.acquire());
  CHECK_FALSE(table.acquire());
}
