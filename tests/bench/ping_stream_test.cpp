// The streams of the throughput benchmark: who sends what, and that every answer counts.
#include "bench/ping_stream.hpp"

#include <bench/actors/ping.hpp>

#include <algorithm>
#include <set>

#include "bench/gyre_run.hpp"
#include "bench/threads.hpp"
#include "support/catch.hpp"

namespace {

using namespace gyre;
using namespace gyre::bench;

TEST_CASE("shares hold all messages, every worker has a sender, and windows fit the rings") {
  for (const uint32_t workers : {1u, 3u, 16u, 132u}) {
    for (const uint32_t threads : {1u, 4u, 7u}) {
      const auto shares = share_pings(1001, threads, workers, 256, 0);
      REQUIRE(shares.size() == threads);
      uint64_t messages = 0;
      std::set<uint64_t> keys, first_values;
      for (const PingShare& share : shares) {
        messages += share.messages;
        keys.insert(share.keys.begin(), share.keys.end());
        first_values.insert(share.first_value);
        REQUIRE(share.window >= 1);
        const uint32_t threads_a_worker = (threads + workers - 1) / workers;
        const size_t usual = usual_window(workers, 256) / threads_a_worker * share.keys.size();
        REQUIRE(share.window == std::min(usual, size_t(8192)));
      }
      CHECK(messages == 1001);
      CHECK(keys.size() == workers);
      CHECK(*keys.rbegin() == workers - 1);
      CHECK(first_values.size() == threads);
    }
  }
  CHECK(share_pings(10, 1, 1, 256, 7)[0].window == 7);
}

TEST_CASE("asks and tells add up on both sides") {
  Options options;
  options.engine = EngineKind::cpu;
  options.workers = 2;
  options.slot_bytes = 64;
  run_on_gyre(ping_actors(), options, "a stream", [](Runtime& runtime) {
    Client client = runtime.client();
    PingShare share = share_pings(300, 1, 2, 256, 0)[0];
    share.first_value = 1000;
    uint64_t answers = 0, values = 0;
    for (uint64_t i = 0; i < 300; ++i) {
      answers += gyre_bench::ping_answer(1000 + i);
      values += 1000 + i;
    }
    CHECK(ask_pings(client, share) == answers);
    CHECK(tell_counts(client, share) == values);
    const CountedInAll all = counted(client, {0, 1});
    CHECK(all.messages == 300);
    CHECK(all.sum == values);
    const OfferedLoad load = offer_pings(client, share, 1e6);
    CHECK(load.latency_ns.count() == 300);
    CHECK(load.seconds > 0);
  });
}

TEST_CASE("threads that run together all finish, and the first failure comes out") {
  std::atomic<int> warmed{0}, worked{0};
  const double seconds = run_together(
      3, [&](uint32_t) { ++warmed; }, [&](uint32_t) { worked += warmed == 3; });
  CHECK(seconds >= 0);
  CHECK(worked == 3);
  std::atomic<int> others{0};
  const auto failing = [&] {
    run_together(
        3,
        [](uint32_t t) {
          if (t == 1) throw Error("thread 1 could not");
        },
        [&](uint32_t) { ++others; });
  };
  CHECK_THROWS_WITH(failing(), "thread 1 could not");
  CHECK(others == 2);
}

}  // namespace
