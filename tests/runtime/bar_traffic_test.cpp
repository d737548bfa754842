// Messages of every length that a slot holds over BAR, from more threads than take turns quietly, every word
// of every reply checked. Compiled twice: for the fake driver, and for a GPU, which may have no BAR: then the
// case is skipped.
#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/stepped.hpp"
#if defined(GYRE_TEST_FAKE_VULKAN)
#include "support/fake_driver.hpp"
#include "support/fake_vulkan.hpp"
#include "support/without_nvrtc.hpp"
#endif

using namespace gyre;
using namespace gyre_test;

namespace {

constexpr uint32_t producers = 4, in_flight = 16;

// Asks `each` times with lists of random lengths that depend on `seed`, `in_flight` at a time, giving up the
// processor now and then. How many replies were wrong.
uint64_t wrong_replies(Client client, uint32_t seed, uint32_t each, uint32_t most_words) {
  struct Sent {
    uint64_t first;
    uint32_t words;
    Future<Reply<ProbeResponse>> future;
  };
  std::deque<Sent> sent;
  std::minstd_rand random(seed + 1);
  uint64_t wrong = 0;
  const auto take = [&] {
    Sent oldest = std::move(sent.front());
    sent.pop_front();
    const auto reply = oldest.future.get();
    if (!reply || reply.value()->getFiller().size() != oldest.words) {
      ++wrong;
      return;
    }
    uint64_t sum = 0;
    bool same = true;
    const auto filler = reply.value()->getFiller();
    for (uint32_t k = 0; k < oldest.words; ++k) {
      const uint64_t word = oldest.first * 0x9e3779b97f4a7c15ull + k;
      same = same && filler[k] == word;
      sum += word;
    }
    wrong += !same || reply.value()->getValue() != sum;
  };
  for (uint32_t i = 0; i < each; ++i) {
    const uint64_t first = uint64_t(seed) << 32 | i;
    const uint32_t words = uint32_t(random()) % (most_words + 1);
    sent.push_back(
        {first, words,
         client.ask<ProbeRequest>(Address<Probe>{random() % 4}, [&](ProbeRequest::Builder request) {
           request.setAction(Action::ECHO);
           auto filler = request.initFiller(words);
           for (uint32_t k = 0; k < words; ++k) {
             filler.set(k, first * 0x9e3779b97f4a7c15ull + k);
           }
         })});
    if (random() % 3 == 0) std::this_thread::yield();
    while (sent.size() >= in_flight) take();
  }
  while (!sent.empty()) take();
  return wrong;
}

// Whether a launch was refused because this machine has no BAR. The fake machine has it; and BAR that is
// there and fails its own test is a failure of Gyre or of the machine.
bool bar_is_missing(const std::string& refusal) {
#if defined(GYRE_TEST_FAKE_VULKAN)
  (void)refusal;
  return false;
#else
  return refusal.find("testing device memory that the host writes") == std::string::npos;
#endif
}

}  // namespace

TEST_CASE(
    "over BAR messages of every length from four threads, more of them than processors, come back as sent",
    "[gpu]") {
#if defined(GYRE_TEST_FAKE_VULKAN)
  if (without_nvrtc()) return;
  const FakeDriver driver({probe_actors()});
  const FakeVulkan vulkan;
#endif
  for (const uint32_t workers : {1u, 2u}) {
    const uint32_t slots = workers == 1 ? 8 : 64;  // a ring in one piece, and one of pages
    std::optional<Runtime> runtime;
    try {
      runtime.emplace(Runtime::launch(probe_actors(), {.engine = EngineKind::cuda,
                                                       .transport = TransportKind::bar,
                                                       .isolation = Isolation::in_process,
                                                       .workers = workers,
                                                       .slots = slots,
                                                       .timeout = 60s,
                                                       .first_lap = 0x10000 - 50}));
    } catch (const EngineUnavailable& error) {
      INFO(error.what());
      REQUIRE(bar_is_missing(error.what()));
      return skip(error.what());
    }
    // A request is 5 words and its list; a slot's body holds 44.
    const uint32_t most_words = runtime->options().ring_shape().body_capacity() / 8 - 5;
    const uint32_t threads = std::max(producers, 2 * std::thread::hardware_concurrency());
    std::atomic<uint64_t> wrong{0};
    std::vector<std::thread> beside;
    for (uint32_t n = 0; n < threads; ++n) {
      beside.emplace_back([&, n] {
        wrong += wrong_replies(runtime->client(), n, GYRE_TEST_BAR_MESSAGES / threads, most_words);
      });
    }
    for (std::thread& thread : beside) thread.join();
    CHECK(wrong == 0);
    const Termination report = runtime->terminate();
    CHECK(report.books.balanced());
    CHECK(report.books.asks.answered == uint64_t(GYRE_TEST_BAR_MESSAGES / threads) * threads);
  }
}
