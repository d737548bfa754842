#include <capnp/any.h>
#include <gyre/runtime/calls/call_table.hpp>
#include <support/actors/probe.official.hpp>

#include <atomic>
#include <gyre/messages/echo.official.hpp>

#include <cstring>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/rounds.hpp"

using namespace gyre;

namespace {

Arena no_arena(nullptr, 0);
// Unpacks a body of one struct of one data word to the call's place.
void unpack_to(CallTable& table, CallId call, uint64_t value) {
  const uint64_t words[2] = {0x0000000100000000u, value};
  std::memcpy(table.place(call) + sizeof(Envelope), words, sizeof words);
}
void answer(CallTable& table, CallId call, uint64_t value) {
  unpack_to(table, call, value);
  table.complete_answered(call, 16);
}
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

TEST_CASE("a table of any size gives out each of its calls once, whoever kept some before") {
  for (const uint32_t calls : {1u, 7u, 127u, 128u, 131u, 1024u}) {
    CallTable table(calls, 16, no_arena);
    std::set<CallId> seen;
    // Threads that keep some of what they gave back, and live on: the next may still have half of a large
    // table, and all of a small one.
    std::latch over(1);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      std::vector<CallId> mine;
      std::latch done(1);
      threads.emplace_back([&table, &mine, &done, &over] {
        while (const auto call = table.acquire()) mine.push_back(*call);
        for (const CallId call : mine) table.release(call);
        done.count_down();
        over.wait();
      });
      done.wait();
      const size_t got = mine.size();
      for (const CallId call : mine) {
        CHECK(CallTable::index_of(call) < calls);
        CHECK(seen.insert(call).second);
      }
      CHECK(got >= (t == 0 || calls < 128 ? calls : calls / 2));
      CHECK(got <= calls);
    }
    over.count_down();
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_CASE("calls that threads have at the same time lie in pages of their own, and so do their replies") {
  CallTable table(1024, 64, no_arena);
  std::vector<CallId> calls[2];
  std::atomic<int> turn{0};
  const auto acquire_by_turns = [&](int me) {
    for (int i = 0; i < 64; ++i) {
      while (turn.load() % 2 != me) std::this_thread::yield();
      calls[me].push_back(table.acquire().value());
      ++turn;
    }
  };
  std::thread other(acquire_by_turns, 1);
  acquire_by_turns(0);
  other.join();
  constexpr uintptr_t page_bytes = 4096;
  std::set<uintptr_t> pages[2];
  for (int me : {0, 1}) {
    for (const CallId call : calls[me]) {
      pages[me].insert(reinterpret_cast<uintptr_t>(table.place(call)) / page_bytes);
    }
    CHECK(pages[me].size() < calls[me].size());
  }
  for (const uintptr_t page : pages[0]) CHECK(pages[1].count(page) == 0);
}

TEST_CASE("a call has one outcome: the second to come is late") {
  CallTable table(1, 16, no_arena);
  const CallId call = table.acquire().value();
  CHECK_FALSE(table.begin_outcome(call));  // not in flight yet
  table.arm(call, 0, 100, 7);
  CHECK_FALSE(table.done(call));
  REQUIRE(table.begin_outcome(call));
  CHECK_FALSE(table.begin_outcome(call));
  answer(table, call, 42);
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

namespace {

// An answered call of the table's only slot, as one reply after the other has it.
template <class Check>
void reply_with(CallTable& table, const std::vector<uint64_t>& words, Check&& check) {
  const CallId call = table.acquire().value();
  table.arm(call, 0, 0, 0);
  REQUIRE(table.begin_outcome(call));
  // Unpacked by whole groups of packets: behind the body lies what the slot held.
  const auto bytes = uint32_t(words.size() * sizeof(uint64_t));
  std::memset(table.place(call) + sizeof(Envelope), 0xff, groups_for(bytes) * group_bytes - sizeof(Envelope));
  std::memcpy(table.place(call) + sizeof(Envelope), words.data(), bytes);
  table.complete_answered(call, bytes);
  check(call);
  table.abandon(call);
}

constexpr uint64_t struct_of(uint64_t data_words, uint64_t pointers) {
  return data_words << 32 | pointers << 48;
}
uint64_t byte_list(uint64_t words_ahead, uint64_t bytes) {
  return words_ahead << 2 | 1 | (bytes << 3 | 2) << 32;
}

}  // namespace

TEST_CASE("replies of every form are read as they came, one after the other in one slot") {
  using gyre_test::ProbeResponse;
  CallTable table(1, 64, no_arena);
  for (int round = 0; round < 3; ++round) {
    reply_with(table, {struct_of(1, 0), 41},
               [&](CallId call) { CHECK(table.read<ProbeResponse>(call).getValue() == 41); });
    reply_with(table, {0}, [&](CallId call) { CHECK(table.read<ProbeResponse>(call).getValue() == 0); });
    // Larger than the class, as of a later revision; smaller; the pointer in front of a word that is no part
    // of it; empty.
    reply_with(table, {struct_of(3, 0), 42, 1, 2},
               [&](CallId call) { CHECK(table.read<ProbeResponse>(call).getValue() == 42); });
    reply_with(table, {struct_of(1, 2), 43, 0, 0},
               [&](CallId call) { CHECK(table.read<ProbeResponse>(call).getValue() == 43); });
    reply_with(table, {struct_of(1, 0) | 1 << 2, 7, 44},
               [&](CallId call) { CHECK(table.read<ProbeResponse>(call).getValue() == 44); });
    reply_with(table, {0xfffffffc},
               [&](CallId call) { CHECK(table.read<ProbeResponse>(call).getValue() == 0); });
    // The root of a list is no struct.
    reply_with(table, {byte_list(0, 8), 45},
               [&](CallId call) { CHECK_THROWS_AS(table.read<ProbeResponse>(call), kj::Exception); });
    // With a text behind a pointer.
    reply_with(table, {struct_of(0, 1), byte_list(0, 3), 0x006968}, [&](CallId call) {
      const auto text = table.read<capnp::AnyStruct>(call).getPointerSection()[0].getAs<capnp::Text>();
      CHECK(text == "hi");
    });
  }
}

TEST_CASE("a reply with the root of the one before it is read by what it says itself") {
  using messages::EchoResponse;
  CallTable table(1, 128, no_arena);
  const auto numbers = [](uint64_t words_ahead, uint64_t count) {
    return words_ahead << 2 | 1 | (count << 3 | 5) << 32;
  };
  const auto expect = [&](const std::vector<uint64_t>& words, uint64_t sequence,
                          const std::vector<uint64_t>& payload) {
    reply_with(table, words, [&](CallId call) {
      const auto response = table.read<EchoResponse>(call);
      CHECK(response.getSequence() == sequence);
      REQUIRE(response.getPayload().size() == payload.size());
      for (uint32_t i = 0; i < payload.size(); ++i) CHECK(response.getPayload()[i] == payload[i]);
    });
  };
  constexpr uint64_t root = struct_of(1, 1), behind_a_word = root | 1 << 2, behind_the_answer = root | 8 << 2;
  for (int round = 0; round < 3; ++round) {
    expect({root, 7, numbers(0, 2), 11, 12}, 7, {11, 12});
    expect({root, 8, numbers(1, 1), 0, 13}, 8, {13});
    expect({root, 9, 0}, 9, {});
    expect({root, 10}, 10, {});  // and zeros behind it
    reply_with(table, {root, 11, numbers(100, 4)}, [&](CallId call) {
      CHECK_THROWS_AS(table.read<EchoResponse>(call).getPayload(), kj::Exception);
    });
    expect({root, 12, numbers(0, 1), 14}, 12, {14});
    for (uint64_t k = 0; k < 2; ++k) {
      expect({behind_a_word, 99, 13 + k, numbers(0, 1), 15 + k}, 13 + k, {15 + k});
    }
    for (int k = 0; k < 2; ++k) expect({behind_the_answer, 99}, 0, {});
  }
}

TEST_CASE("behind a reply that is shorter than its root says lie zeros, whatever was there before") {
  CallTable table(1, 64, no_arena);
  for (int round = 0; round < 3; ++round) {
    // With a pointer, so that the official library reads it; and without.
    for (const uint64_t pointers : {uint64_t(1), uint64_t(0)}) {
      reply_with(table, {struct_of(4, pointers), 7}, [&](CallId call) {
        const auto data = table.read<capnp::AnyStruct>(call).getDataSection();
        REQUIRE(data.size() == 32);
        CHECK(data[0] == 7);
        for (size_t i = 1; i < data.size(); ++i) CHECK(data[i] == 0);
      });
      reply_with(table, {struct_of(4, pointers)},
                 [&](CallId call) { CHECK(table.read<gyre_test::ProbeResponse>(call).getValue() == 0); });
    }
  }
}

TEST_CASE("an abandoned call goes back when its outcome comes, or at once if it is there") {
  CallTable table(1, 16, no_arena);
  const CallId first = table.acquire().value();
  table.arm(first, 0, 100, 7);
  table.abandon(first);
  CHECK_FALSE(table.acquire());
  REQUIRE(table.begin_outcome(first));
  answer(table, first, 1);
  const auto second = table.acquire();
  REQUIRE(second);
  table.arm(*second, 0, 100, 7);
  REQUIRE(table.begin_outcome(*second));
  answer(table, *second, 2);
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
    const auto decide = [&](bool answers) {
      if (!table.begin_outcome(call)) return;
      ++outcomes;
      if (answers) {
        answer(table, call, uint64_t(i));
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

TEST_CASE("what is watched is there once its call is decided, in the order of the outcomes") {
  CallTable table(4, 16, no_arena);
  std::vector<CallId> calls;
  std::vector<detail::Deliverable> watched(4);
  for (detail::Deliverable& deliverable : watched) {
    calls.push_back(table.acquire().value());
    table.arm(calls.back(), 0, 100, 7);
    if (&deliverable != &watched[3]) table.watch(calls.back(), deliverable);
  }
  CHECK(table.completed().take_all() == nullptr);
  REQUIRE(table.begin_outcome(calls[2]));
  CHECK(table.completed().take_all() == nullptr);  // not before it is decided
  table.complete_failed(calls[2], Failure{Status::timed_out});
  REQUIRE(table.begin_outcome(calls[0]));
  answer(table, calls[0], 1);
  REQUIRE(table.begin_outcome(calls[3]));
  answer(table, calls[3], 1);
  table.watch(calls[3], watched[3]);  // decided before it is watched
  std::vector<detail::Deliverable*> order;
  for (detail::Deliverable* next = table.completed().take_all(); next != nullptr; next = next->next)
    order.push_back(next);
  CHECK(order == std::vector<detail::Deliverable*>{&watched[2], &watched[0], &watched[3]});
  CHECK(table.completed().take_all() == nullptr);
}

TEST_CASE("watcher and completer race for calls: each is delivered once") {
  CallTable table(1, 16, no_arena);
  detail::Deliverable watched;
  std::atomic<CallId> offered{0};
  std::atomic<bool> stop{false};
  std::thread completer([&] {
    while (!stop) {
      const CallId call = offered.exchange(0);
      if (call != 0 && table.begin_outcome(call)) answer(table, call, 1);
    }
  });
  for (int i = 0; i < gyre_test::rounds(500); ++i) {
    const CallId call = table.acquire().value();
    table.arm(call, 0, 100, 7);
    offered = call;
    table.watch(call, watched);
    detail::Deliverable* delivered = nullptr;
    while ((delivered = table.completed().take_all()) == nullptr) std::this_thread::yield();
    REQUIRE(delivered == &watched);
    REQUIRE(delivered->next == nullptr);
    REQUIRE(table.done(call));
    table.release(call);
  }
  stop = true;
  completer.join();
  CHECK(table.completed().take_all() == nullptr);
}

TEST_CASE(
    "an outcome that was overruled is late, and its slot comes back once, whoever is done with it last") {
  CallTable table(1, 16, no_arena);
  for (const bool owner_first : {true, false}) {
    const CallId call = table.acquire().value();
    table.arm(call, 0, 100, 7);
    int counted = 0;
    const auto count = [&counted] { ++counted; };
    CHECK_FALSE(table.overrule(call, count));  // nobody has begun its outcome: begin_outcome is for that
    REQUIRE(table.begin_outcome(call));
    unpack_to(table, call, 1);
    REQUIRE(table.overrule(call, count));
    CHECK_FALSE(table.overrule(call, count));
    CHECK(counted == 1);
    CHECK(table.done(call));
    CHECK(table.failed(call));
    CHECK(table.failure(call).status == Status::timed_out);
    CHECK(table.failure(call).limit == 7);
    if (owner_first) table.abandon(call);
    CHECK_FALSE(table.acquire());  // somebody writes there still
    CHECK_FALSE(table.complete_answered(call, 16));
    if (!owner_first) {
      CHECK(table.failure(call).status == Status::timed_out);
      table.abandon(call);
    }
    CHECK_FALSE(table.overrule(call, count));
    table.release(table.acquire().value());
  }
  CHECK(table.acquire());
  CHECK_FALSE(table.acquire());
}

TEST_CASE("a watched call that is overruled is delivered once") {
  CallTable table(1, 16, no_arena);
  for (const bool watched_first : {true, false}) {
    const CallId call = table.acquire().value();
    table.arm(call, 0, 100, 7);
    detail::Deliverable watched;
    if (watched_first) table.watch(call, watched);
    REQUIRE(table.begin_outcome(call));
    REQUIRE(table.overrule(call, [] {}));
    if (!watched_first) table.watch(call, watched);
    CHECK(table.completed().take_all() == &watched);
    CHECK_FALSE(table.complete_failed(call, Failure{Status::malformed}));
    CHECK(table.completed().take_all() == nullptr);
    table.abandon(call);
  }
}

TEST_CASE("the owner that sleeps for a call is woken by its outcome, and by its reply") {
  CallTable table(1, 16, no_arena);
  for (int round = 0; round < 1000; ++round) {
    const CallId call = table.acquire().value();
    table.arm(call, 0, 100, 7);
    std::atomic<bool> prepared{false}, woken{false};
    std::thread owner([&] {
      while (!woken) {  // by its reply: the ring is looked at again
        if (!table.prepare_sleep(call)) break;
        prepared = true;
        table.sleep(call, INT64_MAX);
        if (!table.done(call)) woken = true;
      }
      table.end_sleep(call);
    });
    if (round % 4 == 1) {
      while (!prepared) std::this_thread::yield();
    }
    if (round % 2 == 0) {
      REQUIRE(table.begin_outcome(call));
      answer(table, call, uint64_t(round));
    } else {
      bool watched = false;
      while (!woken) {
        watched |= table.wake(call);
        std::this_thread::yield();
      }
      CHECK_FALSE(watched);
      CHECK_FALSE(table.wake(call + CallTable::max_calls));  // of a later use
    }
    owner.join();
    CHECK(table.done(call) == (round % 2 == 0));
    if (round % 2 != 0) REQUIRE(table.begin_outcome(call));
    if (round % 2 != 0) answer(table, call, 1);
    table.release(call);
  }
}
