// Sending: the context of a handler that sends messages to other actors.
#pragma once

#include <gyre/device/actor/ending.hpp>
#include <gyre/device/actor/receiver.hpp>
#include <gyre/device/address.hpp>
#include <gyre/device/timer.hpp>
#include <gyre/device/topic.hpp>
#include <gyre/device/worker/body_pool.hpp>
#include <gyre/device/worker/fan_out.hpp>
#include <gyre/device/worker/mail_memory.hpp>
#include <gyre/device/worker/staging.hpp>

namespace gyre {

namespace detail {

/// Identifies an actor type among those of a worker: the hash (FNV-1a) of its name as this compiler writes
/// it.
template <class Actor>
GYRE_DEVICE constexpr uint64_t type_hash() {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char* name = __PRETTY_FUNCTION__; *name != 0; ++name) {
    hash = (hash ^ uint8_t(*name)) * 0x100000001b3u;
  }
  return hash;
}

/// Identifies a reply that an actor takes: by the state of the ask, the response, and the actor's number.
GYRE_DEVICE constexpr uint64_t reply_hash(uint64_t state_type, uint64_t response_id, uint32_t actor_type) {
  return (state_type ^ response_id * 0x9e3779b97f4a7c15u) + actor_type;
}

}  // namespace detail

/// What a handler that sends can do: the base of Sending and Asking. Use it as the parameter of helper
/// functions that work for any N; tell_host() is not in it.
class SendingContext : public Context {
 public:
  /// Only the worker makes one.
  /// @param from_actor  the message in hand is of an actor, not of the host
  GYRE_DEVICE SendingContext(uint64_t key, bool is_ask, WorkerShared& shared, const Staging& staging,
                             uint32_t actor_type, bool from_actor)
      : Context(key, is_ask, shared), staging_(staging), actor_type_(actor_type), from_actor_(from_actor) {}

  /// Sends a message to an actor, once the handler has ended well. Every thread of the team must call it, in
  /// the same order and with equal arguments; it has no barrier. Never waits.
  /// @tparam Message  the view of the message, which the receiver must handle; a response is not sent
  /// @param to    any actor of the set; one that is not there is created as by the host's messages
  /// @param fill  called as fill(Message::Builder) to build the message. All threads make the same calls that
  ///              allocate; any of them may set an element
  /// The handler's message fails with Status::unknown_actor where the set has no such actor type, and with
  /// Status::check_failed after more than N messages, or where the message does not fit a slot.
  ///
  /// A handler that lists gyre::LargeMessages sends larger ones, too: up to Options::body_bytes. For those
  /// `fill` is called once more, with an empty message again: it must have no other effect. The handler's
  /// message fails with Status::body_pool_full where no memory of Options::body_pool_bytes is free.
  template <class Message, class Actor, class Fill>
  GYRE_DEVICE void tell(Address<Actor> to, Fill&& fill) {
    const uint32_t actor_type = number_of<Message, Actor>();
    if (actor_type == Staging::no_actor) return end(Status::unknown_actor, 0, 0);
    GYRE_CHECK(staged_ < most_);  // more messages than gyre::Sending<N> or gyre::Asking<N> allows
    stage<Message>(staged_, envelope_to<Message, Actor>(actor_type, to.key), rank() == 0, fill);
    ++staged_;
  }
  /// Sends `count` messages, each built by one thread of the team alone, once the handler has ended well: as
  /// tell() does, in the order of their numbers. Every thread of the team must call it with an equal `count`;
  /// it has no barrier. Never waits.
  /// @tparam Message  as of tell()
  /// @param address_of  called as address_of(n) for message n, below `count`; returns an Address<Actor>, of
  ///                    one type for all
  /// @param fill        called as fill(n, Message::Builder) to build message n; not for what depends on
  ///                    rank()
  template <class Message, class AddressOf, class Fill>
  GYRE_DEVICE void tell_each(uint32_t count, AddressOf&& address_of, Fill&& fill) {
    using Actor = typename decltype(address_of(uint32_t(0)))::Actor;
    const uint32_t actor_type = number_of<Message, Actor>();
    if (actor_type == Staging::no_actor) return end(Status::unknown_actor, 0, 0);
    GYRE_CHECK(count <= most_ - staged_);  // more messages than gyre::Sending<N> or gyre::Asking<N> allows
    for (uint32_t n = rank(); n < count; n += size()) {
      stage<Message>(staged_ + n, envelope_to<Message, Actor>(actor_type, address_of(n).key), true,
                     [&](typename Message::Builder builder) { fill(n, builder); });
    }
    staged_ += count;
  }

  /// Returns the address of the actor that handles the message.
  /// @tparam Actor  the actor's own type: `ctx.self<Counter>()`
  template <class Actor>
  GYRE_DEVICE Address<Actor> self() const {
    return {key()};
  }
  /// Returns whether an actor of that type told the message in hand. False for what the host sent, for asks
  /// and for replies: an ask is answered by its response.
  template <class Actor>
  GYRE_DEVICE bool is_from() const {
    constexpr uint32_t of_tells = envelope_flags::timer | envelope_flags::out_of_line;
    return from_actor_ && (mail_in_hand().flags & ~of_tells) == 0 &&
           staging_.sender_type() == staging_.number_of(detail::type_hash<Actor>());
  }
  /// Returns the address of the actor that told the message in hand; of a forwarded message the actor that
  /// sent it first. The handler's message fails with Status::check_failed unless is_from<Actor>() is true.
  template <class Actor>
  GYRE_DEVICE Address<Actor> sender() const {
    GYRE_CHECK_RETURN(is_from<Actor>(), Address<Actor>{});  // ask is_from() first
    return {mail_in_hand().correlation};
  }

  /// Creates an actor with a fresh key, once the handler has ended well: its on_start() runs. It counts as
  /// one of N messages. Every thread of the team must call it, as tell(). If its worker has no room, the
  /// actor is not created. That counts as a failed message.
  /// @returns its address, equal in all threads; messages may be told to it at once. Fresh keys have bit 63
  ///          set. Keep it clear in the program's keys
  template <class Actor>
  GYRE_DEVICE Address<Actor> spawn() {
    const Address<Actor> spawned{fresh_key()};
    tell_lifecycle(spawned, lifecycle_message::start);
    return spawned;
  }
  /// Stops an actor; it may be the calling one. The stop is a message, one of N: it arrives after what this
  /// actor told that one before. Then on_stop() runs, and the state is gone. Every thread of the team must
  /// call it, as tell(). Where there is no such actor it counts as a failed message.
  template <class Actor>
  GYRE_DEVICE void stop(Address<Actor> actor) {
    tell_lifecycle(actor, lifecycle_message::stop);
  }

  // For the worker:

  /// Messages that the calling thread has staged; those to the host among them.
  GYRE_DEVICE uint32_t staged() const { return staged_; }
  GYRE_DEVICE uint32_t staged_to_host() const { return staged_to_host_; }
  /// Messages to the host for which there was no credit.
  GYRE_DEVICE uint32_t refused_by_host() const { return refused_by_host_; }
  /// Keys that spawn() has taken.
  GYRE_DEVICE uint32_t spawned() const { return spawned_; }
  /// Staged messages that are for the worker's timers; how many of them set one.
  GYRE_DEVICE uint32_t staged_for_timers() const { return staged_for_timers_; }
  GYRE_DEVICE uint32_t timers_set() const { return timers_set_; }
  /// Staged messages that say what the actor subscribes to.
  GYRE_DEVICE uint32_t staged_for_topics() const { return staged_for_topics_; }

 protected:
  // @param sends_large  the handler lists gyre::LargeMessages. A constant, as `most`: where the handler is
  //                     inlined, what it may not do is not compiled into it
  GYRE_DEVICE void allow(uint32_t most, bool sends_large) {
    most_ = most;
    sends_large_ = sends_large;
  }
  template <class Message, class Fill>
  GYRE_DEVICE bool stage_to_host(Fill&& fill) {
    GYRE_CHECK_RETURN(staged_ < most_,
                      false);  // more messages than gyre::Sending<N> or gyre::Asking<N> allows
    if (staged_to_host_ >= staging_.host_room()) {
      ++refused_by_host_;
      return false;
    }
    const Envelope envelope{Message::type_id,       0, 0, key(), uint16_t(actor_type_), 0, 0, 0,
                            envelope_flags::to_host};
    stage<Message>(staged_, envelope, rank() == 0, fill);
    ++staged_;
    ++staged_to_host_;
    return true;
  }
  template <class Message, class Actor, class Fill>
  GYRE_DEVICE Timer stage_timer(Duration delay, Duration period, Address<Actor> to, Fill&& fill) {
    const uint32_t actor_type = number_of<Message, Actor>();
    if (actor_type == Staging::no_actor) {
      end(Status::unknown_actor, 0, 0);
      return {};
    }
    GYRE_CHECK_RETURN(staged_ < most_,
                      Timer{});  // more messages than gyre::Sending<N> or gyre::Asking<N> allows
    if (staging_.timers() + timers_set_ >= MailLayout::timers) {
      end(Status::timers_full, MailLayout::timers, 0);
      return {};
    }
    // Not 0: no timer's is. A worker gives out 2^48.
    const Timer timer{uint64_t(staging_.worker()) << 48 | (staging_.timers_ever() + timers_set_ + 1)};
    Envelope envelope = envelope_to<Message, Actor>(actor_type, to.key);
    envelope.flags = envelope_flags::timer;
    if (rank() == 0) staging_.timer_request(staged_) = {timer.id, delay.ns, period.ns, 0};
    stage<Message>(staged_, envelope, rank() == 0, fill);
    ++staged_;
    ++staged_for_timers_;
    ++timers_set_;
    return timer;
  }
  GYRE_DEVICE void stage_cancellation(Timer timer) {
    if (timer.id == 0) return;
    GYRE_CHECK(timer.id >> 48 == staging_.worker());  // an actor of another worker set the timer
    GYRE_CHECK(staged_ < most_);  // more messages than gyre::Sending<N> or gyre::Asking<N> allows
    if (rank() == 0) {
      staging_.timer_request(staged_) = {timer.id, 0, 0, 1};
      write_envelope(staging_.message(staged_), {0, 0, 0, 0, 0, 0, 0, 0, envelope_flags::timer}, 0,
                     actor_type_);
    }
    ++staged_;
    ++staged_for_timers_;
  }
  template <class Message, class Fill>
  GYRE_DEVICE void stage_to_many(const Envelope& envelope, Fill&& fill) {
    GYRE_CHECK(staged_ < most_);  // more messages than gyre::Sending<N> or gyre::Asking<N> allows
    stage<Message>(staged_, envelope, rank() == 0, fill);
    ++staged_;
  }
  // @param message_type  of the actor's handler; of one that unsubscribes it means nothing
  GYRE_DEVICE void stage_subscription(uint8_t request, uint64_t topic, uint64_t message_id,
                                      uint32_t message_type) {
    GYRE_CHECK(staged_ < most_);  // more messages than gyre::Sending<N> or gyre::Asking<N> allows
    if (request == fan_out::subscribe) {
      if (staging_.subscriptions() + subscribed_ >= Subscriptions::capacity)
        return end(Status::subscriptions_full, Subscriptions::capacity, 0);
      ++subscribed_;
    }
    if (rank() == 0) {
      uint32_t* const message = staging_.message(staged_);
      *reinterpret_cast<uint64_t*>(message + Staging::envelope_words) = message_id;
      write_envelope(message,
                     {key(), 0, 0, topic, uint16_t(actor_type_), uint16_t(message_type), 0, request, 0},
                     sizeof(uint64_t), actor_type_);
    }
    ++staged_;
    ++staged_for_topics_;
  }
  template <class Actor>
  GYRE_DEVICE void tell_lifecycle(Address<Actor> to, uint16_t lifecycle) {
    const uint32_t actor_type = staging_.number_of(detail::type_hash<Actor>());
    if (actor_type == Staging::no_actor) return end(Status::unknown_actor, 0, 0);
    GYRE_CHECK(staged_ < most_);  // more messages than gyre::Sending<N> or gyre::Asking<N> allows
    const Envelope envelope{key(), 0, 0, to.key, uint16_t(actor_type), lifecycle, 0, 0, 0};
    if (rank() == 0) write_envelope(staging_.message(staged_), envelope, 0, actor_type_);
    ++staged_;
  }
  // Returns the number of the receiver's type; Staging::no_actor if the set has none.
  template <class Message, class Actor>
  GYRE_DEVICE uint32_t number_of() const {
    detail::check_can_be_sent<Actor, Message>();
    return staging_.number_of(detail::type_hash<Actor>());
  }
  // Of a message of an actor.
  GYRE_DEVICE const Envelope& mail_in_hand() const {
    return *reinterpret_cast<const Envelope*>(staging_.mail(0));
  }
  // Returns a key that no other call on this engine returns: the worker in 15 bits, its keys in 48.
  GYRE_DEVICE uint64_t fresh_key() {
    return uint64_t(1) << 63 | uint64_t(staging_.worker()) << 48 | (staging_.spawned() + spawned_++);
  }
  // Returns the envelope of a message to an actor, but for its size.
  template <class Message, class Actor>
  GYRE_DEVICE Envelope envelope_to(uint32_t actor_type, uint64_t to_key) const {
    return {key(), 0, 0, to_key, uint16_t(actor_type), uint16_t(message_number<Actor, Message>()), 0, 0, 0};
  }
  // Builds the n-th staged message.
  // @param envelope         but for its size
  // @param writes_envelope  of one thread of those that build it
  template <class Message, class Fill>
  GYRE_DEVICE void stage(uint32_t n, const Envelope& envelope, bool writes_envelope, Fill&& fill) {
    uint32_t* const message = staging_.message(n);
    wire::Body body(message + Staging::envelope_words, staging_.body_capacity);
    typename Message::Builder builder(body.init_root(Message::data_words, Message::pointers));
    fill(builder);
    if (sends_large_ && body.full()) return stage_large<Message>(n, envelope, writes_envelope, fill);
    GYRE_CHECK(!body.full());  // larger than a slot: see gyre::LargeMessages, or --slot-bytes
    if (writes_envelope) write_envelope(message, envelope, body.used_bytes(), actor_type_);
  }
  // stage() of a message that does not fit a slot: builds it again, in the pool.
  template <class Message, class Fill>
  GYRE_DEVICE void stage_large(uint32_t n, Envelope envelope, bool writes_envelope, Fill&& fill) {
    // It is for the host, or for many actors, and larger than a slot: see --slot-bytes.
    GYRE_CHECK((envelope.flags & envelope_flags::to_host) == 0 && envelope.priority == 0);
    // It is larger than a slot, and there is no pool of bodies: see --slot-bytes and --body-pool-bytes.
    const uint32_t capacity = staging_.body_pool().body_bytes();
    GYRE_CHECK(capacity != 0);
    uint8_t* const memory = take_body(n, envelope.key);
    if (memory == nullptr) return;
    wire::Body body(memory, capacity);
    typename Message::Builder builder(body.init_root(Message::data_words, Message::pointers));
    fill(builder);
    detail::raise_in_group(staging_.body(n).bytes, body.used_bytes());
    GYRE_CHECK(!body.full());  // the message is larger than a body of the pool: see --body-bytes
    if (writes_envelope) write_envelope_of_place(n, envelope, actor_type_);
  }
  // Takes a chunk of the pool for the n-th staged message, the same one in all threads that build it.
  // @returns null, in all of them, if none is free: the handler's message fails
  GYRE_DEVICE uint8_t* take_body(uint32_t n, uint64_t to_key) {
    note_exceptional();  // the worker looks at the records of bodies then
    const BodyPool& pool = staging_.body_pool();
    const uint32_t taken = pool.take_for_team(staging_.body(n), staging_.worker());
    if (taken == BodyRecord::none_free) {
      end(Status::body_pool_full, staging_.worker(), to_key);
      return nullptr;
    }
    return pool.at(taken - BodyRecord::first);
  }
  // Of a message whose body lies in the pool. Where it lies is written once all threads have built it.
  GYRE_DEVICE void write_envelope_of_place(uint32_t n, Envelope envelope, uint32_t sender_type) const {
    envelope.flags |= envelope_flags::out_of_line;
    write_envelope(staging_.message(n), envelope, sizeof(BodyPlace), sender_type);
  }
  // @param sender_type  the number of the type of the actor that sends it
  GYRE_DEVICE void write_envelope(uint32_t* message, const Envelope& prototype, uint32_t body_bytes,
                                  uint32_t sender_type) const {
    auto& envelope = *reinterpret_cast<Envelope*>(message);
    envelope = prototype;
    envelope.body_bytes = body_bytes;
    if ((envelope.flags & envelope_flags::to_host) == 0)
      MailHead::mark(envelope, staging_.worker(), sender_type);
  }

  Staging staging_;
  uint32_t actor_type_;
  bool from_actor_;
  uint32_t most_ = 0;
  bool sends_large_ = false;
  uint32_t staged_ = 0;
  uint32_t staged_to_host_ = 0;
  uint32_t refused_by_host_ = 0;
  uint32_t spawned_ = 0;
  uint32_t staged_for_timers_ = 0;
  uint32_t timers_set_ = 0;
  uint32_t staged_for_topics_ = 0;
  uint32_t subscribed_ = 0;
};

namespace detail {
// False of an actor without state, of which a worker has no list; true of one that is not defined here.
template <class Actor>
GYRE_DEVICE constexpr bool is_listed_by_worker() {
  if constexpr (IsDefined<Actor>) {
    return state_bytes<Actor>() != 0;
  } else {
    return true;
  }
}
template <class Actor>
GYRE_DEVICE constexpr void check_can_be_broadcast_to() {
  static_assert(
      is_listed_by_worker<Actor>(),
      "ctx.broadcast<Message, Actor>(fill): the actor's type has no state, so that workers know none "
      "of its actors; give it a member, or let the actors subscribe to a gyre::Topic");
}

/// The context that a handler declares: Made with what the declaration allows.
/// @tparam Made_  the context that the worker makes
/// @tparam May    further rights: gyre::ToHost, gyre::Timers, gyre::ToMany, gyre::LargeMessages
template <class Made_, uint32_t most, class... May>
class DeclaredContext : public Made_ {
  static_assert(most >= 1 && most <= 64,
                "gyre::Sending<N>, gyre::Asking<N>: a handler may send 1 to 64 messages");
  static_assert((is_listed<May, ToHost, Timers, ToMany, LargeMessages>() && ...),
                "gyre::Sending<N, …>, gyre::Asking<N, …>: gyre::ToHost, gyre::Timers, gyre::ToMany and "
                "gyre::LargeMessages may follow N");

 public:
  using Made = Made_;
  /// Only the worker makes one.
  GYRE_DEVICE explicit DeclaredContext(const Made& context) : Made(context) {
    this->allow(most, is_listed<LargeMessages, May...>());
  }

  /// Sends a message to the host, once the handler has ended well. The handler that the program gave to
  /// Runtime::on<Message>() receives it. It counts as one of N messages. Every thread of the team must call
  /// it, as tell(). Never waits. The host takes a worker's messages in the order in which they were sent. A
  /// message that the host has no handler for is dropped, and counted.
  /// @tparam Message  the view of the message
  /// @param fill      as of tell()
  /// @returns true if the message is sent. False, in all threads, if the host has not handled so many of this
  ///          worker's messages that they fill a quarter of its ring. ToldAccounts::refused counts it
  /// The handler's message fails with Status::check_failed after more than N messages, or where this message
  /// does not fit a slot: the host does not reach the memory of larger ones.
  template <class Message, class Fill>
  GYRE_DEVICE bool tell_host(Fill&& fill) {
    static_assert(is_listed<ToHost, May...>(),
                  "ctx.tell_host<Message>(fill): the handler's context says that it tells the host: "
                  "gyre::Sending<N, gyre::ToHost>& ctx");
    return this->template stage_to_host<Message>(fill);
  }

  /// Sends a message to an actor once `delay` has passed since the handler ended well. It counts as one of N
  /// messages. Every thread of the team must call it, as tell(). Never waits. The message is not sent if this
  /// actor has stopped by then.
  /// @tparam Message  as of tell()
  /// @param delay  `gyre::Duration::milliseconds(5)`. By its worker's clock the message never leaves early.
  ///               It is late while the worker's handlers run
  /// @param to     as of tell(); it may be the calling actor
  /// @param fill   as of tell(); called now, not when the message is sent
  /// @returns the timer, for cancel(); equal in all threads
  /// The handler's message fails with Status::timers_full where 256 timers of the worker are set, and as of
  /// tell().
  template <class Message, class Actor, class Fill>
  GYRE_DEVICE Timer send_after(Duration delay, Address<Actor> to, Fill&& fill) {
    require_timers();
    return this->template stage_timer<Message>(delay, Duration{}, to, fill);
  }
  /// Sends equal messages to an actor again and again, the first once `period` has passed, until the timer is
  /// cancelled or this actor has stopped. Times that pass while the worker cannot send are left out; the
  /// others keep their rhythm. Otherwise as send_after().
  /// @param period  not 0: the handler's message fails with Status::check_failed
  template <class Message, class Actor, class Fill>
  GYRE_DEVICE Timer send_every(Duration period, Address<Actor> to, Fill&& fill) {
    require_timers();
    GYRE_CHECK_RETURN(period.ns != 0, Timer{});  // a period is at least 1 ns
    return this->template stage_timer<Message>(period, period, to, fill);
  }
  /// Cancels a timer, once the handler has ended well. It counts as one of N messages. Every thread of the
  /// team must call it, as tell(). A message that the timer has sent already arrives nevertheless. Where the
  /// timer is done, or cancelled, nothing happens.
  /// @param timer  set by this actor, or by another of the same worker: the handler's message fails with
  ///               Status::check_failed for those of other workers
  GYRE_DEVICE void cancel(Timer timer) {
    require_timers();
    this->stage_cancellation(timer);
  }

  /// Sends a message to every actor of a type, once the handler has ended well; to the calling actor too, if
  /// it is of that type. It counts as one of N messages, however many actors there are. Every thread of the
  /// team must call it, as tell(). Never waits.
  ///
  /// Each worker gets the message once and hands it to its actors, one after the other, before it takes what
  /// other actors sent later. So messages from one actor to another keep their order, broadcast or told. An
  /// actor that is there from then on, until it has had its turn, gets the message once; one that is created
  /// or stopped meanwhile may get it. The message creates no actor.
  /// @tparam Message  as of tell()
  /// @tparam Actor    the type of the actors; one with state
  /// @param fill  as of tell()
  /// The handler's message fails as of tell().
  template <class Message, class Actor, class Fill>
  GYRE_DEVICE void broadcast(Fill&& fill) {
    require_to_many();
    check_can_be_broadcast_to<Actor>();
    const uint32_t actor_type = this->template number_of<Message, Actor>();
    if (actor_type == Staging::no_actor) return this->end(Status::unknown_actor, 0, 0);
    Envelope envelope = this->template envelope_to<Message, Actor>(actor_type, 0);
    envelope.priority = fan_out::to_type;
    this->template stage_to_many<Message>(envelope, fill);
  }
  /// Sends a message to every actor that has subscribed to the topic. Otherwise as broadcast(): subscribers
  /// of a worker are those that have subscribed when it begins to hand the message to them.
  /// @param topic  of messages of this kind: `ctx.publish(prices, fill)`
  /// @param fill   as of tell()
  template <class Message, class Fill>
  GYRE_DEVICE void publish(Topic<Message> topic, Fill&& fill) {
    require_to_many();
    Envelope envelope{this->key(), 0, 0, topic.id, 0, 0, 0, fan_out::to_topic, 0};
    FanOutHead::set_message_id(envelope, Message::type_id);
    this->template stage_to_many<Message>(envelope, fill);
  }
  /// Subscribes this actor to a topic, once the handler has ended well, and before anything is sent that the
  /// handler sends. It counts as one of N messages. Every thread of the team must call it, as tell(). Where
  /// the actor has subscribed already nothing changes. An actor that stops is subscribed to nothing.
  /// @tparam Actor  the actor's own type, which handles the topic's messages: `ctx.subscribe<Trader>(prices)`
  /// The handler's message fails with Status::subscriptions_full where the worker's actors have 1,024
  /// subscriptions, also if this is one of them; with Status::check_failed where Actor is another type.
  template <class Actor, class Message>
  GYRE_DEVICE void subscribe(Topic<Message> topic) {
    require_to_many();
    GYRE_CHECK((this->template number_of<Message, Actor>() == this->actor_type_));  // Actor is its own type
    this->stage_subscription(fan_out::subscribe, topic.id, Message::type_id,
                             message_number<Actor, Message>());
  }
  /// Ends the actor's subscription to a topic, once the handler has ended well, and before anything is sent
  /// that the handler sends. It counts as one of N messages. Every thread of the team must call it, as
  /// tell(). Where there is no such subscription nothing happens. A message that the worker hands out already
  /// may come nevertheless.
  template <class Message>
  GYRE_DEVICE void unsubscribe(Topic<Message> topic) {
    require_to_many();
    this->stage_subscription(fan_out::unsubscribe, topic.id, Message::type_id, 0);
  }

 private:
  GYRE_DEVICE static constexpr void require_to_many() {
    static_assert(is_listed<ToMany, May...>(),
                  "ctx.broadcast(…), ctx.publish(…), ctx.subscribe(…), ctx.unsubscribe(…): the handler's "
                  "context says that it sends to many: gyre::Sending<N, gyre::ToMany>& ctx");
  }
  GYRE_DEVICE static constexpr void require_timers() {
    static_assert(is_listed<Timers, May...>(),
                  "ctx.send_after(…), ctx.send_every(…), ctx.cancel(…): the handler's context says that it "
                  "sets timers: gyre::Sending<N, gyre::Timers>& ctx");
  }
};
}  // namespace detail

/// The Context of a handler that sends up to `most` messages, 1 to 64: a handler declares it as its first
/// parameter, `void on(gyre::Sending<4>& ctx, view::Request::Reader in)`. Handlers send; hooks and on_batch()
/// do not, and neither do actors with `side_by_side = true`.
///
/// What holds of messages between actors:
/// - They leave when the handler has ended well, before its reply does. A handler that fails sends none.
/// - From one actor to another they arrive in the order in which they were sent, each once.
/// - tell() never blocks. Messages that find a full mailbox wait at the sender's worker. While that has no
///   room for the largest N of the set's handlers, it is *held*: it handles only mail whose handler's N fits
///   the room that is left.
/// - A worker that is held for long moves its mail to memory of Options::spill_bytes, and does not slow down
///   its own senders any more. When that memory is full, further messages are lost, and counted as refused.
/// - Messages fit a slot, unless the handler lists gyre::LargeMessages. A larger one lies in memory of
///   Options::body_pool_bytes until its receiver has handled it. Where none is free the handler that sends it
///   fails, by Status::body_pool_full.
/// - A message that its receiver refuses, or whose handler fails, is counted, and nobody is told.
/// - Runtime::drain() waits for these messages. terminate() loses those under way: Books::mail counts them.
template <uint32_t most, class... May>
class Sending : public detail::DeclaredContext<SendingContext, most, May...> {
 public:
  using detail::DeclaredContext<SendingContext, most, May...>::DeclaredContext;
};

}  // namespace gyre
