// What a warp does at once with mailboxes, lane by lane on a CPU.
#include <gyre/bridge/mailbox.hpp>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/rounds.hpp"

namespace {

using namespace gyre;
using gyre_test::Fiber;
namespace warp = gyre_test::warp;
using Producer = MailboxProducer<HostMemory>;
using Consumer = MailboxConsumer<HostMemory>;

// Runs `body` in each lane, until it has returned in all.
void run_warp(std::function<void(uint32_t)> body) {
  static std::function<void(uint32_t)> running;
  running = std::move(body);
  warp::fibers.done = {};
  for (uint32_t lane = 0; lane < warp::lanes; ++lane) {
    warp::fibers.fiber[lane] = Fiber([] {
      running(warp::fibers.running);
      warp::fibers.done[warp::fibers.running] = true;
      warp::yield();
    });
  }
  while (!std::all_of(warp::fibers.done.begin(), warp::fibers.done.end() - 1, [](bool d) { return d; })) {
    warp::yield();
  }
}

}  // namespace

TEST_CASE("the lanes of a warp claim by one fetch-add a mailbox, in their order, as far as limits allow") {
  constexpr uint32_t workers = 70, allowance = 3;
  const RingShape shape{256, 64};
  std::mt19937 random(7);
  for (int round = 0; round < gyre_test::rounds(100); ++round) {
    std::vector<uint64_t> tails(workers * WorkerRings<HostMemory>::words_a_tail);
    std::vector<uint32_t> limits(workers * workers);
    const Mailboxes<HostMemory> mailboxes{{nullptr, tails.data(), shape}, limits.data(), workers, allowance};
    std::vector<Producer::Peer> peers(workers);
    uint32_t to[2][warp::lanes];
    bool has_one[2][warp::lanes];
    EachClaim claims[2][warp::lanes];
    const uint32_t reached = 1 + random() % 8;  // few: lanes meet in one mailbox
    for (int turn = 0; turn < 2; ++turn) {
      for (uint32_t lane = 0; lane < warp::lanes; ++lane) {
        to[turn][lane] = random() % reached * 9;
        has_one[turn][lane] = random() % 4 != 0;
      }
    }
    for (uint32_t k = 0; k < workers; ++k) tails[k * WorkerRings<HostMemory>::words_a_tail] = 1000 * k;
    run_warp([&](uint32_t lane) {
      Producer producer(mailboxes, 1, peers.data());
      producer.start(Warp{});
      for (int turn = 0; turn < 2; ++turn)
        claims[turn][lane] = claim_each(Warp{}, producer, has_one[turn][lane], to[turn][lane]);
    });
    std::vector<uint32_t> claimed(workers);
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<uint32_t> rank(workers);
      for (uint32_t lane = 0; lane < warp::lanes; ++lane) {
        const uint32_t k = to[turn][lane];
        const EachClaim& claim = claims[turn][lane];
        REQUIRE(claim.claimed == (has_one[turn][lane] && claimed[k] < allowance));
        if (!has_one[turn][lane]) continue;
        REQUIRE(claim.rank == rank[k]++);
        if (claim.claimed) REQUIRE(claim.ticket == 1000 * k + claimed[k]++);
      }
    }
    for (uint32_t k = 0; k < workers; ++k) {
      REQUIRE(tails[k * WorkerRings<HostMemory>::words_a_tail] == 1000 * k + claimed[k]);
      REQUIRE(peers[k].sent == claimed[k]);
    }
  }
}

TEST_CASE("a warp raises the limits of all that it owes one") {
  constexpr uint32_t workers = 70;
  std::vector<uint32_t> limits(workers * workers), owed(Consumer::owed_words(workers));
  std::vector<Consumer::Peer> peers(workers);
  uint32_t spare = 0;
  const Mailboxes<HostMemory> mailboxes{{nullptr, nullptr, {256, 64}}, limits.data(), workers, 2};
  run_warp([&](uint32_t lane) {
    Consumer consumer(mailboxes, 5, peers.data(), owed.data(), spare);
    consumer.start(Warp{});
    for (uint32_t k = lane; k < workers; k += warp::lanes) {
      if (k % 3 == 0 && consumer.take(k, 2)) consumer.owe(k);
    }
    consumer.give_back(Warp{});
    consumer.give_back(Warp{});
  });
  CHECK(spare == 256 - 2 * workers - 2 * 24);
  for (uint32_t k = 0; k < workers; ++k) {
    CHECK(limits[k * workers + 5] == (k % 3 == 0 ? 6 : 0));
    CHECK(peers[k].grant == (k % 3 == 0 ? 4 : 2));
  }
  for (const uint32_t word : owed) CHECK(word == 0);
}
