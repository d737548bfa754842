// async_ask: asks by Boost.Asio's completion tokens. Compiled for both engines.
#include <utility>  // boost/asio/awaitable.hpp of Boost 1.74 does not include it, and needs it

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <gyre/runtime/async/asio.hpp>

#include <future>
#include <memory>
#include <thread>

#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace asio = boost::asio;

namespace {

using Outcome = Result<Reply<ProbeResponse>>;

#if defined(BOOST_ASIO_HAS_CO_AWAIT)
asio::awaitable<void> ask_in_turn(Client client, uint64_t count, uint64_t& sum) {
  for (uint64_t i = 0; i < count; ++i) {
    const Outcome outcome =
        co_await async_ask<ProbeRequest>(client, probe, asking(Action::ANSWER, i), asio::use_awaitable);
    if (!outcome) throw Error(outcome.error().message());
    sum += outcome.value()->getValue();
  }
}
#endif

}  // namespace

TEST_CASE("an Asio callback runs on its executor, which has work until then", "[gpu]") {
  asio::io_context loop;  // ended after the runtime, whose thread posts to it
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  std::vector<uint64_t> values;
  std::thread::id ran_on;
  for (uint64_t i = 0; i < 10; ++i) {
    async_ask<ProbeRequest>(client, probe, asking(Action::ANSWER, i),
                            asio::bind_executor(loop, [&, own = std::make_unique<int>(1)](Outcome outcome) {
                              ran_on = std::this_thread::get_id();
                              values.push_back(outcome.value()->getValue());
                            }));
  }
  loop.run();  // returns when all have come
  CHECK(values == std::vector<uint64_t>{1, 3, 5, 7, 9, 11, 13, 15, 17, 19});
  CHECK(ran_on == std::this_thread::get_id());
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("an Asio handler of a refused ask is not called by the function that asked", "[gpu]") {
  asio::io_context loop;  // ended after the runtime, whose thread posts to it
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  runtime.terminate();
  std::vector<Status> statuses;
  async_ask<ProbeRequest>(client, probe, asking(Action::ANSWER, 1),
                          asio::bind_executor(asio::make_strand(loop), [&](Outcome outcome) {
                            statuses.push_back(outcome ? Status::ok : outcome.error().status);
                          }));
  CHECK(statuses.empty());
  loop.run();
  CHECK(statuses == std::vector<Status>{Status::terminated});
}

TEST_CASE("use_future gives a future of the outcome", "[gpu]") {
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine());
  Client client = runtime.client();
  std::future<Outcome> asked =
      async_ask<ProbeRequest>(client, probe, asking(Action::ANSWER, 20), asio::use_future);
  std::future<Outcome> failing = async_ask<ProbeRequest>(
      client, probe, asking(Action::FAIL, 3), AskOptions{std::chrono::minutes(1), 0}, asio::use_future);
  CHECK(asked.get().value()->getValue() == 41);
  CHECK(failing.get().error().detail == 3);
}

#if defined(BOOST_ASIO_HAS_CO_AWAIT)
TEST_CASE("use_awaitable waits in a coroutine of Asio's", "[gpu]") {
  asio::io_context loop;  // ended after the runtime, whose thread posts to it
  Runtime runtime = Runtime::launch(probe_actors(), on_this_engine({.workers = 2}));
  uint64_t first = 0, second = 0;
  asio::co_spawn(loop, ask_in_turn(runtime.client(), 100, first), asio::detached);
  asio::co_spawn(loop, ask_in_turn(runtime.client(), 50, second), asio::detached);
  loop.run();
  CHECK(first == 100 * 100);
  CHECK(second == 50 * 50);
  CHECK(runtime.terminate().books.asks.answered == 150);
}
#endif

TEST_CASE("no room is an outcome: async_ask never waits for any") {
  asio::io_context loop;  // ended after the runtime, whose thread posts to it
  Stepped stepped({.slots = 4, .timeout = 60s});
  int answered = 0, refused = 0;
  for (uint64_t i = 0; i < 5; ++i) {
    async_ask<ProbeRequest>(*stepped.client, probe, asking(Action::ANSWER, i),
                            asio::bind_executor(loop, [&, i](Outcome outcome) {
                              if (outcome) {
                                answered += outcome.value()->getValue() == 2 * i + 1 ? 1 : 100;
                              } else {
                                refused += outcome.error().status == Status::ring_full ? 1 : 100;
                              }
                            }));
  }
  stepped.work();
  loop.run();
  CHECK(answered == 3);
  CHECK(refused == 2);
}
