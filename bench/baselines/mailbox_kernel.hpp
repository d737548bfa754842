// gyre-bench mailbox: bare mailboxes in device memory, by the protocol of bridge/mailbox.hpp. A message is a
// slot of 64 bytes, four stamped packets. Every warp is a worker that sends, receives, and checks what it
// receives.
#pragma once

#include <bench/baselines/mailbox_run.hpp>

namespace gyre::bench {

/// What a message holds beside its sender and its number: all derived from both, so that a word of another
/// message shows.
struct MailboxMessage {
  static constexpr uint32_t packets = 4;

  __device__ static uint32_t word(uint32_t from, uint32_t number, uint32_t k) {
    return (from * 0x9e3779b9u ^ number * 0x85ebca6bu) + k * 0xc2b2ae35u;
  }
  __device__ static Packet packet(uint32_t from, uint32_t number, uint32_t p, uint32_t stamp) {
    if (p == 0) return {{from, number, word(from, number, 2)}, stamp};
    return {{word(from, number, 3 * p), word(from, number, 3 * p + 1), word(from, number, 3 * p + 2)}, stamp};
  }
  __device__ static bool equals(const Packet& packet, uint32_t from, uint32_t number, uint32_t p) {
    const Packet right = MailboxMessage::packet(from, number, p, packet.stamp);
    return packet.data[0] == right.data[0] && packet.data[1] == right.data[1] &&
           packet.data[2] == right.data[2];
  }
};

/// One warp. `workers`: the most that there can be.
template <uint32_t workers>
class MailboxWorker {
 public:
  using Producer = MailboxProducer<WorkersMemory>;
  using Consumer = MailboxConsumer<WorkersMemory>;

  /// What a worker knows of every other, in shared memory.
  struct Shared {
    Producer::Peer to[workers];
    Consumer::Peer from[workers];
    uint32_t owed[Consumer::owed_words(workers)];
    uint32_t spare;
  };
  /// What one poll found: lane k has the k-th message, reply and host message.
  struct Poll {
    Packet packets[MailboxMessage::packets];
    uint32_t mail;     // messages there
    uint32_t replies;  // replies there
    bool from_host;
  };
  /// The first message of each ring, by one load a lane: lanes 0 to 3 have the packets of the mailbox's, 4 to
  /// 7 those of the reply ring's, lane 8 the first of the host's.
  struct Heads {
    static constexpr uint32_t message = 0x00f, reply = 0x0f0, from_host = 0x100;

    Packet packet;
    uint32_t there;  // lanes whose packet is there
  };

  __device__ MailboxWorker(const MailboxRun& run, Shared& shared, uint32_t me)
      : run_(run),
        shared_(shared),
        producer_(run.mailboxes, me, shared.to),
        consumer_(run.mailboxes, me, shared.from, shared.owed, shared.spare),
        replies_(run.replies, me),
        me_(me),
        lane_(Warp::rank()) {
    producer_.start(Warp{});
    consumer_.start(Warp{});
  }

  /// Loads the heads of the three rings together.
  __device__ Poll poll() {
    Poll found;
    const WorkerRings<WorkersMemory>& mail = run_.mailboxes.rings;
    const uint64_t ticket = head_ + lane_, reply_ticket = replies_.head() + lane_;
    const Packet* const slot = mail.slot(me_, ticket);
    for (uint32_t p = 0; p < MailboxMessage::packets; ++p) found.packets[p] = WorkersMemory::load(slot[p]);
    const Packet reply = WorkersMemory::load(*run_.replies.slot(me_, reply_ticket));
    const Packet host = WorkersMemory::load(run_.host[me_ * MailboxMessage::packets]);
    const uint32_t stamp = mail.shape.stamp(ticket);
    bool there = true;
    for (uint32_t p = 0; p < MailboxMessage::packets; ++p) there = there && found.packets[p].stamp == stamp;
    found.mail = Warp::leading(there);
    found.replies = Warp::leading(reply.stamp == run_.replies.shape.stamp(reply_ticket));
    found.from_host = host.stamp != 0;
    return found;
  }

  /// Checks the messages, counts them, and raises the limits of their senders.
  __device__ void take(const Poll& found) {
    const bool mine = lane_ < found.mail;
    uint32_t from = mine ? found.packets[0].data[0] : 0;
    const uint32_t number = found.packets[0].data[1];
    bool right = from < run_.mailboxes.workers;
    if (!right) from = 0;
    const uint32_t same = Warp::match(from) & Warp::ballot(mine);
    const uint32_t rank = detail::count_bits(same & ((1u << lane_) - 1));
    if (mine) {
      right = right && number == shared_.from[from].taken + rank;  // each once, in order
      for (uint32_t p = 0; p < MailboxMessage::packets; ++p)
        right = right && MailboxMessage::equals(found.packets[p], from, number, p);
      ++received_;
      wrong_ += right ? 0 : 1;
    }
    head_ += found.mail;
    Warp::sync();  // every lane has its message, and has compared the count
    if (mine && rank == 0 && consumer_.take(from, detail::count_bits(same))) consumer_.raise(from);
    Warp::sync();
  }

  /// Sends one message of each lane that has one, as far as limits allow. Messages of one lane to one worker
  /// stay in order.
  /// @returns true in lanes whose message was sent
  __device__ bool send(bool has_one, uint32_t to) {
    const uint32_t sent = producer_.sent(to);
    const EachClaim claim = claim_each(Warp{}, producer_, has_one, to);
    if (claim.claimed) {
      Packet* const slot = run_.mailboxes.rings.slot(to, claim.ticket);
      const uint32_t stamp = run_.mailboxes.rings.shape.stamp(claim.ticket);
      for (uint32_t p = MailboxMessage::packets; p-- > 0;)
        WorkersMemory::store(slot[p], MailboxMessage::packet(me_, sent + claim.rank, p, stamp));
    }
    return claim.claimed;
  }

  /// Loads the heads of the three rings together, until those of `wanted` are there.
  __device__ Heads wait_for(uint32_t wanted) const {
    const WorkerRings<WorkersMemory>& mail = run_.mailboxes.rings;
    const Packet* cell = run_.host + me_ * MailboxMessage::packets;
    uint32_t stamp = 1;
    if (lane_ < 4) {
      cell = mail.slot(me_, head_) + lane_;
      stamp = mail.shape.stamp(head_);
    } else if (lane_ < 8) {
      cell = run_.replies.slot(me_, replies_.head()) + (lane_ - 4);
      stamp = run_.replies.shape.stamp(replies_.head());
    }
    Heads heads;
    do {
      if (lane_ <= 8) heads.packet = WorkersMemory::load(*cell);
      heads.there = Warp::ballot(lane_ <= 8 && heads.packet.stamp == stamp);
    } while ((heads.there & wanted) != wanted);
    return heads;
  }

  /// Sends one message, as soon as the limit allows.
  __device__ void send_one(uint32_t to) {
    const uint32_t sent = producer_.sent(to);
    uint64_t ticket = 0;
    if (lane_ == 0) {
      while (producer_.room(to, 1) == 0) {
      }
      ticket = producer_.claim(to, 1);
    }
    publish(run_.mailboxes.rings, to, __shfl_sync(~0u, ticket, 0), sent);
  }
  /// Reads the limit before a message waits for it.
  __device__ void read_limit_early(uint32_t to) {
    if (lane_ == 0) producer_.read_limit_early(to);
    Warp::sync();
  }
  /// Checks the message among `heads`, counts it, and raises its sender's limit.
  __device__ void take_one(const Heads& heads) {
    uint32_t from = Warp::broadcast(heads.packet.data[0]);
    const uint32_t number = Warp::broadcast(heads.packet.data[1]);
    bool right = from < run_.mailboxes.workers;
    if (!right) from = 0;
    right = right && number == shared_.from[from].taken &&
            (lane_ >= 4 || MailboxMessage::equals(heads.packet, from, number, lane_));
    right = Warp::all(right);
    if (!right) ++wrong_;
    ++head_;
    if (lane_ == 0) {
      ++received_;
      if (consumer_.take(from, 1)) consumer_.owe(from);
    }
    consumer_.give_back(Warp{});
  }

  /// Writes a reply: its receiver has a slot for each ask that it has open.
  __device__ void reply(uint32_t to) {
    uint64_t ticket = 0;
    if (lane_ == 0) ticket = run_.replies.claim_reply(to);
    ticket = __shfl_sync(~0u, ticket, 0);
    publish(run_.replies, to, ticket, uint32_t(ticket));
  }
  /// Checks the reply among `heads`.
  __device__ void take_reply(const Heads& heads) {
    const bool right = lane_ < 4 || lane_ >= 8 ||
                       MailboxMessage::equals(heads.packet, 1 - me_, uint32_t(replies_.head()), lane_ - 4);
    if (!right) ++wrong_;
    Warp::sync();
    replies_.advance();
  }

  __device__ uint32_t received() const { return received_; }
  __device__ uint32_t wrong() const { return wrong_; }

 private:
  // One packet a lane.
  __device__ void publish(const WorkerRings<WorkersMemory>& rings, uint32_t to, uint64_t ticket,
                          uint32_t number) {
    Warp::sync();  // every lane's stores come after what the claim came after
    if (lane_ < MailboxMessage::packets) {
      WorkersMemory::store(rings.slot(to, ticket)[lane_],
                           MailboxMessage::packet(me_, number, lane_, rings.shape.stamp(ticket)));
    }
  }

  const MailboxRun& run_;
  Shared& shared_;
  Producer producer_;
  Consumer consumer_;
  ReplyRing<WorkersMemory> replies_;
  const uint32_t me_, lane_;
  uint64_t head_ = 0;
  uint32_t received_ = 0, wrong_ = 0;  // by this lane
};

__device__ inline uint32_t next_random(uint32_t& state) { return state = state * 1664525u + 1013904223u; }

/// Where a message goes, for a load.
__device__ inline uint32_t destination(const MailboxRun& run, uint32_t me, uint32_t& random) {
  const auto below = [&](uint32_t n) { return uint32_t(uint64_t(next_random(random)) * n >> 32); };
  switch (run.load) {
    case MailboxLoad::uniform:
      return below(run.mailboxes.workers);
    case MailboxLoad::skewed:  // half of all messages go to a sixteenth of the workers
      return (next_random(random) >> 31) != 0 ? below((run.mailboxes.workers + 15) / 16)
                                              : below(run.mailboxes.workers);
    default:
      return me ^ 1u;
  }
}

/// Every warp sends `messages` messages and takes what comes, until all were taken.
template <uint32_t workers, uint32_t warps>
__global__ void __launch_bounds__(32 * warps) mailbox_rate_kernel(MailboxRun run) {
  __shared__ typename MailboxWorker<workers>::Shared shared[warps];
  const uint32_t warp = threadIdx.x / 32, me = blockIdx.x * warps + warp, lane = threadIdx.x & 31;
  MailboxWorker<workers> worker(run, shared[warp], me);
  uint64_t begin, end;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin) : : "memory");
  uint32_t left = run.messages / 32, random = me * 7919 + lane * 104729 + 1, to = 0, idle = 0, reported = 0;
  bool has_one = false;
  for (;;) {
    if (!has_one && left != 0) {
      to = destination(run, me, random);
      has_one = true;
      --left;
    }
    if (worker.send(has_one, to)) has_one = false;
    const auto found = worker.poll();
    if (found.mail != 0) worker.take(found);
    idle = found.mail != 0 ? 0 : idle + 1;
    if (idle < 8) continue;
    idle = 0;
    const uint32_t more = __reduce_add_sync(~0u, worker.received() - reported);
    reported = worker.received();
    unsigned long long all = 0;
    if (lane == 0) all = atomicAdd(run.received, static_cast<unsigned long long>(more)) + more;
    if (__shfl_sync(~0u, all, 0) >= run.total) break;
  }
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end) : : "memory");
  const uint32_t received = __reduce_add_sync(~0u, worker.received()),
                 wrong = __reduce_add_sync(~0u, worker.wrong());
  if (lane == 0) run.results[me] = {begin, end, received, wrong};
}

/// Two workers, each on a multiprocessor of its own: one message at a time there and back. A worker answers
/// as soon as a message is there; it checks the message and raises limits while the answer is on its way.
/// `samples`: cycles of each round trip.
template <bool by_reply_ring>
__global__ void __launch_bounds__(32) mailbox_latency_kernel(MailboxRun run) {
  __shared__ typename MailboxWorker<2>::Shared shared;
  using Heads = typename MailboxWorker<2>::Heads;
  const uint32_t me = blockIdx.x, lane = threadIdx.x;
  const bool gets_replies = by_reply_ring && me == 0;
  MailboxWorker<2> worker(run, shared, me);
  uint64_t begin, end;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin) : : "memory");
  const long long first = clock64();
  long long sent_at = first;
  if (me == 0) worker.send_one(1);
  for (uint32_t n = 0; n < run.messages; ++n) {
    const Heads heads = worker.wait_for(gets_replies ? Heads::reply : Heads::message);
    const long long came_at = clock64();
    if (me == 1 && by_reply_ring) {
      worker.reply(0);
    } else if (me == 1 || n + 1 < run.messages) {
          worker.send_one(1 - me);
    }
    if (me == 0 && lane == 0) run.samples[n] = uint32_t(came_at - sent_at);
    sent_at = came_at;
    if (gets_replies) {
      worker.take_reply(heads);
    } else {
      worker.take_one(heads);
    }
    worker.read_limit_early(1 - me);
  }
  const long long last = clock64();
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end) : : "memory");
  const uint32_t received = __reduce_add_sync(~0u, worker.received()),
                 wrong = __reduce_add_sync(~0u, worker.wrong());
  if (lane == 0) {
    run.results[me] = {begin, end, received, wrong};
    if (me == 0) *run.cycles = uint64_t(last - first);
  }
}

}  // namespace gyre::bench
