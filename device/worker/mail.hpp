// The mail of one worker: messages between actors, out and in. Compiled only into sets with a handler that
// sends.
//
//   mail.hpp       what comes next; counts
//   mail_in.hpp    taking a message: from the mailbox, the queue, the reply ring, or what is handed to many
//   mail_out.hpp   sending: by a slot of a mailbox, or by the outbox
//
//   staging   what the handler in hand builds; sent when it has ended well
//   mailbox   what other workers sent (bridge/mailbox.hpp)
//   queue     messages to actors of this worker, and those that were moved out of the mailbox, in their order
//   outbox    messages to other workers that no slot could be claimed for yet
//
// Where a handler asks, also:
//
//   reply ring   replies to asks of this worker's actors, and to what it forwarded for the host. It has a
//                slot for each call that may be open: replies never wait for room
//   open calls   what those replies are for, and the asks that are to be answered later (open_calls.hpp)
//
// Where a handler sets timers, also their table (timer_table.hpp). Where one sends to many, subscriptions,
// and the message that the worker hands to several of its actors (fan_out.hpp).
//
// Where a handler sends messages that do not fit a slot, their bodies lie in a pool that all workers share
// (body_pool.hpp).
//
// A worker whose outbox has no room for what any handler may send is held: until messages have left it
// handles only mail whose handlers do not send, or so few messages that there is room for them. So senders
// wait for receivers, and nothing is lost. But there is no deadlock: a worker that is held for long moves its
// mailbox to its queue, by which others can send to it. Outboxes wait for mailboxes, and mailboxes wait for
// nothing. Only where the memory for queues is used up messages are refused, and counted.
#pragma once

#include <gyre/bridge/placement.hpp>
#include <gyre/device/platform.hpp>
#include <gyre/device/worker/body_pool.hpp>
#include <gyre/device/worker/fan_out.hpp>
#include <gyre/device/worker/mail_queues.hpp>
#include <gyre/device/worker/open_calls.hpp>
#include <gyre/device/worker/staging.hpp>
#include <gyre/device/worker/timer_table.hpp>

namespace gyre {

static_assert(sizeof(MailLayout::Producer::Peer) == StagingLayout::producer_words * sizeof(uint32_t) &&
              sizeof(MailLayout::Consumer::Peer) == StagingLayout::consumer_words * sizeof(uint32_t));

/// What bounds the order in which a worker takes messages.
struct MailLimits {
  /// Messages of actors while there may be one of the host; turns for the host's messages, one or a batch,
  /// while there may be one of an actor; and messages of the queue or the mailbox.
  enum : uint32_t { most_in_a_row = 64 };
};

/// One worker's mail. The polling threads' alone, each with an object of its own and equal members. Refers to
/// memory of the engine and of the group; stays where it is.
/// @tparam rights  what the handlers of the set may do
template <Rights rights>
class Mail : public MailLimits {
 public:
  /// Counts of messages; see WorkerLine.
  struct Counts {
    uint64_t sent = 0, taken = 0;
    uint64_t told_sent = 0, told_refused = 0;
  };
  /// @param memory   of this worker
  /// @param staging  its memory
  GYRE_DEVICE Mail(const Bridge& bridge, const EngineMemory& memory, const Staging& staging)
      : Mail(bridge, bridge.place(), memory, staging) {}
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  GYRE_DEVICE uint32_t worker() const { return me_; }

  /// Before the first message.
  GYRE_DEVICE void start() {
    producer_.start(PollGroup{});
    consumer_.start(PollGroup{});
    outbox_.start();
    if constexpr (rights.asks) calls_.start();
  }

  // ---- Messages in

  /// Begins to load the next message of the mailbox, and those behind it as far as each thread loads a
  /// packet. RequestReader::poll() calls it beside each of its loads.
  GYRE_DEVICE void load() {
    packet_ = WorkersMemory::load(*next_cell_);
    if constexpr (rights.asks) reply_packet_ = WorkersMemory::load(*next_reply_cell_);
  }
  /// Whether load() found the begin of a message.
  GYRE_DEVICE bool found() const { return PollGroup::any(has_begun()); }
  /// Whether it found one, and there is nothing else to take: `no_other` counts in the thread of rank 0.
  GYRE_DEVICE bool is_alone(bool no_other) const { return PollGroup::any(has_begun() && no_other); }
  /// Polls since the last message.
  GYRE_DEVICE uint32_t empty_polls() const { return empty_polls_; }

  /// Whether there is nothing for next() to do. It need not be called then.
  /// @param found  what found() says
  GYRE_DEVICE bool is_quiet(bool found) const { return !(found | has_waiting() | (taken_since_ != 0)); }
  /// is_quiet() was true.
  GYRE_DEVICE void note_quiet() {
    if (empty_polls_ == empty_polls_before_publication) publish_counts();
    ++empty_polls_;
  }
  /// Takes the next message, if one comes before the host's; sends what waits, and gives slots back. The
  /// host's ring is polled where it says no, unless the worker is held.
  /// @param found      what found() says
  /// @param most_sent  most_sent(types): how many messages the handler that RequestHead::types() names may
  ///                   send: a worker that is held handles mail for those that send none, or few
  /// @param find       find(actor_type, place, key): whether an actor of the type is in that place of its
  ///                   table, and its key. Where a handler sends to many
  template <class MostSent, class Find>
  GYRE_DEVICE_INLINE bool next(bool found, MostSent&& most_sent, [[maybe_unused]] Find&& find) {
    const Choice choice = waits_elsewhere() ? choose(most_sent, find) : choose_where_nothing_waits(found);
    bool taken = choice.source == Source::taken;
    if (choice.source == Source::mailbox) taken = take_from_mailbox();
    if constexpr (rights.asks) {
      if (choice.source == Source::reply) taken = take_reply();
    }
    if (!taken && choice.queue) {
      take_from_queue();
      taken = true;
    }
    took_one_ = taken;
    if (!taken) {
      if (choice.held && ++passes_held_ >= passes_before_spill) empty_mailbox();
      give_back();
      return none_taken();
    }
    if (choice.held && choice.source != Source::taken)
      left_while_held_ -= most_sent_by_mail(most_sent, message() + types_word);
    passes_held_ = 0;
    return true;
  }
  /// Whether the outbox has no room for what any handler may send: only mail whose handlers send few or none
  /// is handled then.
  GYRE_DEVICE bool is_held() const { return outbox_.room() < staging_.layout.most_sent; }
  /// The message that next() took; with gather(), the first of several.
  GYRE_DEVICE uint32_t* message(uint32_t n = 0) const { return staging_.mail(n); }
  /// The message was handled.
  GYRE_DEVICE void finish() {
    if (from_ == me_ || is_reply()) return;
    // Every lane has the message since next(), which ends with a barrier.
    const bool grows = waited_ && !another_follows();
    if (PollGroup::rank() == 0) {
      if (grows) consumer_.grow(from_);
      if (consumer_.take(from_, 1)) consumer_.owe(from_);
    }
    ++taken_since_;
  }
  /// Whether the message that next() took is for several actors: begin_fan_out() is to hand it to them.
  GYRE_DEVICE bool is_for_many() const {
    if constexpr (rights.sends_to_many) return FanOutHead::is_copy(message());
    return false;
  }
  /// Hands the message that next() took to the actors that it is for, from the next call of next() on.
  /// @param places_of  places_of(actor_type): how many places find() of next() knows
  template <class PlacesOf>
  GYRE_DEVICE void begin_fan_out(PlacesOf&& places_of) {
    const Envelope envelope = *reinterpret_cast<const Envelope*>(message());
    const bool is_to_topic = envelope.priority == fan_out::to_topic;
    fan_out_.begin(is_to_topic ? subscriptions_.places() : places_of(envelope.actor_type),
                   subscriptions_.last_number());
    finish();
  }
  /// Takes the messages of the mailbox behind the one that next() took from it, as far as they are there,
  /// have its size, and fit.
  /// @param fits  fits(message): whether the message, one a thread, may be handled beside the others. Not
  ///              collective
  /// @returns how many are in hand, the one that next() took counted; 1 or less: that one alone
  template <class Fits>
  GYRE_DEVICE_INLINE uint32_t gather(Fits&& fits) {
    if (from_ == me_ || is_reply() || !another_follows()) return 1;
    const uint32_t rank = PollGroup::rank();
    uint32_t most = staging_.layout.most_mail() - 1;  // behind the first, of this lap
    if (most > next_slot_.left_of_lap()) most = next_slot_.left_of_lap();
    if (most > most_in_a_row - taken_in_row_) most = most_in_a_row - taken_in_row_;
    const uint32_t body_bytes = body_bytes_in(message()), needed = packets_for(body_bytes);
    uint32_t log_width = log_least_width;  // threads that load one message, a packet each
    GYRE_ROLLED
    while (needed > 1u << log_width && log_width < log_warp_size) ++log_width;
    if (needed > 1u << log_width) return 1;
    const uint32_t k = rank & ((1u << log_width) - 1), of_load = rank >> log_width;
    const uint32_t messages_a_load = PollGroup::size() >> log_width;
    bool whole = false;
    uint32_t there = 1;  // bits of the threads whose packet the last load found; at first not 0
    GYRE_ROLLED
    for (uint32_t begin = 0; there != 0 && begin < most; begin += loads_at_once * messages_a_load) {
      Packet packets[loads_at_once];
      for (uint32_t l = 0; l < loads_at_once; ++l) {
        const uint32_t n = begin + l * messages_a_load + of_load;
        const auto* const slot = next_slot_.slot() + (n < most ? n : 0) * shape_.packets();
        packets[l] = WorkersMemory::load(slot[k < needed ? k : 0]);
      }
      PollGroup::sync();
      for (uint32_t l = 0; l < loads_at_once; ++l) {
        const uint32_t first = begin + l * messages_a_load, n = first + of_load;  // behind the one in hand
        if (k < needed && n < most) unpack(packets[l], staging_.mail(n + 1), k);
        // Each thread has one message: of rank r the r-th behind the one in hand.
        there = PollGroup::ballot(packets[l].stamp == next_slot_.stamp());
        const uint32_t all = 0xffffffffu >> (32 - (1u << log_width)), mine = rank - 1 - first;
        if (mine < messages_a_load) whole = (there >> (mine << log_width) & all) == all;
      }
    }
    PollGroup::sync();
    bool joins = false;
    gathered_from_ = from_;
    bool waited = waited_;
    if (rank == 0) joins = fits(message());
    if (rank != 0 && whole && rank <= most) {
      uint32_t* const own = staging_.mail(rank);
      const uint32_t origin = MailHead::unmark(own);
      gathered_from_ = MailHead::worker_of(origin);
      waited = (origin & MailHead::waited) != 0;
      joins = gathered_from_ < layout_.workers && body_bytes_in(own) == body_bytes && fits(own);
    }
    const uint32_t count = PollGroup::leading(joins);
    growing_ = count > most ? 0 : PollGroup::ballot(waited);
    PollGroup::sync();
    if (count < 2) return count;
    move_on(count - 1);
    taken_in_row_ += count - 1;
    return count;
  }
  /// The messages that gather() took were handled.
  GYRE_DEVICE void finish_gathered(uint32_t count) {
    const uint32_t rank = PollGroup::rank(), from = gathered_from_;
    const uint32_t same = PollGroup::match(from) & PollGroup::ballot(rank < count);
    const bool leads = rank < count && (same & ((1u << rank) - 1)) == 0;
    if (leads && (growing_ & same) != 0) consumer_.grow(from);
    // Every thread has read the slots since gather(), which has barriers.
    if (leads && consumer_.take(from, detail::count_bits(same))) consumer_.raise(from);
    PollGroup::sync();
  }
  /// A message of the host is in hand, or several at once.
  GYRE_DEVICE void note_host() {
    taken_in_row_ = 0;
    empty_polls_ = 0;
    ++host_in_row_;
  }
  /// Before a message of the host: looks at the mailbox, if that is due. Polls do too, but in a stream one
  /// poll finds several messages.
  GYRE_DEVICE void load_beside_stream() {
    if (host_in_row_ < most_in_a_row) return;
    host_in_row_ = 0;
    load();
  }

  // ---- Messages out

  /// Sends what the handler staged for actors, in its order, and clears staging. Never waits.
  /// @param others  messages among them that are not for actors: for the host, for timers, or about topics
  GYRE_DEVICE_INLINE void send(uint32_t staged, uint32_t others) {
    staged = PollGroup::broadcast(staged);
    if constexpr (rights.sends_to_many) {
      GYRE_ROLLED
      for (uint32_t first = 0, n = 0; first < staged; first += n) {
        n = staged - first < PollGroup::size() ? staged - first : PollGroup::size();
        const uint32_t alone = send_copies_of_first(first, n);
        send_range(first, first + n, others);
        n += alone;
      }
    } else {
      send_range(0, staged, others);
    }
    counts_.sent += staged - others;
    PollGroup::sync();
    staging_.clear(staged);
    PollGroup::sync();
  }
  /// Whether a staged message is the host's.
  GYRE_DEVICE static bool is_to_host(const uint32_t* message) {
    return rights.tells_host && has_flag(message, envelope_flags::to_host);
  }
  /// Whether it is for a timer.
  GYRE_DEVICE static bool is_for_timer(const uint32_t* message) {
    return rights.sets_timers && has_flag(message, envelope_flags::timer);
  }
  /// Whether a staged message is what the handler asks of topics.
  GYRE_DEVICE static bool is_for_topics(const uint32_t* message) {
    return rights.sends_to_many && FanOutHead::is_request(message);
  }
  /// Whether messages wait, for slots or to be handled: the worker must go on, for nobody wakes it.
  GYRE_DEVICE bool has_waiting() const {
    if constexpr (rights.sends_to_many) {
      if (fan_out_.is_active()) return true;
    }
    return outbox_.count() != 0 || !queue_.empty();
  }
#if !defined(__CUDACC_RTC__)
  /// Calls `visit(worker)` for each worker that messages were published to since the last call.
  template <class Visit>
  void take_reached(Visit&& visit) {
    if (!any_reached_) return;
    any_reached_ = false;
    GYRE_ROLLED
    for (uint32_t word = 0; word < MailLayout::Consumer::owed_words(layout_.workers); ++word) {
      GYRE_ROLLED
      for (uint32_t& bits = staging_.at<uint32_t>(staging_.layout.reached())[word]; bits != 0;
           bits &= bits - 1) {
        visit(word * 32 + detail::lowest_bit(bits));
      }
    }
  }
#endif

  // ---- Timers

  GYRE_DEVICE TimerTable& timers() { return timers_; }
  /// Sends the messages of timers that are due. Not while a message is in hand. Never waits: where the worker
  /// is held, has many messages to handle, or more are due than a handler may send or the queue's ring has
  /// room for, the others stay due.
  /// @param count  count(actor_type): one thread calls it for each message, with the type that set its timer
  template <class Count>
  GYRE_DEVICE_INLINE void send_due(Count&& count) {
    if (!assert_warp_uniform(timers_.any() && !is_held() && !queue_.is_long())) return;
    // Messages to this worker's actors need no spill memory: the queue's ring has room for all of them.
    const uint32_t most = staging_.layout.most_sent, room = queue_.room();
    const uint32_t due = timers_.take_due(
        most < room ? most : room,
        [&](uint32_t n, const uint32_t* message, uint32_t body_bytes, [[maybe_unused]] bool ends) {
          uint32_t* const staged = staging_.message(n);
          copy_message(staged, message, body_bytes);
          if constexpr (rights.sends_large) {
            if (!ends && assert_warp_uniform(BodyPool::is_place(staged)) && !bodies().copy(staged)) {
              // Its timer fires, and finds no chunk for another body.
              if (PollGroup::rank() == 0) count(MailHead::sender_type(staged[MailHead::size_word]));
              ++counts_.sent;
              note(&RareCounts::refused);
              PollGroup::sync();  // that thread has read the message
              staging_.clear(n, 1);
              PollGroup::sync();
              return false;
            }
          }
          return true;
        });
    if (!assert_warp_uniform(due != 0)) return;
    GYRE_ROLLED
    for (uint32_t n = PollGroup::rank(); n < due; n += PollGroup::size())
      count(MailHead::sender_type(staging_.message(n)[MailHead::size_word]));
    send(due, 0);
    // An idle worker publishes the counts of these, too.
    if (empty_polls_ > empty_polls_before_publication) empty_polls_ = 0;
  }

  // ---- Messages to many

  GYRE_DEVICE Subscriptions& subscriptions() { return subscriptions_; }
  /// An actor is gone.
  GYRE_DEVICE void forget_receiver(uint32_t actor_type, uint64_t key) {
    subscriptions_.remove_of(actor_type, key);
    fan_out_.note_gone();
  }

  // ---- Bodies

  GYRE_DEVICE PooledBodies bodies() const { return PooledBodies(staging_); }
  /// The pool that they lie in, for the group's memory.
  GYRE_DEVICE BodyPool body_pool() const { return {begin_, layout_}; }

  // ---- Calls

  GYRE_DEVICE const OpenCalls& calls() const { return calls_; }
  /// Whether the message in hand came by the reply ring.
  GYRE_DEVICE bool is_reply() const { return rights.asks && from_ == from_reply_ring; }
  /// Opens the next `n` calls, which the handler in hand wrote. Before send() if one of them is a promise or
  /// forwarded: send() may refuse its answer, and must find it then. Every polling thread.
  /// @param incarnation  of its actor, in the thread of rank 0
  GYRE_DEVICE void open_calls(uint32_t n, uint32_t incarnation) {
    PollGroup::sync();
    if (PollGroup::rank() == 0) calls_.open(n, incarnation);
    // A forwarded ask is sent after all that came before it was loaded: see WorkerRings::claim_reply().
    WorkersMemory::fence_after_loads();
    PollGroup::sync();
  }
  /// Marks what an actor, which is gone, was to answer. Every polling thread.
  GYRE_DEVICE void fail_promises_of(uint32_t actor_type, uint64_t key) {
    bool any = false;
    const bool is_any_open = calls_.count() != 0;
    GYRE_ROLLED
    for (uint32_t place = PollGroup::rank(); is_any_open && place < OpenCalls::capacity;
         place += PollGroup::size()) {
      OpenCall& call = calls_.at(place);
      if (call.is_open == 0 || call.kind != OpenCall::Kind::promise || call.actor_type != actor_type ||
          call.key != key) {
        continue;
      }
      call.failure = uint16_t(Status::actor_stopped);
      any = true;
    }
    failing_ |= PollGroup::any(any);
    PollGroup::sync();
  }
  /// Whether there are calls that OpenCall::failure says how to end; asked once.
  GYRE_DEVICE bool take_failing() {
    const bool failing = failing_;
    failing_ = false;
    return failing;
  }
  /// Closes an open call. Every polling thread.
  GYRE_DEVICE void close(OpenCall& call) {
    PollGroup::sync();
    if (PollGroup::rank() == 0) calls_.close(call);
    PollGroup::sync();
  }
  /// Sends the reply to an ask of an actor. Never waits. Every polling thread.
  /// @param id       OpenCalls': of the ask
  /// @param flags    envelope_flags::error, out_of_line, or 0
  /// @param message  the body, and in front of it room for an envelope; in the group's own memory
  GYRE_DEVICE void reply(uint64_t id, uint8_t flags, uint32_t* message, uint32_t body_bytes) {
    const uint32_t to = OpenCalls::worker_of(id);
    if (to >= layout_.workers) return;  // memory was overwritten
    PollGroup::sync();                  // every thread has read what the message was before
    uint64_t ticket = 0;
    if (PollGroup::rank() == 0) {
      *reinterpret_cast<Envelope*>(message) = {id, body_bytes, 0, 0, 0, call_message::reply, 0, 0, flags};
      ticket = reply_rings_.claim_reply(to);
    }
    PollGroup::sync();  // the envelope is written
    const uint32_t needed = packets_for(body_bytes);
    const Packet mine = own_packet(message, needed);
    const uint32_t low = PollGroup::broadcast(uint32_t(ticket));
    const uint32_t high = PollGroup::broadcast(uint32_t(ticket >> 32));
    PollGroup::sync();  // the stores of every thread come after the first one's loads
    const RingShape& shape = reply_rings_.shape;
    publish_one({reply_rings_.ring(to), shape, uint64_t(high) << 32 | low}, shape, mine, message, needed);
    note_reached(to);
    ++counts_.sent;
    PollGroup::sync();  // every thread has read the message
  }

  // ---- Counts

  GYRE_DEVICE void count_processed(uint32_t n) { counts_.taken += n; }
  GYRE_DEVICE void count_failed() {
    ++counts_.taken;
    note(&RareCounts::failed);
  }
  /// Messages of actors that the worker has taken, however they ended.
  GYRE_DEVICE uint64_t taken() const { return counts_.taken; }
  GYRE_DEVICE uint64_t sent() const { return counts_.sent; }
  GYRE_DEVICE void count_told(uint32_t sent, uint32_t refused) {
    counts_.told_sent += sent;
    counts_.told_refused += refused;
  }
  GYRE_DEVICE uint64_t told_sent() const { return counts_.told_sent; }
  /// Publishes the counts, for the host to read. Relaxed: numbers alone.
  GYRE_DEVICE void publish_counts() {
    if (PollGroup::rank() != 0) return;
    const uint64_t depth = mailboxes_.rings.claimed(me_) - next_slot_.ticket();
    RareCounts& rare = staging_.rare_counts();
    if (depth > rare.most_in_mailbox) rare.most_in_mailbox = depth;
    Memory::store_relaxed(line_->mail_spilled, rare.spilled);
    Memory::store_relaxed(line_->mailbox_depth, depth);
    Memory::store_relaxed(line_->mailbox_most, rare.most_in_mailbox);
    Memory::store_relaxed(line_->outbox_most, outbox_.most());
    Memory::store_relaxed(line_->mail_sent, counts_.sent);
    Memory::store_relaxed(line_->mail_processed, counts_.taken - rare.failed);
    Memory::store_relaxed(line_->mail_failed, rare.failed);
    Memory::store_relaxed(line_->mail_refused, rare.refused);
    if constexpr (rights.sends_large) {
      const BodyCounts& bodies = staging_.body_counts();
      Memory::store_relaxed(line_->bodies_taken, bodies.taken);
      Memory::store_relaxed(line_->bodies_freed, bodies.freed);
      Memory::store_relaxed(line_->bodies_refused, bodies.refused);
    }
    if constexpr (rights.tells_host) {
      Memory::store_relaxed(line_->told_sent, counts_.told_sent);
      Memory::store_relaxed(line_->told_refused, counts_.told_refused);
    }
    if constexpr (rights.sets_timers) {
      Memory::store_relaxed(line_->timers_set, timers_.counts().set);
      Memory::store_relaxed(line_->timers_done, timers_.counts().done);
      Memory::store_relaxed(line_->timers_cancelled, timers_.counts().cancelled);
    }
  }

 private:
  using Cell = WorkersMemory::Cell;
  using OutboxType = typename detail::OutboxOf<rights.sends_to_many>::Type;
  enum : uint32_t {
    empty_polls_before_publication = 8,
    // log2 of the threads that load or store a message together, a packet each, at least.
    log_least_width = PollGroup::size() == 1 ? 0 : 2,
    types_word = 6,  // of a message
    from_reply_ring = 0xffffffff,
    loads_at_once = 4,  // of a thread; with more, NVRTC spills registers
    // Before a worker that is held, and whose outbox stays as it is, empties its mailbox. A matter of speed:
    // most outboxes have room again before.
    passes_before_spill = 8,
    // Of a worker that has messages to handle, from one pass over its outbox to the next.
    passes_between_retries = 4
  };

  // What claim() gave the threads that have a message.
  struct Claims {
    uint32_t claimed;  // bits of threads
    uint64_t ticket;   // of the calling thread
  };

  GYRE_DEVICE Mail(const Bridge& bridge, Bridge::Place place, const EngineMemory& memory,
                   const Staging& staging)
      : layout_(MailLayout::of(place.workers, bridge.shape.slot_bytes, place.chunks, rights)),
        begin_(MailLayout::begin(memory, place.worker, place.workers)),
        own_(begin_ + layout_.own(place.worker)),
        shape_(layout_.shape()),
        placement_(place.workers),
        me_(place.worker),
        line_(bridge.worker_line),
        staging_(of_all_workers(staging, place.workers)),
        mailboxes_{{reinterpret_cast<Packet*>(begin_), reinterpret_cast<uint64_t*>(begin_ + layout_.tails()),
                    shape_},
                   reinterpret_cast<uint32_t*>(begin_ + layout_.limits()),
                   place.workers,
                   MailLayout::allowance},
        producer_(mailboxes_, me_, staging_.at<MailLayout::Producer::Peer>(staging_.layout.producers())),
        consumer_(mailboxes_, me_, staging_.at<MailLayout::Consumer::Peer>(staging_.layout.consumers()),
                  staging_.at<uint32_t>(staging_.layout.owed()), staging_.spare()),
        queue_(own_ + layout_.queue(), begin_ + layout_.pool_chunks(), whole<uint32_t>(layout_.pool_next()),
               {whole<WorkersMemory::Word>(layout_.pool_state()),
                whole<WorkersMemory::Word>(layout_.pool_links()), layout_.chunks},
               layout_.queue_stride()),
        outbox_(own_ + layout_.outbox(), staging_.at<uint32_t>(staging_.layout.waits()), layout_,
                own_ + layout_.outbox_receivers()),
        next_slot_(mailboxes_.rings.ring(me_), shape_),
        next_cell_(cell_of_next_slot()),
        reply_rings_{reinterpret_cast<Packet*>(begin_ + layout_.reply_rings()),
                     reinterpret_cast<uint64_t*>(begin_ + layout_.reply_tails()), layout_.reply_shape()},
        replies_(reply_rings_, me_),
        next_reply_cell_(cell_of_next_reply()),
        calls_(own_ + layout_.open_call_table(), &staging_.open_calls(), me_),
        timers_(own_ + layout_.timer_table(), layout_.queue_stride(), staging_),
        subscriptions_(own_ + layout_.subscription_table(), staging_),
        fan_out_(own_ + layout_.fan_out_in_hand(), staging_) {}

  GYRE_DEVICE static Staging of_all_workers(Staging staging, uint32_t workers) {
    staging.layout.workers = workers;
    return staging;
  }
  GYRE_DEVICE static bool has_flag(const uint32_t* message, uint8_t flag) {
    return (reinterpret_cast<const Envelope*>(message)->flags & flag) != 0;
  }
  GYRE_DEVICE static bool is_to_actor(const uint32_t* message) {
    if constexpr (rights.sends_to_many) {
      if (FanOutHead::is_request(message)) return false;
    }
    if constexpr (!rights.tells_host && !rights.sets_timers) return true;
    return !has_flag(message, envelope_flags::to_host | envelope_flags::timer);
  }
  // Of what all workers share.
  template <class T>
  GYRE_DEVICE T* whole(uint64_t offset) const {
    return reinterpret_cast<T*>(begin_ + offset);
  }
  GYRE_DEVICE uint32_t worker_of(const uint32_t* message) const {
    if constexpr (rights.asks) {
      if (types_in(message) >> 16 == call_message::answer) {
        const uint32_t worker = OpenCalls::worker_of(message[0] | uint64_t(message[1]) << 32);
        return worker < layout_.workers ? worker : me_;  // where no call is found
      }
    }
    return placement_.worker_of(message[4] | uint64_t(message[5]) << 32);
  }
  // Whether the calling thread's packets begin a message; the mailbox's, or a reply. Not collective.
  GYRE_DEVICE bool has_begun() const {
    bool is_there = packet_.stamp == next_slot_.stamp();
    if constexpr (rights.asks) is_there |= reply_packet_.stamp == replies_.next().stamp();
    return PollGroup::rank() == 0 && is_there;
  }
  GYRE_DEVICE bool has_mail() const {
    return PollGroup::any(PollGroup::rank() == 0 && packet_.stamp == next_slot_.stamp());
  }
  GYRE_DEVICE bool has_reply() const {
    return PollGroup::any(PollGroup::rank() == 0 && reply_packet_.stamp == replies_.next().stamp());
  }
  // The answer to an open call was refused, if there is one.
  GYRE_DEVICE void fail(OpenCall* call) {
    if (call == nullptr || call->kind != OpenCall::Kind::promise) return;
    PollGroup::sync();
    if (PollGroup::rank() == 0) call->failure = uint16_t(Status::mailbox_full);
    failing_ = true;
    PollGroup::sync();
  }
  // A message finds no memory to wait in. Who asked is told.
  GYRE_DEVICE void refuse(const uint32_t* message) {
    note(&RareCounts::refused);
    if constexpr (rights.sends_to_many) {
      if (FanOutHead::is_copy(message)) return;
    }
    if constexpr (rights.sends_large) bodies().end(message);
    if constexpr (rights.asks) {
      const Envelope envelope = *reinterpret_cast<const Envelope*>(message);
      if (envelope.message_type == call_message::answer) return fail(calls_.find(envelope.correlation));
      if ((envelope.flags & envelope_flags::ask) == 0) return;
      uint32_t* const error = staging_.error();
      PollGroup::sync();
      if (PollGroup::rank() == 0)
        *reinterpret_cast<ErrorBody*>(error + Staging::envelope_words) = {Status::mailbox_full, me_,
                                                                          envelope.key};
      reply(envelope.correlation, envelope_flags::error, error, sizeof(ErrorBody));
    }
  }
  // Where next() takes a message from. `taken`: choose() took it, of those that it hands to many. A message
  // of the mailbox or a reply may not be whole yet: then it is not taken.
  enum class Source : uint32_t { none, mailbox, reply, taken };
  struct Choice {
    Source source;
    bool held;
    bool queue;  // from the queue, if nothing is taken from the source
  };
  // Whether next() must look at more than what load() found: messages wait elsewhere, or the host has its
  // turn. Seldom; one test for all of it.
  GYRE_DEVICE bool waits_elsewhere() const { return has_waiting() | (taken_in_row_ >= most_in_a_row); }
  // choose() where waits_elsewhere() is false.
  GYRE_DEVICE Choice choose_where_nothing_waits(bool found) {
    const bool mail = rights.asks ? has_mail() : found;  // `found` covers replies, too
    bool reply = false;
    if constexpr (rights.asks) {
      reply = has_reply() & !(took_reply_ & mail);
      took_reply_ = reply;
    }
    return {reply ? Source::reply : mail ? Source::mailbox : Source::none, false, false};
  }
  // Chooses between all that there may be. Sends what waits in the outbox; takes the message for the next of
  // several actors.
  template <class MostSent, class Find>
  GYRE_DEVICE_INLINE Choice choose(MostSent& most_sent, [[maybe_unused]] Find& find) {
    bool held = is_held(), progressed = false;
    const bool may_wait = took_one_ && !held && ++passes_ % passes_between_retries != 0;
    if (outbox_.count() != 0 && !may_wait) {
      progressed = send_waiting() != 0;
      held = is_held();
    }
    if (!held || progressed) passes_held_ = 0;
    if (!held && left_while_held_ != staging_.layout.most_sent) {
      left_while_held_ = staging_.layout.most_sent;
      taken_in_row_ = most_in_a_row;  // what needed more room has its turn
    }
    if (taken_in_row_ >= most_in_a_row) {
      taken_in_row_ = 0;
      queue_row_ = queue_.is_long() && !queue_row_;
      queue_first_ = true;
      load();  // while the host's ring is polled
      return {Source::none, false, false};
    }
    if constexpr (rights.asks) {
      // In turns with what others sent.
      bool others_first = took_reply_ && (has_mail() || !queue_.empty());
      if constexpr (rights.sends_to_many) others_first |= took_reply_ && fan_out_.is_active();
      took_reply_ = false;
      if (!held && !others_first && has_reply()) {
        took_reply_ = true;
        return {Source::reply, held, false};
      }
    }
    if constexpr (rights.sends_to_many) {
      if (assert_warp_uniform(fan_out_.is_active())) {
        const FanOut::Found found = hand_out(held, most_sent, find);
        if (found == FanOut::Found::message) return {Source::taken, held, false};
        if (found == FanOut::Found::later) return {Source::none, held, false};
      }
    }
    const bool may_take_from_queue =
        !queue_.empty() && (!held || may_send(most_sent_by_mail(most_sent, queue_.front() + types_word)));
    // Messages that were moved out of the mailbox come before those that are in it.
    const bool queue_comes_first = queue_first_ || queue_row_ || moved_ != 0;
    queue_first_ = false;
    const bool from_mailbox = !(may_take_from_queue && queue_comes_first) && moved_ == 0 && has_mail() &&
                              (!held || may_take_ahead(most_sent));
    return {from_mailbox ? Source::mailbox : Source::none, held, may_take_from_queue};
  }
  struct KeepPacket;
  struct UnmarkPacket;
  template <class Change>
  GYRE_DEVICE_INLINE bool unpack_mail(const RingCursor<WorkersMemory>& at, const Packet& mine,
                                      uint32_t needed, Change&& change);
  GYRE_DEVICE_INLINE bool take_reply();
  template <class MostSent, class Find>
  GYRE_DEVICE_INLINE FanOut::Found hand_out(bool held, MostSent& most_sent, Find& find);
  GYRE_DEVICE_INLINE Packet own_packet(const uint32_t* message, uint32_t needed) const;
  GYRE_DEVICE_INLINE void publish_one(const RingCursor<WorkersMemory>& at, const RingShape& shape,
                                      Packet mine, const uint32_t* message, uint32_t needed);
  GYRE_DEVICE_INLINE Claims send_alone(uint32_t to, const uint32_t* message);
  GYRE_DEVICE_INLINE void send_range(uint32_t first, uint32_t end, uint32_t others);
  GYRE_DEVICE_INLINE uint32_t send_copies_of_first(uint32_t first, uint32_t& n);
  // Returns false.
  GYRE_DEVICE bool none_taken() {
    note_quiet();
    return false;
  }
  GYRE_DEVICE void note(uint64_t RareCounts::*count) {
    if (HandlerGroup::rank() == 0) ++(staging_.rare_counts().*count);
  }
  // A message of an actor is taken.
  GYRE_DEVICE void note_taken() {
    ++taken_in_row_;
    host_in_row_ = 0;
    empty_polls_ = 0;
  }
  // RequestHead::types() of a message.
  GYRE_DEVICE static uint32_t types_in(const uint32_t* message) { return message[types_word]; }
  // While the worker is held: whether there is room for what a handler sends. Handlers that send fewer than
  // others may send, together, no more than one of those: else they could keep the outbox full for ever.
  GYRE_DEVICE bool may_send(uint32_t most) const {
    return most <= outbox_.room() && most <= left_while_held_;
  }
  // How many messages the worker may send when it takes mail, by two words of it from types_word on: none for
  // a copy for many, for each of which it sends when it hands the copy out.
  template <class MostSent>
  GYRE_DEVICE static uint32_t most_sent_by_mail(MostSent&& most_sent, const uint32_t* words) {
    if constexpr (rights.sends_to_many) {
      if (FanOutHead::is_copy_by(words[1])) return 0;
    }
    return most_sent(words[0]);
  }
  // may_send() of the handler of the message whose begin found() saw; false where that is not known yet.
  template <class MostSent>
  GYRE_DEVICE bool may_take_ahead(MostSent&& most_sent) const {
    static_assert(types_word % words_a_packet == 0);
    constexpr uint32_t packet = types_word / words_a_packet;
    if constexpr (PollGroup::size() <= packet) {
      const Packet ahead = WorkersMemory::load(next_slot_.slot()[packet]);
      return ahead.stamp == next_slot_.stamp() && may_send(most_sent_by_mail(most_sent, ahead.data));
    }
    // take_from_mailbox() takes the same packet, or none if it is not there.
    const uint32_t words[] = {PollGroup::broadcast_from(packet_.data[0], packet),
                              PollGroup::broadcast_from(packet_.data[1], packet)};
    return may_send(most_sent_by_mail(most_sent, words));
  }

  // By one fetch-add a mailbox.
  GYRE_DEVICE_INLINE Claims claim(bool has_one, uint32_t to) {
    const EachClaim claim = claim_each(PollGroup{}, producer_, has_one, to);
    return {PollGroup::ballot(claim.claimed), claim.ticket};
  }
  template <class MessageOf>
  GYRE_DEVICE_INLINE void publish(const Claims& claims, uint32_t to, uint32_t count, MessageOf&& message);
  GYRE_DEVICE void note_reached(uint32_t worker) {
#if defined(__CUDACC_RTC__)
    (void)worker;
#else
    any_reached_ = true;
    staging_.at<uint32_t>(staging_.layout.reached())[worker / 32] |= 1u << worker % 32;
#endif
  }
  GYRE_DEVICE_INLINE uint32_t send_waiting();
  GYRE_DEVICE_INLINE void empty_mailbox();

  GYRE_DEVICE_INLINE void take_from_queue();
  GYRE_DEVICE_INLINE bool take_from_mailbox();
  // What load() loads of the mailbox in this thread: the packet of its rank, counted from the next slot on.
  // Behind the end of the lap: the first packet again.
  GYRE_DEVICE const Cell* cell_of_next_slot() const {
    const uint32_t k = PollGroup::rank();
    return next_slot_.slot() + (k < next_slot_.left_of_lap() * shape_.packets() ? k : 0);
  }
  // The same of the reply ring, to the end of its next slot.
  GYRE_DEVICE const Cell* cell_of_next_reply() const {
    const uint32_t k = PollGroup::rank();
    return replies_.next().slot() + (k < shape_.packets() ? k : 0);
  }
  // `n` messages of the mailbox were taken. Begins to load what lies behind them.
  GYRE_DEVICE void move_on(uint32_t n = 1) {
    next_slot_.advance(shape_, n);
    next_cell_ = cell_of_next_slot();
    load();
  }
  // Passes over a slot that holds no message, which happens only where memory was overwritten. Its sender is
  // not known: it gets no slot back.
  GYRE_DEVICE bool skip_slot() {
    count_failed();
    move_on();
    return false;
  }
  // Whether a message came with the one in hand, or one was there soon after it.
  GYRE_DEVICE bool another_follows() const {
    return shape_.packets() < PollGroup::size() ? PollGroup::any(follows_) : has_mail();
  }
  // Raises the limits of senders that are owed one.
  GYRE_DEVICE void give_back() {
    if (taken_since_ == 0) return;
    taken_since_ = 0;
    consumer_.give_back(PollGroup{});
  }

  MailLayout layout_;
  uint8_t* begin_;
  uint8_t* own_;  // what this worker alone uses
  RingShape shape_;
  Placement placement_;
  uint32_t me_;
  WorkerLine* line_;
  Staging staging_;
  Mailboxes<WorkersMemory> mailboxes_;
  MailLayout::Producer producer_;
  MailLayout::Consumer consumer_;
  MailQueue queue_;
  OutboxType outbox_;
  RingCursor<WorkersMemory> next_slot_;
  const Cell* next_cell_;  // see cell_of_next_slot()
  WorkerRings<WorkersMemory> reply_rings_;
  ReplyRing<WorkersMemory> replies_;
  const Cell* next_reply_cell_;  // see cell_of_next_reply()
  OpenCalls calls_;
  TimerTable timers_;
  Subscriptions subscriptions_;
  FanOut fan_out_;
  Packet packet_{};           // of the next slot, that this thread has loaded
  Packet reply_packet_{};     // of the reply ring's next slot, as packet_
  uint32_t moved_ = 0;        // messages in the queue that were moved out of the mailbox
  uint32_t passes_held_ = 0;  // that the worker is held and could send nothing
  // What handlers may still send before the outbox has room again for any.
  uint32_t left_while_held_ = staging_.layout.most_sent;
  uint32_t passes_ = 0;         // that found messages waiting in the outbox, and others to handle
  bool took_reply_ = false;     // the last call of next() took a reply
  bool failing_ = false;        // an open call is to end with an error
  bool took_one_ = false;       // the last call of next() took a message
  uint32_t taken_in_row_ = 0;   // messages of actors, since the host's ring was polled
  uint32_t host_in_row_ = 0;    // messages of the host, since one of an actor
  bool queue_first_ = false;    // before the mailbox, for one message
  bool queue_row_ = false;      // and for a row of them
  uint32_t from_ = 0;           // the worker that the message in hand came from
  bool waited_ = false;         // the message in hand waited for room in the mailbox
  bool follows_ = false;        // this thread saw that another lies behind it in the mailbox
  uint32_t gathered_from_ = 0;  // that which this thread's message came from, of those that gather() took
  uint32_t growing_ = 0;      // bits of the threads whose message waited, where gather() took all there were
  uint32_t taken_since_ = 0;  // messages of the mailbox since limits were raised
  uint32_t empty_polls_ = 0;
  Counts counts_;
#if !defined(__CUDACC_RTC__)
  bool any_reached_ = false;
#endif
};

}  // namespace gyre

#include <gyre/device/worker/mail_in.hpp>
#include <gyre/device/worker/mail_out.hpp>
