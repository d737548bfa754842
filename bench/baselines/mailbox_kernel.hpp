// gyre-bench mailbox: bare mailboxes in device memory. Many producers and one consumer each; a message is a
// slot of 64 bytes, four stamped packets. Every warp is a worker that sends, receives, and checks what it
// receives.
//
// A producer takes a ticket of a mailbox by a fetch-add of its 64-bit tail, and only while the number of
// messages that it sent there is below its limit. The consumer alone raises limits. One invariant keeps a
// ticket from overrunning a slot: over all producers, the sum of limit - consumed is at most the slots. So a
// send never waits, and spare slots can go to producers that use all they have.
#pragma once

#include <gyre/bridge/packet.hpp>

#include <bench/baselines/mailbox_run.hpp>

namespace gyre::bench {

/// Packets and words of device memory that no host reads meanwhile: scope of the GPU.
struct MailboxMemory {
  __device__ static Packet load(const Packet& cell) {
    uint64_t low, high;
    asm volatile("{ .reg .b128 t; ld.relaxed.gpu.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
                 : "=l"(low), "=l"(high)
                 : "l"(&cell)
                 : "memory");
    return Packet{{uint32_t(low), uint32_t(low >> 32), uint32_t(high)}, uint32_t(high >> 32)};
  }
  __device__ static void store(Packet& cell, const Packet& packet) {
    const uint64_t low = packet.data[0] | uint64_t(packet.data[1]) << 32;
    const uint64_t high = packet.data[2] | uint64_t(packet.stamp) << 32;
    asm volatile("{ .reg .b128 t; mov.b128 t, {%1, %2}; st.relaxed.gpu.global.b128 [%0], t; }"
                 :
                 : "l"(&cell), "l"(low), "l"(high)
                 : "memory");
  }
  __device__ static uint32_t load_acquire(const uint32_t& word) {
    uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(&word) : "memory");
    return value;
  }
  __device__ static void store_release(uint32_t& word, uint32_t value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" : : "l"(&word), "r"(value) : "memory");
  }
};

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
  /// What a worker knows of every other, in shared memory. Counts wrap: they are compared serially.
  struct Shared {
    uint32_t sent[workers];   // to that worker
    uint32_t limit[workers];  // of `sent`, as read last
    uint32_t taken[workers];  // from that worker
    uint32_t given[workers];  // the limit that it was given
    uint16_t grant[workers];  // how many it may have on the way
    int32_t spare;            // slots that no producer was granted
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
      : run_(run), shared_(shared), me_(me), lane_(threadIdx.x & 31) {
    for (uint32_t k = lane_; k < run.workers; k += 32) {
      shared.sent[k] = shared.taken[k] = 0;
      shared.limit[k] = shared.given[k] = run.allowance;
      shared.grant[k] = uint16_t(run.allowance);
    }
    if (lane_ == 0) shared.spare = int32_t(run.slots - run.workers * run.allowance);
    __syncwarp();
  }

  /// Loads the heads of the three rings together.
  __device__ Poll poll() {
    Poll found;
    const uint64_t ticket = head_ + lane_, reply_ticket = reply_head_ + lane_;
    const Packet* const slot = mailbox(me_, ticket);
    for (uint32_t p = 0; p < MailboxMessage::packets; ++p) found.packets[p] = MailboxMemory::load(slot[p]);
    const Packet reply = MailboxMemory::load(*reply_slot(me_, reply_ticket));
    const Packet host = MailboxMemory::load(run_.host[me_ * MailboxMessage::packets]);
    const uint32_t stamp = stamp_of(ticket, run_.slots);
    bool there = true;
    for (uint32_t p = 0; p < MailboxMessage::packets; ++p) there = there && found.packets[p].stamp == stamp;
    found.mail = leading(there);
    found.replies = leading(reply.stamp == stamp_of(reply_ticket, run_.reply_slots));
    found.from_host = host.stamp != 0;
    return found;
  }

  /// Checks the messages, counts them, and raises the limits of their senders.
  __device__ void take(const Poll& found) {
    const bool mine = lane_ < found.mail;
    const uint32_t lanes = __ballot_sync(~0u, mine);
    uint32_t raised = 0, from = 0;
    bool raises = false;
    if (mine) {
      from = found.packets[0].data[0];
      const uint32_t number = found.packets[0].data[1];
      const uint32_t same = __match_any_sync(lanes, from);
      const uint32_t rank = __popc(same & ((1u << lane_) - 1));
      bool right = from < run_.workers;
      if (!right) from = 0;
      right = right && number == shared_.taken[from] + rank;  // each once, in order
      for (uint32_t p = 0; p < MailboxMessage::packets; ++p)
        right = right && MailboxMessage::equals(found.packets[p], from, number, p);
      ++received_;
      wrong_ += right ? 0 : 1;
      __syncwarp(same);
      if (rank == 0) raises = count_taken(from, __popc(same), raised);
    }
    head_ += found.mail;
    raise_limit(raises, from, raised);
  }

  /// Sends one message of each lane that has one, as far as limits allow. Messages of one lane to one worker
  /// stay in order.
  /// @returns true in lanes whose message was sent
  __device__ bool send(bool has_one, uint32_t to) {
    const uint32_t lanes = __ballot_sync(~0u, has_one);
    bool goes = false;
    if (has_one) {
      const uint32_t same = __match_any_sync(lanes, to);
      const uint32_t wanted = __popc(same), rank = __popc(same & ((1u << lane_) - 1));
      const int leader = __ffs(int(same)) - 1;
      const uint32_t sent = shared_.sent[to];
      uint32_t limit = shared_.limit[to];
      __syncwarp(same);  // every lane has read them: the first may write
      if (int32_t(limit - sent) < int32_t(wanted)) {
        if (rank == 0) {
          // Pairs with the release in raise_limit().
          const uint32_t read = MailboxMemory::load_acquire(run_.limits[uint64_t(me_) * run_.workers + to]);
          if (int32_t(read - limit) > 0) shared_.limit[to] = limit = read;
        }
        limit = __shfl_sync(same, limit, leader);
      }
      const uint32_t room = limit - sent, count = room < wanted ? room : wanted;
      unsigned long long ticket = 0;
      if (rank == 0 && count != 0) {
        ticket = atomicAdd(run_.tails + to * mailbox_words_a_line, static_cast<unsigned long long>(count));
        shared_.sent[to] = sent + count;
      }
      ticket = __shfl_sync(same, ticket, leader) + rank;
      goes = rank < count;
      if (goes) {
        Packet* const slot = mailbox(to, ticket);
        const uint32_t stamp = stamp_of(ticket, run_.slots);
        for (uint32_t p = MailboxMessage::packets; p-- > 0;)
          MailboxMemory::store(slot[p], MailboxMessage::packet(me_, sent + rank, p, stamp));
      }
    }
    __syncwarp();
    return goes;
  }

  /// Loads the heads of the three rings together, until those of `wanted` are there.
  __device__ Heads wait_for(uint32_t wanted) const {
    const Packet* cell = run_.host + me_ * MailboxMessage::packets;
    uint32_t stamp = 1;
    if (lane_ < 4) {
      cell = mailbox(me_, head_) + lane_;
      stamp = stamp_of(head_, run_.slots);
    } else if (lane_ < 8) {
      cell = reply_slot(me_, reply_head_) + (lane_ - 4);
      stamp = stamp_of(reply_head_, run_.reply_slots);
    }
    Heads heads;
    do {
      if (lane_ <= 8) heads.packet = MailboxMemory::load(*cell);
      heads.there = __ballot_sync(~0u, lane_ <= 8 && heads.packet.stamp == stamp);
    } while ((heads.there & wanted) != wanted);
    return heads;
  }

  /// Sends one message, as soon as the limit allows.
  __device__ void send_one(uint32_t to) {
    const uint32_t sent = shared_.sent[to];
    while (int32_t(shared_.limit[to] - sent) <= 0) read_limit(to);
    const uint64_t ticket = claim_one(run_.tails, to);
    if (lane_ < MailboxMessage::packets) {
      MailboxMemory::store(mailbox(to, ticket)[lane_],
                           MailboxMessage::packet(me_, sent, lane_, stamp_of(ticket, run_.slots)));
    }
    if (lane_ == 0) shared_.sent[to] = sent + 1;
    __syncwarp();
  }
  /// Reads the limit again once half of the first one is used: before a message waits for it.
  __device__ void read_limit_early(uint32_t to) {
    if (int32_t(shared_.limit[to] - shared_.sent[to]) * 2 <= int32_t(run_.allowance)) read_limit(to);
  }
  /// Checks the message among `heads`, counts it, and raises its sender's limit.
  __device__ void take_one(const Heads& heads) {
    uint32_t from = __shfl_sync(~0u, heads.packet.data[0], 0), raised = 0;
    const uint32_t number = __shfl_sync(~0u, heads.packet.data[1], 0);
    bool right = from < run_.workers;
    if (!right) from = 0;
    right = right && number == shared_.taken[from] &&
            (lane_ >= 4 || MailboxMessage::equals(heads.packet, from, number, lane_));
    right = __all_sync(~0u, right);
    if (!right) ++wrong_;
    ++head_;
    bool raises = false;
    if (lane_ == 0) {
      ++received_;
      raises = count_taken(from, 1, raised);
    }
    raise_limit(raises, from, raised);
  }

  /// Writes a reply: its receiver has a slot for each ask that it has open.
  __device__ void reply(uint32_t to) {
    const uint64_t ticket = claim_one(run_.reply_tails, to);
    if (lane_ < MailboxMessage::packets) {
      MailboxMemory::store(
          reply_slot(to, ticket)[lane_],
          MailboxMessage::packet(me_, uint32_t(ticket), lane_, stamp_of(ticket, run_.reply_slots)));
    }
  }
  /// Checks the reply among `heads`.
  __device__ void take_reply(const Heads& heads) {
    const bool right = lane_ < 4 || lane_ >= 8 ||
                       MailboxMessage::equals(heads.packet, 1 - me_, uint32_t(reply_head_), lane_ - 4);
    if (!right) ++wrong_;
    ++reply_head_;
  }

  __device__ uint32_t received() const { return received_; }
  __device__ uint32_t wrong() const { return wrong_; }

 private:
  static constexpr uint32_t most_granted = 1024;

  // Counts `count` messages of `from` as taken, by one lane. True if its limit is `raised` now.
  __device__ bool count_taken(uint32_t from, uint32_t count, uint32_t& raised) {
    const uint32_t taken = shared_.taken[from] += count;
    const uint32_t left = shared_.given[from] - taken;
    uint32_t grant = shared_.grant[from];
    if (left * 2 > grant) return false;
    if (left == 0 && grant < most_granted) {  // it used all: gets as much again of what is spare
      if (atomicSub(&shared_.spare, int32_t(grant)) >= int32_t(grant)) {
        grant *= 2;
        shared_.grant[from] = uint16_t(grant);
      } else {
        atomicAdd(&shared_.spare, int32_t(grant));
      }
    }
    raised = shared_.given[from] = taken + grant;
    return true;
  }
  // Tells producers what count_taken() said, each lane one.
  __device__ void raise_limit(bool raises, uint32_t from, uint32_t raised) {
    __syncwarp();  // every lane has its message: the slots may be written again
    // Pairs with the acquires in send() and read_limit().
    if (raises) MailboxMemory::store_release(run_.limits[uint64_t(from) * run_.workers + me_], raised);
  }
  __device__ void read_limit(uint32_t to) {
    // Pairs with the release in raise_limit().
    const uint32_t read = MailboxMemory::load_acquire(run_.limits[uint64_t(me_) * run_.workers + to]);
    __syncwarp();  // every lane has compared the limit that was known
    if (lane_ == 0 && int32_t(read - shared_.limit[to]) > 0) shared_.limit[to] = read;
    __syncwarp();
  }
  __device__ uint64_t claim_one(unsigned long long* tails, uint32_t to) const {
    unsigned long long ticket = 0;
    if (lane_ == 0) ticket = atomicAdd(tails + to * mailbox_words_a_line, 1ull);
    return __shfl_sync(~0u, ticket, 0);
  }
  __device__ static uint32_t leading(bool there) {
    const uint32_t others = __ballot_sync(~0u, !there);
    return others == 0 ? 32 : uint32_t(__ffs(int(others)) - 1);
  }
  __device__ static uint32_t stamp_of(uint64_t ticket, uint32_t slots) {
    return uint32_t(ticket >> (31 - __clz(int(slots)))) + 1;
  }
  __device__ Packet* mailbox(uint32_t worker, uint64_t ticket) const {
    return run_.mailboxes +
           (uint64_t(worker) * run_.slots + (ticket & (run_.slots - 1))) * MailboxMessage::packets;
  }
  __device__ Packet* reply_slot(uint32_t worker, uint64_t ticket) const {
    return run_.replies + (uint64_t(worker) * run_.reply_slots + (ticket & (run_.reply_slots - 1))) *
                              MailboxMessage::packets;
  }

  const MailboxRun& run_;
  Shared& shared_;
  const uint32_t me_, lane_;
  uint64_t head_ = 0, reply_head_ = 0;
  uint32_t received_ = 0, wrong_ = 0;  // by this lane
};

__device__ inline uint32_t next_random(uint32_t& state) { return state = state * 1664525u + 1013904223u; }

/// Where a message goes, for a load.
__device__ inline uint32_t destination(const MailboxRun& run, uint32_t me, uint32_t& random) {
  const auto below = [&](uint32_t n) { return uint32_t(uint64_t(next_random(random)) * n >> 32); };
  switch (run.load) {
    case MailboxLoad::uniform:
      return below(run.workers);
    case MailboxLoad::skewed:  // half of all messages go to a sixteenth of the workers
      return (next_random(random) >> 31) != 0 ? below((run.workers + 15) / 16) : below(run.workers);
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
