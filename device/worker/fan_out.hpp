// Messages for many actors: how a worker sends one to all workers, and hands it to those of its actors that
// it is for. Compiled only into sets with a handler that lists gyre::ToMany.
//
//   copy           what goes to one worker: the message once, for whatever number of its actors.
//                  Envelope::priority says that it is one
//   FanOutbox      copies wait in the outbox, in the order of all messages: one place for all workers
//   FanOut         the copy that the worker hands to its actors, one after the other. It takes no other
//                  message of actors meanwhile, so that messages from one actor to another keep their order
//   Subscriptions  which of the worker's actors a copy to a topic is for
#pragma once

#include <gyre/device/worker/mail_memory.hpp>
#include <gyre/device/worker/mail_queues.hpp>
#include <gyre/device/worker/staging.hpp>

namespace gyre {

/// How the envelope of a copy to a topic differs from that of a message to an actor. What a handler asks of
/// topics has the topic in the same field.
///
///   key                     the topic's number
///   deadline_us, types      the Cap'n Proto id of its messages: the lower half and the upper half
struct FanOutHead {
  enum : uint32_t {
    kind_word = 7,  ///< of the envelope
    kind_shift = 16
  };

  /// Returns Envelope::priority.
  GYRE_DEVICE static uint32_t kind(const uint32_t* message) {
    return message[kind_word] >> kind_shift & 0xff;
  }
  /// Whether a message is a copy for all actors of a worker that it is for.
  GYRE_DEVICE static bool is_copy(const uint32_t* message) { return is_copy_by(message[kind_word]); }
  /// The same by the word of that number alone.
  GYRE_DEVICE static bool is_copy_by(uint32_t word) {
    const uint32_t kind = word >> kind_shift & 0xff;
    return kind == fan_out::to_type || kind == fan_out::to_topic;
  }
  /// Whether a staged message is what a handler asks of topics.
  GYRE_DEVICE static bool is_request(const uint32_t* message) {
    return kind(message) == fan_out::subscribe || kind(message) == fan_out::unsubscribe;
  }
  GYRE_DEVICE static void set_message_id(Envelope& envelope, uint64_t id) {
    envelope.deadline_us = uint32_t(id);
    envelope.actor_type = uint16_t(id >> 32);
    envelope.message_type = uint16_t(id >> 48);
  }
  GYRE_DEVICE static uint64_t message_id(const Envelope& envelope) {
    return envelope.deadline_us | uint64_t(envelope.actor_type) << 32 | uint64_t(envelope.message_type) << 48;
  }
};

/// That an actor subscribes to a topic. One place of the table.
struct Subscription {
  uint64_t number;      ///< counts those of the worker, from 1 on; 0: the place is free
  uint64_t topic;       ///< Topic::id
  uint64_t message_id;  ///< the Cap'n Proto id of the topic's messages
  uint64_t key;         ///< the actor's
  uint32_t types;       ///< its type, and above it the number of its handler of those messages
  uint32_t reserved;
};
static_assert(sizeof(Subscription) == MailLayout::subscription_bytes,
              "MailLayout reserves room for subscriptions");

/// The subscriptions of one worker's actors: a table without order, which the polling threads search in rows.
/// Collective over PollGroup; each thread has an object of its own with equal members.
class Subscriptions {
 public:
  enum : uint32_t { capacity = MailLayout::subscriptions };

  /// @param memory   of the worker: `capacity` zeroed entries
  /// @param staging  whose subscriptions() it keeps
  GYRE_DEVICE Subscriptions(uint8_t* memory, const Staging& staging)
      : entries_(reinterpret_cast<Subscription*>(memory)), staging_(staging) {}
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;

  /// All lie in places below.
  GYRE_DEVICE uint32_t places() const { return end_; }
  /// The number of the last one that was added.
  GYRE_DEVICE uint64_t last_number() const { return last_number_; }
  /// The entry in a place, below places(). Not collective.
  GYRE_DEVICE const Subscription& at(uint32_t place) const { return entries_[place]; }

  /// Adds or removes a subscription, as a handler asked with a staged message.
  GYRE_DEVICE void obey(const uint32_t* request) {
    const Envelope envelope = *reinterpret_cast<const Envelope*>(request);
    const auto* const body = reinterpret_cast<const uint64_t*>(request + Staging::envelope_words);
    const Subscription wanted{0, envelope.key, body[0], envelope.correlation, types_of(envelope), 0};
    if (assert_warp_uniform(envelope.priority == fan_out::subscribe)) {
      add(wanted);
    } else {
      remove_each([&](const Subscription& entry) { return is_same(entry, wanted); });
    }
  }
  /// Removes those of an actor that is gone.
  GYRE_DEVICE void remove_of(uint32_t actor_type, uint64_t key) {
    if (!assert_warp_uniform(count_ != 0)) return;
    remove_each(
        [&](const Subscription& entry) { return entry.key == key && (entry.types & 0xffff) == actor_type; });
  }

 private:
  GYRE_DEVICE static uint32_t types_of(const Envelope& envelope) {
    return envelope.actor_type | uint32_t(envelope.message_type) << 16;
  }
  // Of one actor to one topic. An actor has one handler of a message.
  GYRE_DEVICE static bool is_same(const Subscription& a, const Subscription& b) {
    return a.topic == b.topic && a.message_id == b.message_id && a.key == b.key &&
           ((a.types ^ b.types) & 0xffff) == 0;
  }
  GYRE_DEVICE void add(const Subscription& wanted) {
    uint32_t place = capacity;
    GYRE_ROLLED
    for (uint32_t first = 0; first < capacity; first += PollGroup::size()) {
      const Subscription& mine = entries_[first + PollGroup::rank()];
      if (PollGroup::any(mine.number != 0 && is_same(mine, wanted))) return;
      const uint32_t free = PollGroup::ballot(mine.number == 0);
      if (place == capacity && free != 0) place = first + detail::lowest_bit(free);
      if (place != capacity && first + PollGroup::size() >= end_) break;
    }
    // The handler found room: there is none only where memory was overwritten.
    if (!assert_warp_uniform(place != capacity)) return;
    ++last_number_;
    if (PollGroup::rank() == 0) {
      entries_[place] = wanted;
      entries_[place].number = last_number_;
    }
    if (place >= end_) end_ = place + 1;
    ++count_;
    publish_count();
  }
  template <class Which>
  GYRE_DEVICE void remove_each(Which&& which) {
    uint32_t end = 0;
    GYRE_ROLLED
    for (uint32_t first = 0; first < end_; first += PollGroup::size()) {
      Subscription& mine = entries_[first + PollGroup::rank()];
      const bool is_one = mine.number != 0, ends = is_one && which(mine);
      if (ends) mine.number = 0;
      count_ -= detail::count_bits(PollGroup::ballot(ends));
      const uint32_t left = PollGroup::ballot(is_one && !ends);
      if (left != 0) end = first + detail::highest_bit(left) + 1;
    }
    end_ = end;
    publish_count();
  }
  // For handlers, which subscribe to nothing where there is no room.
  GYRE_DEVICE void publish_count() {
    PollGroup::sync();
    if (PollGroup::rank() == 0) staging_.subscriptions() = count_;
    PollGroup::sync();
  }

  Subscription* entries_;
  Staging staging_;
  uint32_t count_ = 0;
  uint32_t end_ = 0;
  uint64_t last_number_ = 0;
};
static_assert(Subscriptions::capacity % 32 == 0, "rows have no end");

/// The copy that a worker hands to its actors. Actors keep their places while they live, so each that is
/// there from begin to end gets the message once. Those that come meanwhile may get it, or not; subscribers
/// that come meanwhile do not. Collective over PollGroup; each thread has an object of its own, with equal
/// members but for what find() found.
class FanOut {
 public:
  /// What next() did.
  enum class Found : uint32_t {
    message,  ///< the message for an actor is in hand
    later,    ///< nothing yet: more places are left than one turn looks at, or the handler has to wait
    none      ///< every actor has had the message
  };

  /// @param memory   of the worker: MailLayout::queue_stride() words
  /// @param staging  where messages are in hand
  GYRE_DEVICE FanOut(uint8_t* memory, const Staging& staging)
      : message_(reinterpret_cast<uint32_t*>(memory)), staging_(staging) {}
  FanOut(const FanOut&) = delete;
  FanOut& operator=(const FanOut&) = delete;

  GYRE_DEVICE bool is_active() const { return active_; }
  /// The worker hands the copy in hand, whose sender was taken out, to its actors from now on.
  /// @param places       where they may be
  /// @param last_number  Subscriptions::last_number()
  GYRE_DEVICE void begin(uint32_t places, uint64_t last_number) {
    const uint32_t* const copy = staging_.mail(0);
    body_bytes_ = reinterpret_cast<const Envelope*>(copy)->body_bytes;
    copy_message(message_, copy, body_bytes_);
    sender_type_ = staging_.sender_type();
    places_ = places;
    last_number_ = last_number;
    next_ = 0;
    left_ = 0;
    active_ = true;
    forget_message_in_hand();
  }
  GYRE_DEVICE const Envelope& envelope() const { return *reinterpret_cast<const Envelope*>(message_); }
  /// Another message lies where the one in hand lay.
  GYRE_DEVICE void forget_message_in_hand() { in_hand_ = false; }
  /// An actor is gone: those that were found are looked for again.
  GYRE_DEVICE void note_gone() {
    if (left_ != 0) next_ = row_ + detail::lowest_bit(left_);
    left_ = 0;
  }
  /// Makes the message for the next actor the one in hand. While active.
  /// @param find      find(place, Receiver&): whether the message is for an actor there. One thread a place
  /// @param may_take  may_take(types): whether the worker may handle a message of that RequestHead::types()
  template <class Find, class MayTake>
  GYRE_DEVICE Found next(Find&& find, MayTake&& may_take) {
    GYRE_ROLLED
    for (uint32_t rows = 0; left_ == 0; ++rows) {
      if (next_ >= places_) {
        active_ = false;
        return Found::none;
      }
      if (rows == rows_a_turn) return Found::later;
      row_ = next_;
      next_ += PollGroup::size();
      const uint32_t place = row_ + PollGroup::rank();
      left_ = PollGroup::ballot(place < places_ && find(place, found_));
    }
    const uint32_t rank = detail::lowest_bit(left_);
    const uint32_t types = PollGroup::broadcast_from(found_.types, rank);
    if (!may_take(types)) return Found::later;
    left_ &= left_ - 1;
    put_in_hand(types, PollGroup::broadcast_from(uint32_t(found_.key), rank),
                PollGroup::broadcast_from(uint32_t(found_.key >> 32), rank));
    return Found::message;
  }

  /// An actor that the message is for.
  struct Receiver {
    uint64_t key;
    uint32_t types;  ///< RequestHead::types() of the message to it
  };
  /// find() of a copy to a topic.
  GYRE_DEVICE bool find_subscriber(const Subscriptions& subscriptions, uint32_t place,
                                   Receiver& found) const {
    const Subscription& entry = subscriptions.at(place);
    found = {entry.key, entry.types};
    return entry.number != 0 && entry.number <= last_number_ && entry.topic == envelope().key &&
           entry.message_id == FanOutHead::message_id(envelope());
  }

 private:
  // Rows that one turn looks at: the host waits meanwhile.
  enum : uint32_t { rows_a_turn = PollGroup::size() == 1 ? 1024 : 8 };

  GYRE_DEVICE void put_in_hand(uint32_t types, uint32_t key_low, uint32_t key_high) {
    uint32_t* const message = staging_.mail(0);
    PollGroup::sync();
    if (!assert_warp_uniform(in_hand_)) copy_message(message, message_, body_bytes_);
    in_hand_ = true;
    if (PollGroup::rank() == 0) {
      staging_.sender_type() = sender_type_;
      auto& envelope = *reinterpret_cast<Envelope*>(message);
      envelope.key = key_low | uint64_t(key_high) << 32;
      envelope.deadline_us = 0;
      envelope.actor_type = uint16_t(types);
      envelope.message_type = uint16_t(types >> 16);
      envelope.priority = 0;
    }
    PollGroup::sync();
  }

  uint32_t* message_;
  Staging staging_;
  bool active_ = false;
  bool in_hand_ = false;  // the message lies where the worker handles it
  uint32_t body_bytes_ = 0, sender_type_ = 0;
  uint32_t places_ = 0;
  uint64_t last_number_ = 0;
  uint32_t row_ = 0;      // the first place of the last row that was searched
  uint32_t left_ = 0;     // bits of that row: actors that the message is for, and have not had it
  uint32_t next_ = 0;     // the first place that was not searched
  Receiver found_{0, 0};  // in the thread's place of that row
};

/// An outbox in which a message may wait for several workers. Collective over PollGroup; each thread has an
/// object of its own with equal members.
class FanOutbox : public Outbox {
 public:
  /// As Outbox::MessageOf, or one message for all threads.
  struct MessageOf {
    Outbox::MessageOf each;
    const uint32_t* one;  ///< null: each thread has its own
    GYRE_DEVICE const uint32_t* operator()(uint32_t thread) const {
      return one != nullptr ? one : each(thread);
    }
  };

  /// @param receivers  of this worker: MailLayout::outbox_receivers_bytes()
  /// The others are Outbox's.
  GYRE_DEVICE FanOutbox(uint8_t* memory, uint32_t* waits, const MailLayout& layout, uint8_t* receivers)
      : Outbox(memory, waits, layout),
        receivers_(reinterpret_cast<uint32_t*>(receivers)),
        workers_(layout.workers) {}

  /// Sends a copy of a message to every worker but `me`. What cannot be sent now waits, behind what waits for
  /// the same worker already. There must be room().
  /// @param send  as of send_each()
  template <class Send>
  GYRE_DEVICE void send_to_others(uint32_t me, const uint32_t* message, uint32_t body_bytes, Send&& send) {
    const uint32_t place = order()[count_];
    copy_message(messages() + place * stride_, message, body_bytes);
    GYRE_ROLLED
    for (uint32_t word = PollGroup::rank(); word < wait_words_; word += PollGroup::size()) {
      const uint32_t first = word * 32, in_word = workers_ - first < 32 ? workers_ - first : 32;
      const uint32_t mine = me / 32 == word ? 1u << me % 32 : 0u;
      receivers_of(place)[word] = (0xffffffffu >> (32 - in_word)) & ~mine;
    }
    PollGroup::sync();
    bool all = true;
    send_copies(place, send, all);
    if (all) return;
    if (PollGroup::rank() == 0) MailHead::mark_waited(messages() + place * stride_);
    ++count_;
    if (count_ > most_) most_ = count_;
  }
  /// As Outbox::send_each(). Copies of one message are tried row by row; those of several are not mixed.
  /// @returns how many messages were sent, each copy counted
  template <class WorkerOf, class Send>
  GYRE_DEVICE uint32_t send_each(WorkerOf&& worker_of, Send&& send) {
    GYRE_ROLLED
    for (uint32_t i = PollGroup::rank(); i < wait_words_; i += PollGroup::size()) waits_[i] = 0;
    PollGroup::sync();
    Pass pass;
    uint32_t sent = 0;
    GYRE_ROLLED
    for (uint32_t first = 0, n = 0; first < count_; first += n) {
      n = count_ - first < PollGroup::size() ? count_ - first : PollGroup::size();
      const uint16_t place = order()[first + (PollGroup::rank() < n ? PollGroup::rank() : 0)];
      const uint32_t copies =
          PollGroup::ballot(PollGroup::rank() < n && FanOutHead::is_copy(messages() + place * stride_));
      if (assert_warp_uniform((copies & 1) != 0)) {
        n = 1;
        bool all = true;
        sent += send_copies(PollGroup::broadcast(place), send, all);
        sort(pass, PollGroup::rank() == 0, all ? 0 : 1, all ? 1 : 0, place);
      } else {
        if (copies != 0) n = detail::lowest_bit(copies);
        const bool has_one = PollGroup::rank() < n;
        const uint32_t to = has_one ? worker_of(messages() + place * stride_) : 0;
        const bool may_go = has_one && !has_one_for(to);
        uint32_t sent_now = 0;
        if (PollGroup::any(may_go))
          sent_now = send(may_go, to, MessageOf{{messages(), order() + first, stride_}, nullptr});
        sent += detail::count_bits(sent_now);
        end_row(pass, has_one, sent_now, place, to);
      }
    }
    end_pass(pass);
    return sent;
  }

 private:
  // Bits of the workers that the message in that place has not been sent to.
  GYRE_DEVICE uint32_t* receivers_of(uint32_t place) const { return receivers_ + place * wait_words_; }
  // Sends the copies of the message in that place that can be sent now; later messages to the other workers
  // wait behind it.
  // @param all     set to false if some cannot be sent
  // @returns how many were sent
  template <class Send>
  GYRE_DEVICE uint32_t send_copies(uint32_t place, Send&& send, bool& all) {
    uint32_t sent = 0;
    GYRE_ROLLED
    for (uint32_t first = 0; first < workers_; first += PollGroup::size()) {
      const uint32_t to = first + PollGroup::rank();
      const bool is_one = to < workers_,
                 has_one = is_one && (receivers_of(place)[to / 32] >> to % 32 & 1) != 0;
      const bool may_go = has_one && !has_one_for(to);
      uint32_t sent_now = 0;
      if (PollGroup::any(may_go)) {
        sent_now = send(may_go, is_one ? to : 0,
                        MessageOf{{messages(), order(), stride_}, messages() + place * stride_});
      }
      const uint32_t staying = PollGroup::ballot(has_one) & ~sent_now;
      all &= staying == 0;
      sent += detail::count_bits(sent_now);
      PollGroup::sync();  // every thread has read both bitmaps
      if (PollGroup::rank() == 0) {
        receivers_of(place)[first / 32] &= ~(sent_now << first % 32);
        waits_[first / 32] |= staying << first % 32;
      }
      PollGroup::sync();
    }
    return sent;
  }

  uint32_t* receivers_;
  uint32_t workers_;
};

namespace detail {
template <bool sends_to_many>
struct OutboxOf {
  class Type : public Outbox {
   public:
    GYRE_DEVICE Type(uint8_t* memory, uint32_t* waits, const MailLayout& layout, uint8_t*)
        : Outbox(memory, waits, layout) {}
  };
};
template <>
struct OutboxOf<true> {
  using Type = FanOutbox;
};
}  // namespace detail

}  // namespace gyre
