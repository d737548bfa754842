// Actors that send to each other, on workers that move one poll at a time.
#include <gyre_relay_actors_sources.hpp>
#include <support/actors/relay.official.hpp>

#include <memory>
#include <random>
#include <vector>

#include "support/actors/relay.hpp"
#include "support/catch.hpp"
#include "support/rounds.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_relay;

namespace {

ActorSet relays() { return ActorSet::of<Relay, Sink, Node>(gyre_relay_actors::sources); }

struct SteppedRelays {
  explicit SteppedRelays(uint32_t workers, Options with = {.slots = 64, .timeout = 5s}) : options(with) {
    options.workers = workers;
    auto made = std::make_unique<SteppedEngine>(relays(), options);
    engine = made.get();
    core = detail::make_core(relays(), options, std::move(made));
    client = std::make_unique<Client>(client_of(core));
  }
  ~SteppedRelays() { core->terminate(5s); }

  void burst(uint64_t relay, uint64_t sink, uint32_t stride, uint32_t count, uint32_t filler = 0,
             End end = End::WELL) {
    REQUIRE(client->tell<Burst>(Address<Relay>{relay}, [&](Burst::Builder burst) {
      burst.setSink(sink);
      burst.setStride(stride);
      burst.setCount(count);
      burst.setFiller(filler);
      burst.setEnd(end);
    }));
  }
  void hop(uint64_t relay, uint64_t sink, uint32_t stride, uint32_t hops) {
    REQUIRE(client->tell<Hop>(Address<Relay>{relay}, [&](Hop::Builder hop) {
      hop.setSink(sink);
      hop.setStride(stride);
      hop.setHops(hops);
    }));
  }
  // Until the worker has found nothing to do so often that it has published its counts.
  void work(uint32_t worker) {
    for (int nothing = 0; nothing < 16;) {
      nothing = engine->step(worker) == PollOutcome::nothing ? nothing + 1 : 0;
    }
  }
  void work_all(int rounds = 20) {
    for (int round = 0; round < rounds; ++round) {
      for (uint32_t worker = 0; worker < options.workers; ++worker) work(worker);
    }
  }
  void spread(uint64_t node, uint64_t number, uint32_t hops, uint32_t copies, uint32_t nodes, Graph graph) {
    REQUIRE(client->tell<Spread>(Address<Node>{node}, [&](Spread::Builder spread) {
      spread.setFrom(nodes);
      spread.setNumber(number);
      spread.setHops(hops);
      spread.setCopies(copies);
      spread.setNodes(nodes);
      spread.setGraph(graph);
    }));
  }
  // The sum over all workers, as they published it.
  MailStats mail() {
    MailStats all;
    for (uint32_t worker = 0; worker < options.workers; ++worker) {
      all.sent += line(worker).mail_sent;
      all.processed += line(worker).mail_processed;
      all.failed += line(worker).mail_failed;
      all.refused += line(worker).mail_refused;
    }
    return all;
  }
  // Until every message between actors has its outcome, or for long. A worker that is held finds nothing to
  // do, and goes on in the next pass.
  MailStats work_until_settled() {
    for (int passes = 0;; ++passes) {
      work_all(1);
      const MailStats all = mail();
      if (passes == 1000 || all.sent == all.processed + all.failed + all.refused) return all;
    }
  }
  // Steps until the sink has answered; returns how many it took.
  int count(uint64_t sink, uint64_t& notes, uint64_t& wrong) {
    auto future = client->ask<Count>(Address<Sink>{sink}, [](Count::Builder) {});
    int steps = 0;
    for (; !future.ready(); ++steps) engine->step(uint32_t(sink % options.workers));
    const auto reply = future.get();
    REQUIRE(reply);
    notes = reply.value()->getNotes();
    wrong = reply.value()->getWrong();
    return steps;
  }
  const WorkerLine& line(uint32_t worker) {
    return *Bridge::of(engine->region(), options.region_layout(relays().handlers().size()), worker)
                .worker_line;
  }

  Options options;
  SteppedEngine* engine = nullptr;
  std::shared_ptr<detail::Core> core;
  std::unique_ptr<Client> client;
};

}  // namespace

TEST_CASE(
    "messages that find no slot wait at their sender in order, which takes no more until they have left") {
  SteppedRelays relay(2);
  constexpr uint64_t granted = MailLayout::allowance, room = MailLayout::outbox_messages;
  constexpr uint64_t handled = (granted + room) / Relay::most, bursts = handled + 8;
  for (uint64_t n = 0; n < bursts; ++n) relay.burst(0, 1, 0, Relay::most);
  for (int i = 0; i < 200; ++i) relay.engine->step(0);
  CHECK(relay.engine->step(0) == PollOutcome::nothing);
  relay.work(0);  // publishes
  CHECK(relay.line(0).mail_sent == handled * Relay::most);
  CHECK(relay.core->stats().workers[0].mail.outbox_high_water == handled * Relay::most - granted);
  relay.work_all();
  uint64_t notes = 0, wrong = 0;
  relay.count(1, notes, wrong);
  CHECK(notes == bursts * Relay::most);
  CHECK(wrong == 0);
  relay.work_all(1);
  CHECK(relay.line(0).mail_sent == bursts * Relay::most);
  CHECK(relay.line(1).mail_processed == bursts * Relay::most);
  CHECK(relay.line(0).mail_refused == 0);
}

TEST_CASE("a worker reports how many messages lie in its mailbox, each 32 ms while it works") {
  SteppedRelays relay(2);
  const auto end = std::chrono::steady_clock::now() + 60s;
  const auto mail = [&] { return relay.core->stats().workers[1].mail; };
  uint64_t notes = 0;
  while (mail().depth_high_water == 0 && std::chrono::steady_clock::now() < end) {
    relay.burst(0, 1, 0, MailLayout::allowance);
    notes += MailLayout::allowance;
    for (int i = 0; i < 3; ++i) relay.engine->step(0);
    for (int i = 0; i < 3; ++i) relay.engine->step(1);
  }
  // What lay there before the step in which it reported.
  CHECK(mail().depth_high_water >= 1);
  CHECK(mail().depth_high_water <= MailLayout::allowance);
  relay.work_all(1);
  CHECK(mail().depth == 0);
  CHECK(mail().processed == notes);
}

TEST_CASE("a held worker keeps its mail while there is memory, and what finds none is counted as refused") {
  const bool has_memory = GENERATE(true, false);
  SteppedRelays relay(3, {.slots = 64, .timeout = 5s, .spill_bytes = has_memory ? uint64_t(16) << 20 : 0});
  // From worker 0 by 1 to 2, which does not move: worker 1 is held.
  constexpr uint64_t hops = 1000;
  for (uint64_t n = 0; n < hops; ++n) {
    relay.hop(0, 2, 1, 2);
    for (int i = 0; i < 40; ++i) relay.engine->step(uint32_t(i) % 2);
  }
  for (int i = 0; i < 5; ++i) {
    relay.work(0);
    relay.work(1);
  }
  CHECK(relay.line(0).mail_sent == hops);  // it is not held
  CHECK((relay.line(1).mail_refused == 0) == has_memory);
  if (has_memory) CHECK(relay.core->stats().workers[1].mail.spilled > 0);
  const MailStats mail = relay.work_until_settled();
  uint64_t notes = 0, wrong = 0;
  relay.count(2, notes, wrong);
  CHECK((mail.refused == 0) == has_memory);
  CHECK(notes == hops - mail.refused);
  CHECK(mail.sent == 3 * notes + mail.refused);  // to relays 1 and 2, and to the sink
  CHECK(mail.processed == 3 * notes);
}

TEST_CASE("messages to one worker do not wait for those to another") {
  SteppedRelays relay(3);
  // Worker 1 does not move: of these all but the first wait.
  for (uint64_t n = 0; n < 8; ++n) relay.burst(0, 1, 0, Relay::most);
  relay.burst(0, 2, 0, 1);
  relay.work(0);
  uint64_t notes = 0, wrong = 0;
  relay.work(2);
  relay.count(2, notes, wrong);
  CHECK(notes == 1);
  relay.work_all();
  relay.count(1, notes, wrong);
  CHECK(notes == 8 * Relay::most);
  CHECK(wrong == 0);
}

TEST_CASE("a host's message and mail each come in time, however much there is of the other") {
  SECTION("messages of a worker to itself without end") {
    SteppedRelays relay(1);
    relay.hop(0, 1, 1, 1'000'000);
    for (int i = 0; i < 100; ++i) relay.engine->step();
    uint64_t notes = 0, wrong = 0;
    CHECK(relay.count(0, notes, wrong) <= int(MailLimits::most_in_a_row) + 2);
  }
  SECTION("messages between two workers without end") {
    SteppedRelays relay(2);
    for (int n = 0; n < 40; ++n) relay.hop(uint64_t(n) % 64, 0, 1, 1'000'000);
    for (int i = 0; i < 1000; ++i) relay.engine->step(uint32_t(i) % 2);
    auto future = relay.client->ask<Count>(Address<Sink>{0}, [](Count::Builder) {});
    int steps = 0;
    for (; !future.ready(); ++steps) {
      relay.engine->step(0);
      relay.engine->step(1);
    }
    CHECK(steps <= 3 * (int(MailLimits::most_in_a_row) + 2));
    REQUIRE(future.get());
  }
  SECTION("messages to itself and of another worker without end") {
    SteppedRelays relay(2);
    relay.hop(0, 1, 2, 1'000'000);  // relays 0, 2, …: all on worker 0
    for (int n = 0; n < 40; ++n) relay.hop(1, 1, 1, 1'000'000);
    for (int i = 0; i < 1000; ++i) relay.engine->step(uint32_t(i) % 2);
    for (int ask = 0; ask < 20; ++ask) {
      auto future = relay.client->ask<Count>(Address<Sink>{0}, [](Count::Builder) {});
      int steps = 0;
      for (; !future.ready(); ++steps) {
        relay.engine->step(1);
        relay.engine->step(0);
      }
      CHECK(steps <= int(MailLimits::most_in_a_row) + 2);
      REQUIRE(future.get());
    }
  }
  SECTION("messages of the host without end") {
    SteppedRelays relay(2);
    relay.burst(1, 0, 0, 1);
    relay.work(1);
    auto ask = [&] { return relay.client->ask<Count>(Address<Sink>{0}, [](Count::Builder) {}); };
    std::vector<decltype(ask())> futures;
    uint64_t answered = 0;
    for (; relay.line(0).mail_processed == 0 && answered < 200; ++answered) {
      while (futures.size() < answered + 8) futures.push_back(ask());
      while (!futures[answered].ready()) relay.engine->step(0);
      const auto reply = futures[answered].get();
      REQUIRE(reply);
      if (reply.value()->getNotes() == 1) break;
    }
    CHECK(answered <= 2 * MailLimits::most_in_a_row);
    while (!futures.back().ready()) relay.engine->step(0);
  }
}

TEST_CASE("messages that were sent are processed, failed or still under way, in any order of steps") {
  std::mt19937_64 random(73);
  for (int round = 0; round < rounds(30); ++round) {
    const auto workers = uint32_t(1 + random() % 5);
    SteppedRelays relay(workers);
    std::vector<uint64_t> expected(most_sinks);
    for (int turn = 0; turn < 200; ++turn) {
      const uint64_t sink = random() % 8;
      const auto stride = uint32_t(random() % 2), count = uint32_t(random() % (Relay::most + 1));
      const bool fails = random() % 4 == 0;
      relay.burst(random() % 8, sink, stride, count, uint32_t(random() % 30),
                  fails ? End::FAIL_ALL : End::WELL);
      if (!fails) {
        for (uint32_t i = 0; i < count; ++i) ++expected[sink + i * stride];
      }
      // Some workers lag.
      for (uint64_t steps = random() % 40; steps != 0; --steps) {
        relay.engine->step(uint32_t(random() % workers * (random() % 3 != 0)));
      }
    }
    relay.work_all();
    uint64_t sent = 0, processed = 0, failed = 0, refused = 0, all = 0;
    for (uint64_t sink = 0; sink < most_sinks; ++sink) {
      uint64_t notes = 0, wrong = 0;
      relay.count(sink, notes, wrong);
      INFO("round " << round << ", " << workers << " workers, sink " << sink);
      all += expected[sink];
      CHECK(wrong == 0);
      CHECK(notes == expected[sink]);
    }
    relay.work_all(1);
    for (uint32_t worker = 0; worker < workers; ++worker) {
      sent += relay.line(worker).mail_sent;
      processed += relay.line(worker).mail_processed;
      failed += relay.line(worker).mail_failed;
      refused += relay.line(worker).mail_refused;
    }
    CHECK(sent == all);
    CHECK(processed == all);
    CHECK(failed == 0);
    CHECK(refused == 0);
  }
}

TEST_CASE("a message that its receiver refuses is counted as failed") {
  SteppedRelays relay(2, {.slots = 64, .timeout = 5s, .actors_per_worker = 2});
  // Sinks 1, 3, 5 of worker 1, which has room for two.
  relay.burst(0, 1, 2, 3);
  relay.work_all(2);
  CHECK(relay.line(0).mail_sent == 3);
  CHECK(relay.line(1).mail_processed == 2);
  CHECK(relay.line(1).mail_failed == 1);
}

TEST_CASE("actors that send more than they receive come to an end on any graph, and nothing is lost") {
  std::mt19937_64 random(74);
  for (int round = 0; round < rounds(200); ++round) {
    const auto workers = uint32_t(1 + random() % 6), nodes = uint32_t(1 + random() % Node::most);
    const auto graph = Graph(random() % 5);
    const auto copies = uint32_t(1 + random() % Node::most_copies);
    // Without memory for what waits, messages may be refused.
    const bool may_refuse = random() % 3 == 0;
    SteppedRelays relay(
        workers,
        {.slots = 64, .slot_bytes = 128, .timeout = 5s, .spill_bytes = may_refuse ? 0 : uint64_t(4) << 20});
    INFO("round " << round << ": " << workers << " workers, " << nodes << " nodes, graph " << int(graph)
                  << ", " << copies << " copies" << (may_refuse ? ", no memory" : ""));
    std::vector<uint64_t> begun(nodes);
    uint64_t visits = 0;
    for (uint64_t n = random() % 8 + 1; n != 0; --n) {
      const uint64_t node = random() % nodes;
      uint64_t hops = 0, in_all = 1;
      for (uint64_t of_hop = copies; in_all + of_hop < 600 && hops < 60; of_hop *= copies, ++hops)
        in_all += of_hop;
      relay.spread(node, begun[node]++, uint32_t(hops), copies, nodes, graph);
      visits += in_all;
      for (uint64_t steps = random() % 200; steps != 0; --steps) {
        relay.engine->step(uint32_t(random() % workers * (random() % 3 != 0)));
      }
    }
    const MailStats mail = relay.work_until_settled();
    CHECK(mail.sent == mail.processed + mail.refused);
    CHECK(mail.failed == 0);
    uint64_t visited = 0, missing = 0;
    for (uint64_t node = 0; node < nodes; ++node) {
      auto future = relay.client->ask<Count>(Address<Node>{node}, [](Count::Builder) {});
      while (!future.ready()) relay.engine->step(uint32_t(node % workers));
      const auto reply = future.get();
      REQUIRE(reply);
      visited += reply.value()->getVisits();
      missing += reply.value()->getMissing();
      CHECK(reply.value()->getWrong() == 0);
    }
    uint64_t by_host = 0;
    for (const uint64_t n : begun) by_host += n;
    CHECK(visited == mail.processed + by_host);
    CHECK(missing <= mail.refused);
    if (!may_refuse) {
      CHECK(mail.refused == 0);
      CHECK(visited == visits);
    }
  }
}
