// The mail of one worker: messages between actors, out and in. Compiled only into sets with a handler that
// sends.
//
//   staging   what the handler in hand builds; sent when it has ended well
//   mailbox   what other workers sent (bridge/mailbox.hpp)
//   queue     messages to actors of this worker, and those that were moved out of the mailbox, in their order
//   outbox    messages to other workers that no slot could be claimed for yet
//
// A worker whose outbox has no room for what one handler may send is held: it handles nothing until messages
// have left. So senders wait for receivers, and nothing is lost. But there is no deadlock: a worker that is
// held for long moves its mailbox to its queue, by which others can send to it. Outboxes wait for mailboxes,
// and mailboxes wait for nothing. Only where the memory for queues is used up messages are refused, and
// counted.
#pragma once

#include <gyre/device/platform.hpp>
#include <gyre/device/worker/mail_queues.hpp>
#include <gyre/device/worker/staging.hpp>

namespace gyre {

/// One worker's mail. The polling threads' alone, each with an object of its own and equal members. Refers to
/// memory of the engine and of the group; stays where it is.
class Mail {
 public:
  /// Counts of messages; see WorkerLine.
  struct Counts {
    uint64_t sent = 0, processed = 0, failed = 0, refused = 0;
  };
  /// Messages of actors, or of the host, while there may be one of the other; and of the queue or the
  /// mailbox.
  enum : uint32_t { most_in_a_row = 32 };

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
  }

  // ---- Messages in

  /// Begins to load the next message of the mailbox. RequestReader::poll() calls it beside each of its loads.
  GYRE_DEVICE void load() {
    const uint32_t k = PollGroup::rank();
    packet_ = WorkersMemory::load(next_slot_.slot()[k < shape_.packets() ? k : 0]);
  }
  /// Whether load() found the begin of a message.
  GYRE_DEVICE bool found() const {
    return PollGroup::any(PollGroup::rank() == 0 && packet_.stamp == next_slot_.stamp());
  }
  /// Polls since the last message.
  GYRE_DEVICE uint32_t empty_polls() const { return empty_polls_; }

  /// Takes the next message, if one comes before the host's; sends what waits, and gives slots back. The
  /// host's ring is polled where it says no, unless the worker is held.
  GYRE_DEVICE bool next() {
    const bool progressed = outbox_.count() != 0 && send_waiting() != 0;
    if (is_held()) {
      passes_held_ = progressed ? 0 : passes_held_ + 1;
      if (passes_held_ >= passes_before_spill) empty_mailbox();
      return poll_is_empty();
    }
    passes_held_ = 0;
    if (taken_in_row_ >= most_in_a_row) {
      taken_in_row_ = 0;
      mailbox_first_ = !mailbox_first_;
      give_back();
      load();  // while the host's ring is polled
      return poll_is_empty();
    }
    if (host_in_row_ >= most_in_a_row) {
      host_in_row_ = 0;
      load();  // polls of a stream need not have
    }
    if (mailbox_first_ && take_next_from_mailbox()) return true;
    if (!queue_.empty()) return take_from_queue();
    if (!mailbox_first_ && take_next_from_mailbox()) return true;
    give_back();
    return poll_is_empty();
  }
  /// Whether the outbox has no room for what a handler may send: no message is handled then.
  GYRE_DEVICE bool is_held() const { return outbox_.room() < staging_.layout.most_sent; }
  /// The message that next() took.
  GYRE_DEVICE const uint32_t* message() const { return staging_.memory + staging_.layout.mail(); }
  /// The message was handled.
  GYRE_DEVICE void finish() {
    if (from_ == me_) return;
    // Every lane has the message since next(), which ends with a barrier.
    if (PollGroup::rank() == 0 && consumer_.take(from_, 1)) consumer_.owe(from_);
    ++taken_since_;
  }
  /// A message of the host is handled, or several at once.
  GYRE_DEVICE void note_host() {
    ++host_in_row_;
    taken_in_row_ = 0;
    empty_polls_ = 0;
  }

  // ---- Messages out

  /// Sends what the handler staged, in its order, and clears staging. Never waits.
  GYRE_DEVICE void send(uint32_t staged) {
    staged = PollGroup::broadcast(staged);
    for (uint32_t first = 0; first < staged; first += PollGroup::size()) {
      const uint32_t left = staged - first, n = left < PollGroup::size() ? left : PollGroup::size();
      const bool has_one = PollGroup::rank() < n;
      const uint32_t to = has_one ? worker_of(staging_.message(first + PollGroup::rank())) : me_;
      const bool may_go = has_one && to != me_ && !outbox_.has_one_for(to);
      const Claims claims = claim(may_go, to);
      publish(claims, to, [&](uint32_t k) { return staging_.message(first + k); });
      const uint32_t to_itself = PollGroup::ballot(has_one && to == me_);
      for (uint32_t k = 0; k < n; ++k) {
        if ((claims.claimed >> k & 1) != 0) continue;
        const uint32_t* const message = staging_.message(first + k);
        const uint32_t body_bytes = MailHead::body_bytes(body_bytes_in(message));
        if ((to_itself >> k & 1) == 0) {
          outbox_.push(PollGroup::broadcast_from(to, k), message, body_bytes);
        } else if (!queue_.push(message, body_bytes)) {
          ++counts_.refused;
        }
      }
    }
    counts_.sent += staged;
    PollGroup::sync();
    const uint32_t words = staged * staging_.layout.message_words;
    for (uint32_t i = PollGroup::rank(); i < words; i += PollGroup::size()) staging_.message(0)[i] = 0;
    PollGroup::sync();
  }
  /// Whether messages wait, for slots or to be handled: the worker must go on, for nobody wakes it.
  GYRE_DEVICE bool has_waiting() const { return outbox_.count() != 0 || !queue_.empty(); }
#if !defined(__CUDACC_RTC__)
  /// Calls `visit(worker)` for each worker that messages were published to since the last call.
  template <class Visit>
  void take_reached(Visit&& visit) {
    if (!any_reached_) return;
    any_reached_ = false;
    for (uint32_t word = 0; word < MailLayout::Consumer::owed_words(layout_.workers); ++word) {
      for (uint32_t& bits = own<uint32_t>(layout_.reached())[word]; bits != 0; bits &= bits - 1) {
        visit(word * 32 + detail::lowest_bit(bits));
      }
    }
  }
#endif

  // ---- Counts

  GYRE_DEVICE void count_processed() { ++counts_.processed; }
  GYRE_DEVICE void count_failed() { ++counts_.failed; }
  /// Publishes the counts, for the host to read. Relaxed: numbers alone.
  GYRE_DEVICE void publish_counts() const {
    if (PollGroup::rank() != 0) return;
    Memory::store_relaxed(line_->mail_sent, counts_.sent);
    Memory::store_relaxed(line_->mail_processed, counts_.processed);
    Memory::store_relaxed(line_->mail_failed, counts_.failed);
    Memory::store_relaxed(line_->mail_refused, counts_.refused);
  }

 private:
  enum : uint32_t {
    empty_polls_before_publication = 8,
    // Before a worker that is held, and whose outbox stays as it is, empties its mailbox. A matter of speed:
    // most outboxes have room again before.
    passes_before_spill = 8
  };

  // What claim() gave the threads that have a message.
  struct Claims {
    uint32_t claimed;  // bits of threads
    uint64_t ticket;   // of the calling thread
  };

  GYRE_DEVICE Mail(const Bridge& bridge, Bridge::Place place, const EngineMemory& memory,
                   const Staging& staging)
      : layout_{place.workers, bridge.shape.slot_bytes, place.spill_chunks},
        begin_(MailLayout::begin(memory, place.worker, place.workers)),
        own_(begin_ + layout_.own(place.worker)),
        shape_(layout_.shape()),
        me_(place.worker),
        line_(bridge.worker_line),
        staging_(staging),
        mailboxes_{{reinterpret_cast<Packet*>(begin_), reinterpret_cast<uint64_t*>(begin_ + layout_.tails()),
                    shape_},
                   reinterpret_cast<uint32_t*>(begin_ + layout_.limits()),
                   place.workers,
                   MailLayout::allowance},
        producer_(mailboxes_, me_, own<MailLayout::Producer::Peer>(layout_.producer_peers())),
        consumer_(mailboxes_, me_, own<MailLayout::Consumer::Peer>(layout_.consumer_peers()),
                  own<uint32_t>(layout_.owed()), *own<uint32_t>(layout_.spare())),
        queue_(own_ + layout_.queue(), begin_ + layout_.pool_chunks(), whole<uint32_t>(layout_.pool_next()),
               {whole<WorkersMemory::Word>(layout_.pool_state()),
                whole<WorkersMemory::Word>(layout_.pool_links()), layout_.chunks},
               layout_.queue_stride()),
        outbox_(own_ + layout_.outbox(), layout_),
        next_slot_(mailboxes_.rings.ring(me_), shape_) {}

  template <class T>
  GYRE_DEVICE T* own(uint64_t offset) const {
    return reinterpret_cast<T*>(own_ + offset);
  }
  // Of what all workers share.
  template <class T>
  GYRE_DEVICE T* whole(uint64_t offset) const {
    return reinterpret_cast<T*>(begin_ + offset);
  }
  GYRE_DEVICE uint32_t worker_of(const uint32_t* message) const {
    return uint32_t((message[4] | uint64_t(message[5]) << 32) % layout_.workers);
  }
  // Returns false.
  GYRE_DEVICE bool poll_is_empty() {
    if (empty_polls_ == empty_polls_before_publication) publish_counts();
    ++empty_polls_;
    return false;
  }
  // A message of an actor is taken.
  GYRE_DEVICE void note_taken() {
    ++taken_in_row_;
    host_in_row_ = 0;
    empty_polls_ = 0;
  }
  // Messages that were moved out of the mailbox come before those that are in it.
  GYRE_DEVICE bool take_next_from_mailbox() {
    const bool is_there = found();
    return is_there && moved_ == 0 && take_from_mailbox();
  }

  // By one fetch-add a mailbox.
  GYRE_DEVICE Claims claim(bool has_one, uint32_t to) {
    const EachClaim claim = claim_each(PollGroup{}, producer_, has_one, to);
    return {PollGroup::ballot(claim.claimed), claim.ticket};
  }
  // Publishes the messages that slots were claimed for. Nothing in it fails or waits.
  // @param message  as a function of the thread that claimed
  template <class MessageOf>
  GYRE_DEVICE void publish(const Claims& claims, uint32_t to, MessageOf&& message) {
    for (uint32_t left = claims.claimed; left != 0; left &= left - 1) {
      const uint32_t k = detail::lowest_bit(left);
      const uint32_t worker = PollGroup::broadcast_from(to, k);
      const uint64_t low = PollGroup::broadcast_from(uint32_t(claims.ticket), k);
      const uint64_t high = PollGroup::broadcast_from(uint32_t(claims.ticket >> 32), k);
      const uint32_t* const words = message(k);
      gyre::publish<WorkersMemory>(PollGroup{}, mailboxes_.rings.ring(worker), shape_, low | high << 32,
                                   words, MailHead::body_bytes(body_bytes_in(words)));
      note_reached(worker);
    }
  }
  GYRE_DEVICE void note_reached(uint32_t worker) {
#if defined(__CUDACC_RTC__)
    (void)worker;
#else
    any_reached_ = true;
    own<uint32_t>(layout_.reached())[worker / 32] |= 1u << worker % 32;
#endif
  }
  // Sends of the outbox what can be sent now; returns how many messages.
  GYRE_DEVICE uint32_t send_waiting() {
    return outbox_.send_each([&](const uint32_t* message) { return worker_of(message); },
                             [&](bool has_one, uint32_t to, Outbox::MessageOf message_of) {
                               const Claims claims = claim(has_one, to);
                               publish(claims, to, message_of);
                               return claims.claimed;
                             });
  }
  // Moves up to a row of messages from the mailbox to the queue, so that others can send. Where there is no
  // memory for them they are refused: without that two workers might wait for each other for ever.
  GYRE_DEVICE void empty_mailbox() {
    for (uint32_t n = 0; n < most_in_a_row && found() && take_from_mailbox(); ++n) {
      if (queue_.push(message(), body_bytes_in(message()))) {
        ++moved_;
      } else {
        ++counts_.refused;
      }
      finish();
    }
    give_back();
  }

  GYRE_DEVICE bool take_from_queue() {
    uint32_t* const message = staging_.memory + staging_.layout.mail();
    const uint32_t* const front = queue_.front();
    PollGroup::sync();
    copy_message(message, front, MailHead::body_bytes(body_bytes_in(front)));
    // Those that were moved have no sender any more.
    if ((message[MailHead::origin_word] & MailHead::origin_mask) == 0) --moved_;
    PollGroup::sync();
    if (PollGroup::rank() == 0) {
      message[MailHead::size_word] &= MailHead::size_mask;
      message[MailHead::origin_word] &= ~MailHead::origin_mask;
    }
    PollGroup::sync();
    queue_.pop();
    from_ = me_;
    note_taken();
    return true;
  }
  // Takes the message whose begin found() saw, if it is whole, and begins to load the one behind it.
  GYRE_DEVICE bool take_from_mailbox() {
    const uint32_t k = PollGroup::rank();
    const uint32_t body_bytes = MailHead::body_bytes(PollGroup::broadcast(packet_.data[MailHead::size_word]));
    const uint32_t needed = packets_for(body_bytes);
    if (needed > shape_.packets()) return skip_slot();
    uint32_t* const message = staging_.memory + staging_.layout.mail();
    bool whole = k >= needed || packet_.stamp == next_slot_.stamp();
    uint32_t origin = 0;
    Packet packet = packet_;
    PollGroup::sync();
    for (uint32_t p = k; p < needed; p += PollGroup::size()) {
      if (p != k) packet = WorkersMemory::load(next_slot_.slot()[p]);
      whole = whole && packet.stamp == next_slot_.stamp();
      if (p == MailHead::origin_word / words_a_packet)
        origin = packet.data[MailHead::origin_word % words_a_packet] & MailHead::origin_mask;
      MailHead::unmark(packet, p);
      unpack(packet, message, p);
    }
    if (!PollGroup::all(whole)) {
      packet_.stamp = 0;  // the next poll loads it again
      return false;
    }
    origin = PollGroup::broadcast_from(origin, MailHead::origin_word / words_a_packet % PollGroup::size());
    if (origin - 1 >= layout_.workers) return skip_slot();
    from_ = origin - 1;
    PollGroup::sync();
    next_slot_.advance(shape_);
    load();
    note_taken();
    return true;
  }
  // Passes over a slot that holds no message, which happens only where memory was overwritten. Its sender is
  // not known: it gets no slot back.
  GYRE_DEVICE bool skip_slot() {
    ++counts_.failed;
    next_slot_.advance(shape_);
    load();
    return false;
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
  uint32_t me_;
  WorkerLine* line_;
  Staging staging_;
  Mailboxes<WorkersMemory> mailboxes_;
  MailLayout::Producer producer_;
  MailLayout::Consumer consumer_;
  MailQueue queue_;
  Outbox outbox_;
  RingCursor<WorkersMemory> next_slot_;
  Packet packet_{};             // of the next slot, that this thread has loaded
  uint32_t moved_ = 0;          // messages in the queue that were moved out of the mailbox
  uint32_t passes_held_ = 0;    // that the worker is held and could send nothing
  uint32_t taken_in_row_ = 0;   // messages of actors, since the host's ring was polled
  uint32_t host_in_row_ = 0;    // messages of the host, since one of an actor
  bool mailbox_first_ = false;  // before the queue
  uint32_t from_ = 0;           // the worker that the message in hand came from
  uint32_t taken_since_ = 0;    // messages of the mailbox since limits were raised
  uint32_t empty_polls_ = 0;
  Counts counts_;
#if !defined(__CUDACC_RTC__)
  bool any_reached_ = false;
#endif
};

}  // namespace gyre
