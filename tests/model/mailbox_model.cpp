// The mailboxes' own source under a model checker: packets order nothing; what orders anything is in
// mailbox.hpp.
#include <gyre/bridge/mailbox.hpp>

#include "model/model_memory.hpp"

namespace {

using gyre::MailboxConsumer;
using gyre::Mailboxes;
using gyre::MailboxProducer;
using gyre::Packet;
using gyre::ReceiveOutcome;
using gyre::ReplyRing;
using gyre::RingShape;
using gyre::SingleThread;
using gyre::WorkerRings;
using gyre_test::holds;
using gyre_test::ModelMemory;

// The words of a message that is an envelope and 16 bytes of body, or none.
void fill(uint32_t (&payload)[12], uint32_t from, uint32_t number, uint32_t body_bytes) {
  const gyre::Envelope envelope{number, body_bytes, 0, from, 0, 0, 0, 0, 0};
  std::memcpy(payload, &envelope, sizeof envelope);
  for (uint32_t w = 0; w < body_bytes / 4; ++w) payload[8 + w] = from * 100 + number * 10 + w;
}
gyre::Envelope checked(const uint32_t (&payload)[12]) {
  gyre::Envelope envelope;
  std::memcpy(&envelope, payload, sizeof envelope);
  for (uint32_t w = 0; w < envelope.body_bytes / 4; ++w) {
    RL_ASSERT(payload[8 + w] == uint32_t(envelope.key) * 100 + uint32_t(envelope.correlation) * 10 + w);
  }
  return envelope;
}
void clear(ModelMemory::Cell* cells, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) cells[i].store(Packet{{0, 0, 0}, 0}, rl::mo_relaxed, RL_INFO);
}

// Worker 0 takes what workers 1 and 2 send: laps that pass 2^32, each message once, whole, in its producer's
// order, none overwritten before it was taken. Each is granted a slot at first; one slot is spare, and the
// first to use up its grant gets it. `deferred`: limits are raised later than a message is taken.
template <bool deferred>
struct MailboxModel : rl::test_suite<MailboxModel<deferred>, 3> {
  static constexpr uint32_t workers = 3, slots = 4, each = 4;

  ModelMemory::Cell cells[slots * 4];  // worker 0's
  ModelMemory::Word tails[1];
  ModelMemory::Word32 limits[workers * workers];
  Mailboxes<ModelMemory> mailboxes;
  // Written by the consumer after it took the ticket's message: the producer that uses the slot next must
  // come after that, by limits and tail alone.
  rl::var<uint32_t> taken[2 * each];

  void before() {
    clear(cells, slots * 4);
    tails[0].store(0, rl::mo_relaxed, RL_INFO);
    for (auto& limit : limits) limit.store(0, rl::mo_relaxed, RL_INFO);
    mailboxes = {{cells, tails, RingShape{slots, 64, (uint64_t(1) << 32) - 2}}, limits, workers, 1};
  }
  void thread(unsigned index) { index == 0 ? consume() : produce(index); }

  void produce(uint32_t me) {
    MailboxProducer<ModelMemory>::Peer peers[workers];
    MailboxProducer<ModelMemory> producer(mailboxes, me, peers);
    producer.start(SingleThread{});
    for (uint32_t i = 0; i < each;) {
      rl::backoff wait;
      uint32_t room;
      while ((room = producer.room(0, i == 0 ? 1 : 2)) == 0) wait.yield(RL_INFO);
      if (room > each - i) room = each - i;
      const uint64_t first = producer.claim(0, room);
      for (uint64_t ticket = first; ticket < first + room; ++ticket, ++i) {
        if (ticket >= slots) RL_ASSERT(taken[ticket - slots](RL_INFO) == 1);  // and no data race
        uint32_t payload[12] = {};
        const uint32_t body_bytes = i % 2 == 0 ? 16 : 0;  // four packets, then three: one is left stale
        fill(payload, me, i, body_bytes);
        gyre::publish<ModelMemory>(SingleThread{}, cells, mailboxes.rings.shape, ticket, payload, body_bytes);
      }
    }
  }

  void consume() {
    MailboxConsumer<ModelMemory>::Peer peers[workers];
    uint32_t owed[1], spare, next[workers] = {};
    MailboxConsumer<ModelMemory> consumer(mailboxes, 0, peers, owed, spare);
    consumer.start(SingleThread{});
    for (uint64_t ticket = 0; ticket < 2 * each;) {
      uint32_t payload[12];
      rl::backoff wait;
      while (gyre::receive<ModelMemory>(cells, mailboxes.rings.shape, ticket, payload) !=
             ReceiveOutcome::message) {
        consumer.give_back(SingleThread{});
        wait.yield(RL_INFO);
      }
      const gyre::Envelope envelope = checked(payload);
      const auto from = uint32_t(envelope.key);
      RL_ASSERT((from == 1 || from == 2) && envelope.correlation == next[from]);
      RL_ASSERT(envelope.body_bytes == (next[from] % 2 == 0 ? 16u : 0u));
      ++next[from];
      taken[ticket](RL_INFO) = 1;
      ++ticket;
      if (consumer.take(from, 1)) deferred ? consumer.owe(from) : consumer.raise(from);
      uint32_t held = spare;
      for (const auto& peer : peers) {
        RL_ASSERT(peer.left <= peer.grant);
        held += peer.grant;
      }
      RL_ASSERT(held == slots && spare <= slots);
    }
  }
};

// Worker 0 asks the two others, with at most two asks open, and they answer into its reply ring of two slots.
// An ask is one packet of relaxed memory, which orders nothing, as a message is.
struct ReplyModel : rl::test_suite<ReplyModel, 3> {
  static constexpr uint32_t slots = 2, asks = 4;

  ModelMemory::Cell cells[slots * 4];
  ModelMemory::Word tails[1];
  ModelMemory::Cell sent[asks];  // of worker 1 + i % 2
  WorkerRings<ModelMemory> replies;
  rl::var<uint32_t> taken[asks];  // as in MailboxModel

  void before() {
    clear(cells, slots * 4);
    clear(sent, asks);
    tails[0].store(0, rl::mo_relaxed, RL_INFO);
    replies = {cells, tails, RingShape{slots, 64, (uint64_t(1) << 32) - 1}};
  }
  void thread(unsigned index) { index == 0 ? ask() : answer(index); }

  void ask() {
    ReplyRing<ModelMemory> ring(replies, 0);
    bool answered[asks] = {};
    for (uint32_t asked = 0, done = 0; done < asks;) {
      for (; asked < asks && asked - done < slots; ++asked)
        ModelMemory::store(sent[asked], Packet{{asked, 0, 0}, 1});
      uint32_t payload[12];
      rl::backoff wait;
      while (gyre::receive<ModelMemory>(cells, replies.shape, ring.head(), payload) !=
             ReceiveOutcome::message)
        wait.yield(RL_INFO);
      const auto i = uint32_t(checked(payload).correlation);
      RL_ASSERT(i < asked && !answered[i]);
      answered[i] = true;
      taken[ring.head()](RL_INFO) = 1;
      ring.advance();
      ++done;
    }
  }
  void answer(uint32_t me) {
    for (uint32_t i = me - 1; i < asks; i += 2) {
      rl::backoff wait;
      while (ModelMemory::load(sent[i]).stamp != 1) wait.yield(RL_INFO);
      const uint64_t ticket = replies.claim_reply(0);
      if (ticket >= slots) RL_ASSERT(taken[ticket - slots](RL_INFO) == 1);  // and no data race
      uint32_t payload[12] = {};
      fill(payload, me, i, 16);
      gyre::publish<ModelMemory>(SingleThread{}, cells, replies.shape, ticket, payload, 16);
    }
  }
};

}  // namespace

int main() {
  const bool at_once = holds<MailboxModel<false>>("a mailbox of two producers", 200'000);
  const bool deferred = holds<MailboxModel<true>>("the same, limits raised later", 200'000);
  const bool replies = holds<ReplyModel>("a reply ring of two repliers", 200'000);
  return at_once && deferred && replies ? 0 : 1;
}
