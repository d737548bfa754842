#include <gyre/bridge/mailbox.hpp>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/rounds.hpp"

using namespace gyre;

namespace {

using Producer = MailboxProducer<HostMemory>;
using Consumer = MailboxConsumer<HostMemory>;

// The memory of `workers` mailboxes, and of as many reply rings.
struct Memories {
  Memories(uint32_t workers, uint32_t allowance, RingShape mail_shape, RingShape reply_shape = {2, 64})
      : mail(workers * mail_shape.slots * mail_shape.packets()),
        replies(workers * reply_shape.slots * reply_shape.packets()),
        tails(2 * workers * words_a_tail),
        limits(workers * workers),
        mailboxes{{mail.data(), tails.data(), mail_shape}, limits.data(), workers, allowance},
        reply_rings{replies.data(), tails.data() + workers * words_a_tail, reply_shape} {}

  static constexpr uint32_t words_a_tail = WorkerRings<HostMemory>::words_a_tail;
  std::vector<Packet> mail, replies;
  std::vector<uint64_t> tails;
  std::vector<uint32_t> limits;
  Mailboxes<HostMemory> mailboxes;
  WorkerRings<HostMemory> reply_rings;
};

// Both sides of one worker.
struct BothSides {
  BothSides(const Mailboxes<HostMemory>& mailboxes, uint32_t me)
      : to(mailboxes.workers),
        from(mailboxes.workers),
        owed(Consumer::owed_words(mailboxes.workers)),
        producer(mailboxes, me, to.data()),
        consumer(mailboxes, me, from.data(), owed.data(), spare) {
    producer.start(SingleThread{});
    consumer.start(SingleThread{});
  }
  uint32_t held() const {
    uint32_t slots = spare;
    for (const Consumer::Peer& peer : from) slots += peer.grant;
    return slots;
  }

  std::vector<Producer::Peer> to;
  std::vector<Consumer::Peer> from;
  std::vector<uint32_t> owed;
  uint32_t spare = 0;
  Producer producer;
  Consumer consumer;
};

// Sends and takes `n` messages from `producer` to worker `to` as books alone, one at a time.
void pass(BothSides& producer, BothSides& consumer, uint32_t from, uint32_t to, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    REQUIRE(producer.producer.room(to, 1) == 1);
    producer.producer.claim(to, 1);
    if (consumer.consumer.take(from, 1)) consumer.consumer.raise(from);
  }
}

}  // namespace

TEST_CASE("a producer may claim what it was allowed, and more once the consumer has raised its limit") {
  Memories memories(3, 2, {8, 64});
  BothSides producer(memories.mailboxes, 1), consumer(memories.mailboxes, 0);
  CHECK(producer.producer.room(0, 5) == 2);
  CHECK(producer.producer.claim(0, 2) == 0);
  CHECK(producer.producer.room(0, 5) == 0);
  CHECK(producer.producer.sent(0) == 2);
  CHECK(producer.producer.room(2, 5) == 2);  // another mailbox

  CHECK(consumer.consumer.take(1, 1));  // half of it
  CHECK(producer.producer.room(0, 5) == 0);
  consumer.consumer.raise(1);
  CHECK(producer.producer.room(0, 5) == 1);
  CHECK(producer.producer.claim(0, 1) == 2);
  CHECK(producer.producer.room(0, 5) == 0);
}

TEST_CASE("tickets of one mailbox are consecutive, whoever claims them") {
  Memories memories(3, 2, {8, 64});
  BothSides first(memories.mailboxes, 1), second(memories.mailboxes, 2);
  CHECK(first.producer.claim(0, 2) == 0);
  CHECK(second.producer.claim(0, 1) == 2);
  CHECK(second.producer.claim(0, 1) == 3);
  CHECK(second.producer.claim(1, 1) == 0);
}

TEST_CASE("a producer that used its whole grant gets as many spare slots again, and none are made up") {
  // 16 slots for two producers and the consumer itself, 2 each: 10 are spare.
  Memories memories(3, 2, {16, 64});
  BothSides hot(memories.mailboxes, 1), other(memories.mailboxes, 2), consumer(memories.mailboxes, 0);
  CHECK(consumer.spare == 10);
  const auto use_all = [&](BothSides& worker, uint32_t me) {
    const uint32_t room = worker.producer.room(0, 100);
    worker.producer.claim(0, room);
    if (consumer.consumer.take(me, room)) consumer.consumer.raise(me);
    CHECK(consumer.held() == 16);
    return room;
  };
  CHECK(use_all(hot, 1) == 2);
  CHECK(use_all(hot, 1) == 4);
  CHECK(consumer.spare == 4);
  CHECK(use_all(other, 2) == 2);
  CHECK(consumer.spare == 2);
  CHECK(use_all(hot, 1) == 8);
  CHECK(use_all(hot, 1) == 8);  // eight more are not spare
  CHECK(consumer.spare == 2);
  CHECK(use_all(other, 2) == 4);  // nor are four
  CHECK(use_all(other, 2) == 4);
  CHECK(consumer.spare == 2);
}

TEST_CASE("a producer whose message waited gets as many spare slots again as it has, if there are so many") {
  Memories memories(3, 2, {16, 64});
  BothSides producer(memories.mailboxes, 1), consumer(memories.mailboxes, 0);
  const auto wait_and_take = [&](uint32_t from) {
    REQUIRE(producer.producer.room(0, 1) == 1);
    producer.producer.claim(0, 1);
    consumer.consumer.grow(from);
    REQUIRE(consumer.consumer.take(from, 1));  // it is owed its larger grant at once
    consumer.consumer.raise(from);
    CHECK(consumer.held() == 16);
    return producer.producer.room(0, 100);
  };
  CHECK(wait_and_take(1) == 4);
  CHECK(wait_and_take(1) == 8);
  CHECK(consumer.spare == 4);
  REQUIRE(producer.producer.room(0, 1) == 1);
  producer.producer.claim(0, 1);
  consumer.consumer.grow(1);  // eight more are not spare
  CHECK(!consumer.consumer.take(1, 1));
  CHECK(consumer.spare == 4);
}

TEST_CASE("a producer that never uses its whole grant gets no spare slots") {
  Memories memories(2, 2, {16, 64});
  BothSides producer(memories.mailboxes, 1), consumer(memories.mailboxes, 0);
  pass(producer, consumer, 1, 0, 1000);
  CHECK(consumer.spare == 12);
  CHECK(producer.producer.room(0, 100) == 2);
}

TEST_CASE("no grant is larger than the most that one pair may have") {
  Memories memories(2, 1, {8192, 64});
  BothSides producer(memories.mailboxes, 1), consumer(memories.mailboxes, 0);
  uint32_t room = 0;
  for (int i = 0; i < 20; ++i) {
    room = producer.producer.room(0, 8192);
    producer.producer.claim(0, room);
    if (consumer.consumer.take(1, room)) consumer.consumer.raise(1);
  }
  CHECK(room == Consumer::most_granted);
  CHECK(consumer.held() == 8192);
}

TEST_CASE("counts of messages pass 2^32") {
  Memories memories(2, 2, {4, 64});
  BothSides producer(memories.mailboxes, 1), consumer(memories.mailboxes, 0);
  const uint32_t before = 0u - 3;
  producer.to[0] = {before, before + 2};
  consumer.from[1] = {before, 2, 2};
  memories.limits[2] = before + 2;
  pass(producer, consumer, 1, 0, 10);
  CHECK(producer.to[0].sent == 7);
  CHECK(consumer.from[1].taken == 7);
  CHECK(memories.limits[2] == 9);
}

TEST_CASE("limits that are raised later are raised for all that are owed one, and for nobody else") {
  constexpr uint32_t workers = 70;
  Memories memories(workers, 2, {256, 64});
  BothSides consumer(memories.mailboxes, 0);
  const auto is_owed = [](uint32_t k) { return k % 3 == 0 || (k >= 32 && k < 64); };
  for (uint32_t k = 0; k < workers; ++k) {
    if (is_owed(k) && consumer.consumer.take(k, 1)) consumer.consumer.owe(k);
  }
  for (const uint32_t limit : memories.limits) CHECK(limit == 0);
  for (int again = 0; again < 2; ++again) {
    consumer.consumer.give_back(SingleThread{});
    for (uint32_t k = 0; k < workers; ++k) CHECK(memories.limits[k * workers] == (is_owed(k) ? 3 : 0));
    // Nobody is owed one any more: this would raise other limits.
    for (uint32_t k = 0; k < workers; ++k) consumer.consumer.take(k, 0);
  }
}

TEST_CASE("a limit is read before a message waits for it once half of an allowance is left") {
  Memories memories(2, 4, {16, 64});
  BothSides producer(memories.mailboxes, 1), consumer(memories.mailboxes, 0);
  producer.producer.claim(0, 1);
  consumer.consumer.take(1, 1);
  consumer.consumer.raise(1);
  producer.producer.read_limit_early(0);
  CHECK(producer.to[0].limit == 4);  // three are left
  producer.producer.claim(0, 1);
  producer.producer.read_limit_early(0);
  CHECK(producer.to[0].limit == 5);
}

TEST_CASE("claims for each thread of a group are claims of one, for a group of one") {
  Memories memories(2, 2, {4, 64});
  BothSides worker(memories.mailboxes, 1);
  CHECK_FALSE(claim_each(SingleThread{}, worker.producer, false, 0).claimed);
  for (uint64_t ticket = 0; ticket < 2; ++ticket) {
    const EachClaim claim = claim_each(SingleThread{}, worker.producer, true, 0);
    CHECK(claim.claimed);
    CHECK(claim.ticket == ticket);
    CHECK(claim.rank == 0);
  }
  CHECK_FALSE(claim_each(SingleThread{}, worker.producer, true, 0).claimed);
}

TEST_CASE("replies are taken in the order of their tickets, lap after lap") {
  Memories memories(1, 1, {2, 64}, {4, 64});
  ReplyRing<HostMemory> ring(memories.reply_rings, 0);
  uint32_t payload[12] = {};
  for (uint32_t ticket = 0; ticket < 10; ++ticket) {
    CHECK(receive<HostMemory>(memories.replies.data(), memories.reply_rings.shape, ring.head(), payload) ==
          ReceiveOutcome::nothing);
    CHECK(ring.head() == ticket);
    CHECK(memories.reply_rings.claim_reply(0) == ticket);
    payload[0] = 17 + ticket;
    publish<HostMemory>(SingleThread{}, memories.replies.data(), memories.reply_rings.shape, ticket, payload,
                        0);
    payload[0] = 0;
    CHECK(receive<HostMemory>(memories.replies.data(), memories.reply_rings.shape, ring.head(), payload) ==
          ReceiveOutcome::message);
    CHECK(payload[0] == 17 + ticket);
    CHECK(HostMemory::load(ring.next().slot()[0]).stamp == ring.next().stamp());
    ring.advance();
  }
}

namespace {

// One worker of the test below: sends messages to all workers in a random order, asks some of them, answers
// what it is asked, and checks all that it takes.
class Correspondent {
 public:
  static constexpr uint32_t ask = 1, reply = 2, most_idle = 1 << 21;

  Correspondent(Memories& memories, uint32_t me, uint32_t messages)
      : mailboxes_(memories.mailboxes),
        replies_(memories.reply_rings),
        worker_(memories.mailboxes, me),
        reply_ring_(memories.reply_rings, me),
        next_(memories.mailboxes.workers),
        left_(messages),
        random_(me * 7919 + 1),
        me_(me),
        payload_(memories.mailboxes.rings.shape.payload_bytes() / 4) {}

  // Until all workers have taken `total` messages, and its asks are answered.
  void run(std::atomic<uint64_t>& taken, uint64_t total) {
    uint64_t seen = 0;
    for (uint32_t idle = 0;; ++idle) {
      const uint64_t now = taken.load(std::memory_order_relaxed);
      if (now >= total && open_ == 0) return;
      if (now != seen) idle = 0;
      seen = now;
      if (idle == most_idle) ++wrong_;  // a message, a limit or a reply was lost
      const bool sent = left_ != 0 && send();
      const uint32_t came = take_mail();
      take_replies();
      taken.fetch_add(wrong_ == 0 ? came : total, std::memory_order_relaxed);
      if (wrong_ != 0) return;
      if (!sent && came == 0) {
        worker_.consumer.give_back(SingleThread{});
        std::this_thread::yield();
      }
    }
  }
  uint64_t wrong() const { return wrong_; }
  uint64_t replies() const { return reply_ring_.head(); }
  const BothSides& worker() const { return worker_; }

 private:
  uint32_t random() { return (random_ = random_ * 1664525u + 1013904223u) >> 16; }

  bool send() {
    if (!to_chosen_) to_ = random() % mailboxes_.workers;
    to_chosen_ = true;
    if (worker_.producer.room(to_, 1) == 0) return false;
    const bool asks = random() % 4 == 0 && open_ != replies_.shape.slots;
    if (asks) ++open_;
    const uint32_t number = worker_.producer.sent(to_);
    put(mailboxes_.rings, to_, worker_.producer.claim(to_, 1), number, asks ? ask : 0);
    to_chosen_ = false;
    --left_;
    return true;
  }
  uint32_t take_mail() {
    uint32_t count = 0;
    // Not all at once: what waits shall fill mailboxes.
    for (; count < 3; ++count) {
      if (receive<HostMemory>(mailboxes_.rings.ring(me_), mailboxes_.rings.shape, head_, payload_.data()) !=
          ReceiveOutcome::message) {
        break;
      }
      ++head_;
      Envelope envelope;
      std::memcpy(&envelope, payload_.data(), sizeof envelope);
      const auto from = uint32_t(envelope.key), number = uint32_t(envelope.correlation);
      check(from, number, envelope);
      if (from >= mailboxes_.workers || number != next_[from]++) {
        ++wrong_;
        break;
      }
      // The slot may be written again from here on.
      if (worker_.consumer.take(from, 1)) {
        random() % 2 == 0 ? worker_.consumer.raise(from) : worker_.consumer.owe(from);
      }
      if ((envelope.flags & ask) != 0) put(replies_, from, replies_.claim_reply(from), number, reply);
    }
    if (random() % 8 == 0) worker_.consumer.give_back(SingleThread{});
    return count;
  }
  void take_replies() {
    while (receive<HostMemory>(replies_.ring(me_), replies_.shape, reply_ring_.head(), payload_.data()) ==
           ReceiveOutcome::message) {
      Envelope envelope;
      std::memcpy(&envelope, payload_.data(), sizeof envelope);
      check(uint32_t(envelope.key), uint32_t(envelope.correlation), envelope);
      if (envelope.flags != reply) ++wrong_;
      reply_ring_.advance();
      --open_;
    }
  }

  void put(const WorkerRings<HostMemory>& rings, uint32_t to, uint64_t ticket, uint32_t number,
           uint32_t flags) {
    const uint32_t body_bytes = body_of(me_, number, rings.shape);
    std::vector<uint32_t> message(rings.shape.payload_bytes() / 4);
    Envelope envelope{};
    envelope.correlation = number;
    envelope.body_bytes = body_bytes;
    envelope.key = me_;
    envelope.flags = uint8_t(flags);
    std::memcpy(message.data(), &envelope, sizeof envelope);
    for (uint32_t w = 0; w < body_bytes / 4; ++w) message[8 + w] = word_of(me_, number, w);
    publish<HostMemory>(SingleThread{}, rings.ring(to), rings.shape, ticket, message.data(), body_bytes);
  }
  void check(uint32_t from, uint32_t number, const Envelope& envelope) {
    if (envelope.body_bytes != body_of(from, number, mailboxes_.rings.shape)) ++wrong_;
    for (uint32_t w = 0; w < envelope.body_bytes / 4; ++w)
      wrong_ += payload_[8 + w] != word_of(from, number, w);
  }
  static uint32_t body_of(uint32_t from, uint32_t number, const RingShape& shape) {
    return (number * 7 + from) % (shape.body_capacity() / 8 + 1) * 8;
  }
  static uint32_t word_of(uint32_t from, uint32_t number, uint32_t w) {
    return (from << 28) ^ (number * 31) ^ w;
  }

  const Mailboxes<HostMemory> mailboxes_;
  const WorkerRings<HostMemory> replies_;
  BothSides worker_;
  ReplyRing<HostMemory> reply_ring_;
  uint32_t open_ = 0;           // asks whose reply was not taken
  std::vector<uint32_t> next_;  // of each sender
  uint64_t head_ = 0, wrong_ = 0;
  uint32_t left_, random_, to_ = 0;
  bool to_chosen_ = false;
  const uint32_t me_;
  std::vector<uint32_t> payload_;
};

}  // namespace

TEST_CASE("four workers tell and ask each other: every message and reply arrives once, whole, in order") {
  constexpr uint32_t workers = 4;
  const auto each = uint32_t(gyre_test::rounds(20'000));
  // Few slots and laps from just below 2^32: wraps, full mailboxes and stale packets are all on the way.
  const RingShape shape{8, 128, (uint64_t(1) << 32) - 3};
  Memories memories(workers, 1, shape, {2, 128, (uint64_t(1) << 32) - 3});
  std::vector<std::unique_ptr<Correspondent>> correspondents;
  for (uint32_t w = 0; w < workers; ++w)
    correspondents.push_back(std::make_unique<Correspondent>(memories, w, each));
  std::atomic<uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (auto& correspondent : correspondents) {
    threads.emplace_back([&, one = correspondent.get()] { one->run(taken, uint64_t(workers) * each); });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t replies = 0;
  for (auto& one : correspondents) {
    CHECK(one->wrong() == 0);
    CHECK(one->worker().held() == shape.slots);
    CHECK(int32_t(one->worker().spare) >= 0);
    replies += one->replies();
  }
  CHECK(taken == uint64_t(workers) * each);
  CHECK(replies > 0);
}
