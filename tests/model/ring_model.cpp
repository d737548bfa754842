// The ring's own source under a model checker: packets order nothing; what orders anything is in ring.hpp.
#include <gyre/bridge/ring.hpp>

#include "model/model_memory.hpp"

namespace {

using gyre::ClaimOutcome;
using gyre::Packet;
using gyre::ReceiveOutcome;
using gyre::RingShape;
using gyre::SingleThread;
using gyre_test::holds;
using gyre_test::ModelMemory;

// Two producers, a consumer, a ring of two slots of four packets, laps that pass 2^32: the second stamps
// whole slots, and the third comes after it. Every message must arrive once, whole, in its producer's order;
// none may be overwritten before it was read (its content says so).
constexpr uint32_t producers = 2, each = 3;
constexpr RingShape shape{2, 64, (uint64_t(1) << 32) - 1};

struct RingModel : rl::test_suite<RingModel, producers + 1> {
  ModelMemory::Cell cells[2 * 4];
  ModelMemory::Word credit;
  gyre::TicketClaim<ModelMemory>* claim;
  // Written by the consumer after it read the ticket's slot: the producer that uses the slot next must be
  // ordered after that, by the credit alone.
  rl::var<uint32_t> read[producers * each];

  void before() {
    for (auto& cell : cells) cell.store(Packet{{0, 0, 0}, 0}, rl::mo_relaxed, RL_INFO);
    credit.store(0, rl::mo_relaxed, RL_INFO);
    claim = new gyre::TicketClaim<ModelMemory>(credit, shape.slots);
  }
  void after() { delete claim; }

  void thread(unsigned index) { index < producers ? produce(index) : consume(); }

  void produce(uint32_t producer) {
    for (uint32_t i = 0; i < each; ++i) {
      uint64_t ticket = 0;
      rl::backoff wait;
      while (claim->try_claim(ticket) != ClaimOutcome::claimed) wait.yield(RL_INFO);
      if (ticket >= shape.slots) RL_ASSERT(read[ticket - shape.slots](RL_INFO) == 1);  // and no data race
      const uint32_t body_bytes = i % 2 == 0 ? 16 : 0;  // four packets, then three: one is left stale
      uint32_t payload[12] = {};
      const gyre::Envelope envelope{i, body_bytes, 0, producer, 0, 0, 0, 0, 0};
      std::memcpy(payload, &envelope, sizeof envelope);
      for (uint32_t w = 0; w < body_bytes / 4; ++w) payload[8 + w] = producer * 100 + i * 10 + w;
      gyre::publish<ModelMemory>(SingleThread{}, cells, shape, ticket, payload, body_bytes);
    }
  }

  void consume() {
    gyre::CreditPublisher<ModelMemory> credits(credit, shape.slots);
    uint32_t next[producers] = {};
    for (uint64_t ticket = 0; ticket < producers * each;) {
      uint32_t payload[12];
      rl::backoff wait;
      while (gyre::receive<ModelMemory>(cells, shape, ticket, payload) != ReceiveOutcome::message) {
        wait.yield(RL_INFO);
      }
      gyre::Envelope envelope;
      std::memcpy(&envelope, payload, sizeof envelope);
      const auto producer = uint32_t(envelope.key), i = uint32_t(envelope.correlation);
      RL_ASSERT(producer < producers && i == next[producer]);
      RL_ASSERT(envelope.body_bytes == (i % 2 == 0 ? 16u : 0u));
      for (uint32_t w = 0; w < envelope.body_bytes / 4; ++w)
        RL_ASSERT(payload[8 + w] == producer * 100 + i * 10 + w);
      ++next[producer];
      read[ticket](RL_INFO) = 1;
      ++ticket;
      if (credits.due(ticket)) credits.publish(ticket);
    }
  }
};

// A producer and a closer: what was claimed before close is below the final count, and nothing is claimed
// after.
struct CloseModel : rl::test_suite<CloseModel, 3> {
  ModelMemory::Word credit;
  gyre::TicketClaim<ModelMemory>* claim;
  rl::atomic<uint32_t> granted;
  uint64_t final_count = 0;

  void before() {
    credit.store(0, rl::mo_relaxed, RL_INFO);
    granted.store(0, rl::mo_relaxed, RL_INFO);
    claim = new gyre::TicketClaim<ModelMemory>(credit, 8);
  }
  void after() {
    RL_ASSERT(granted.load(rl::mo_relaxed, RL_INFO) == claim->claimed());
    RL_ASSERT(final_count == claim->claimed());
    delete claim;
  }
  void thread(unsigned index) {
    if (index == 2) {
      claim->close();
      final_count = claim->claimed();
      return;
    }
    for (int i = 0; i < 2; ++i) {
      uint64_t ticket;
      if (claim->try_claim(ticket) == ClaimOutcome::claimed) granted.fetch_add(1, rl::mo_relaxed, RL_INFO);
    }
  }
};

}  // namespace

int main() {
  const bool ring = holds<RingModel>("ring, two producers and a consumer", 200'000);
  const bool close = holds<CloseModel>("closing while two producers claim", 200'000);
  return ring && close ? 0 : 1;
}
