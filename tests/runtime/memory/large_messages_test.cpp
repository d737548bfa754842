// Messages larger than a slot, on either engine.
#include <gyre/gyre.hpp>
#include <gyre/runtime/elements.hpp>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

Runtime launch_probe(Options options = {}) {
  options = gyre_test::on_this_engine(options);
  return Runtime::launch(probe_actors(), options);
}

auto echoing(uint32_t words, uint64_t first, Action action = Action::ECHO, uint64_t argument = 0) {
  return [=](ProbeRequest::Builder request) {
    request.setAction(action);
    request.setArgument(argument);
    auto filler = request.initFiller(words);
    for (uint32_t i = 0; i < words; ++i) filler.set(i, first + i);
  };
}

bool right(const Result<Reply<ProbeResponse>>& reply, uint32_t words, uint64_t first) {
  if (!reply) return false;
  const auto filler = reply.value()->getFiller();
  if (filler.size() != words) return false;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < words; ++i) {
    if (filler[i] != first + i) return false;
    sum += first + i;
  }
  return reply.value()->getValue() == sum;
}

}  // namespace

TEST_CASE("requests and replies of every size from a slot's to a million words come back whole",
          "[gpu][unified]") {
  Runtime runtime = launch_probe({.block = 64, .timeout = std::chrono::seconds(60)});
  Client client = runtime.client();
  for (const uint32_t words :
       {0u, 1u, 39u, 40u, 41u, 42u, 43u, 44u, 100u, 127u, 128u, 129u, 1000u, 8192u, 100'001u, 1u << 20}) {
    CHECK(right(client.ask<ProbeRequest>(probe, echoing(words, words)).get(), words, words));
  }
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("lists that are set as a whole arrive as if each element had been set, small ones and large",
          "[gpu][unified]") {
  Runtime runtime = launch_probe({.block = 64, .timeout = std::chrono::seconds(60)});
  Client client = runtime.client();
  const auto asking = [](const std::vector<uint64_t>& words) {
    return [&words](ProbeRequest::Builder request) {
      request.setAction(Action::ECHO);
      set_elements(request.initFiller(uint32_t(words.size())), std::span(words));
    };
  };
  for (int round = 0; round < 2; ++round) {
    for (const uint32_t count : {0u, 1u, 41u, 100u, 8191u, 8192u, 8193u, 100'001u, 1u << 20}) {
      std::vector<uint64_t> words(count), got(count, 1);
      for (uint32_t i = 0; i < count; ++i) words[i] = uint64_t(i + 1 + uint32_t(round)) * 0x9e3779b97f4a7c15;
      auto future = client.ask<ProbeRequest>(probe, asking(words));
      const std::vector<uint64_t> sent = std::exchange(words, {});  // it is sent: what it was made of may go
      const auto reply = future.get();
      REQUIRE(reply);
      REQUIRE(reply.value()->getFiller().size() == count);
      get_elements(reply.value()->getFiller(), std::span(got));
      CHECK(got == sent);
      // The next message begins with zeroed memory again.
      CHECK(right(client.ask<ProbeRequest>(probe, echoing(count, 5)).get(), count, 5));
    }
  }
  // Of a batch with one large message in the middle.
  const std::vector<uint64_t> large(20'000, 77);
  std::vector<Future<Reply<ProbeResponse>>> futures(5);
  client.ask_many<ProbeRequest>(probe, std::span(futures), [&](size_t i, ProbeRequest::Builder request) {
    if (i == 2) return asking(large)(request);
    echoing(uint32_t(i), i)(request);
  });
  for (size_t i = 0; i < futures.size(); ++i) {
    const auto reply = futures[i].get();
    if (i != 2) {
      CHECK(right(reply, uint32_t(i), i));
      continue;
    }
    REQUIRE(reply);
    std::vector<uint64_t> got(large.size());
    get_elements(reply.value()->getFiller(), std::span(got));
    CHECK(got == large);
  }
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a list that is set as a whole by a span of another length is refused, and nothing is sent") {
  Runtime runtime = launch_probe({.block = 32});
  Client client = runtime.client();
  const std::vector<uint64_t> words(10'000);
  CHECK_THROWS_WITH(client.ask<ProbeRequest>(probe,
                                             [&](ProbeRequest::Builder request) {
                                               set_elements(request.initFiller(9'999), std::span(words));
                                             }),
                    containing("setting the elements of a list: the list has 9999, and the span 10000"));
  // A fill function that fails behind a list that was set leaves nothing of it.
  CHECK_THROWS_AS(client.ask<ProbeRequest>(probe,
                                           [&](ProbeRequest::Builder request) {
                                             set_elements(request.initFiller(10'000), std::span(words));
                                             throw 7;
                                           }),
                  int);
  CHECK(right(client.ask<ProbeRequest>(probe, echoing(10'000, 3)).get(), 10'000, 3));
  const auto books = runtime.terminate().books;
  CHECK(books.balanced());
  CHECK(books.asks.accepted == 1);
}

TEST_CASE("large messages of four threads, many in flight and between small ones, are each the one asked for",
          "[gpu][unified]") {
  Runtime runtime =
      launch_probe({.workers = 3, .slots = 16, .timeout = std::chrono::seconds(60), .arena_bytes = 4 << 20});
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t, client = runtime.client()]() mutable {
      struct Asked {
        Future<Reply<ProbeResponse>> future;
        uint32_t words;
        uint64_t first;
      };
      std::vector<Asked> asked;
      for (uint64_t i = 0; i < 1500; ++i) {
        const auto words = uint32_t((i * 7 + t * 13) % (i % 50 == 0 ? 20'000 : 400));
        const uint64_t first = t << 40 | i << 20;
        asked.push_back({client.ask<ProbeRequest>(Address<Probe>{i}, echoing(words, first)), words, first});
        if (asked.size() == 4) {
          for (Asked& one : asked) wrong += !right(one.future.get(), one.words, one.first);
          asked.clear();
        }
      }
      for (Asked& one : asked) wrong += !right(one.future.get(), one.words, one.first);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  const Books books = runtime.terminate().books;
  CHECK(books.asks.answered == 4 * 1500);
  CHECK(books.balanced());
}

TEST_CASE("large tells in a small arena wait for room and are all processed", "[gpu][unified]") {
  Runtime runtime = launch_probe({.slots = 16, .timeout = std::chrono::seconds(60), .arena_bytes = 64 << 10});
  Client client = runtime.client();
  uint64_t sum = 0;
  for (uint64_t round = 0; round < 2000; ++round) {
    REQUIRE(client.tell<ProbeNote>(probe, [&](ProbeNote::Builder note) {
      auto filler = note.initFiller(500);
      for (uint32_t i = 0; i < 500; ++i) filler.set(i, round + i);
    }));
    for (uint64_t i = 0; i < 500; ++i) sum += round + i;
  }
  CHECK(client.ask<ProbeRequest>(probe, asking(Action::SUM_OF_NOTES, 0)).get().value()->getValue() == sum);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a handler that fails in its last thread alone leaves nothing of its response behind",
          "[gpu][unified]") {
  Runtime runtime = launch_probe({.block = 128, .timeout = std::chrono::seconds(60)});
  Client client = runtime.client();
  for (uint64_t round = 1; round <= 50; ++round) {
    for (const uint32_t words : {30u, 3000u}) {
      const auto failed =
          client.ask<ProbeRequest>(probe, echoing(words, ~uint64_t(0) - words, Action::FAIL_ALONE, round))
              .get();
      REQUIRE_FALSE(failed);
      CHECK(failed.error().status == Status::handler_failed);
      CHECK(failed.error().detail == round);
      // Had anything been left, the zeros of these would not be zeros.
      const auto grown = client.ask<ProbeRequest>(probe, asking(Action::ANSWER, round)).get();
      REQUIRE(grown);
      CHECK(grown.value()->getFiller().size() == 0);
      CHECK(grown.value()->getValue() == 2 * round + 1);
      CHECK(right(client.ask<ProbeRequest>(probe, echoing(words, round)).get(), words, round));
    }
  }
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("terminate beside large messages in flight completes them all", "[gpu][unified]") {
  for (int round = 0; round < 5; ++round) {
    Runtime runtime = launch_probe({.workers = 2, .slots = 16, .timeout = std::chrono::seconds(60)});
    Client client = runtime.client();
    std::vector<Future<Reply<ProbeResponse>>> asks;
    for (uint64_t i = 0; i < 24; ++i)
      asks.push_back(client.ask<ProbeRequest>(Address<Probe>{i}, echoing(20'000, i)));
    const Termination report = runtime.terminate();
    CHECK(report.books.balanced());
    for (uint64_t i = 0; i < asks.size(); ++i) {
      const auto reply = asks[i].get();
      if (reply) {
        CHECK(right(reply, 20'000, i));
      } else {
        CHECK(reply.error().status == Status::terminated);
      }
    }
  }
}
