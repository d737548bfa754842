// Sending: the context of a handler that sends messages to other actors.
#pragma once

#include <gyre/device/actor/ending.hpp>
#include <gyre/device/address.hpp>
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

/// The context that a worker hands to the handlers of a set in which one sends.
class SendingContext : public Context {
 public:
  GYRE_DEVICE SendingContext(uint64_t key, bool is_ask, WorkerShared& shared, const Staging& staging,
                             uint32_t actor_type)
      : Context(key, is_ask, shared), staging_(staging), actor_type_(actor_type) {}

  /// Messages that the calling thread has staged.
  GYRE_DEVICE uint32_t staged() const { return staged_; }

 protected:
  // Sending::tell() of a handler that may send up to `most` messages.
  template <class Message, class Actor, class Fill>
  GYRE_DEVICE void tell_from(uint32_t most, Address<Actor> to, Fill&& fill) {
    const uint32_t actor_type = number_of<Message, Actor>();
    if (actor_type == Staging::no_actor) return end(Status::unknown_actor, 0, 0);
    GYRE_CHECK(staged_ < most);  // more messages than gyre::Sending<most> allows
    stage<Message>(staged_, envelope_to<Message, Actor>(actor_type, to.key), rank() == 0, fill);
    ++staged_;
  }
  // Sending::tell_each() of such a handler.
  template <class Message, class AddressOf, class Fill>
  GYRE_DEVICE void tell_each_from(uint32_t most, uint32_t count, AddressOf&& address_of, Fill&& fill) {
    using Actor = typename decltype(address_of(uint32_t(0)))::Actor;
    const uint32_t actor_type = number_of<Message, Actor>();
    if (actor_type == Staging::no_actor) return end(Status::unknown_actor, 0, 0);
    GYRE_CHECK(count <= most - staged_);  // more messages than gyre::Sending<most> allows
    for (uint32_t n = rank(); n < count; n += size()) {
      stage<Message>(staged_ + n, envelope_to<Message, Actor>(actor_type, address_of(n).key), true,
                     [&](typename Message::Builder builder) { fill(n, builder); });
    }
    staged_ += count;
  }
  // Returns the number of the receiver's type; Staging::no_actor if the set has none.
  template <class Message, class Actor>
  GYRE_DEVICE uint32_t number_of() const {
    static_assert(message_number<Actor, Message>() < gyre::HandlesOf<Actor>::count,
                  "ctx.tell<Message>(address, …): the actor at that address has no handler for the message");
    return staging_.number_of(detail::type_hash<Actor>());
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
    GYRE_CHECK(!body.full());  // the message is larger than a slot: see --slot-bytes
    if (writes_envelope) write_envelope(message, envelope, body.used_bytes());
  }
  GYRE_DEVICE void write_envelope(uint32_t* message, const Envelope& prototype, uint32_t body_bytes) const {
    auto& envelope = *reinterpret_cast<Envelope*>(message);
    envelope = prototype;
    envelope.body_bytes = body_bytes;
    MailHead::mark(envelope, staging_.worker(), actor_type_);
  }

  Staging staging_;
  uint32_t actor_type_;
  uint32_t staged_ = 0;
};

}  // namespace detail

/// The Context of a handler that sends up to `most` messages, 1 to 32: a handler declares it as its first
/// parameter, `void on(gyre::Sending<4>& ctx, view::Request::Reader in)`. Handlers send; hooks and on_batch()
/// do not, and neither do actors with `side_by_side = true`.
///
/// What holds of messages between actors:
/// - They leave when the handler has ended well, before its reply does. A handler that fails sends none.
/// - From one actor to another they arrive in the order in which they were sent, each once.
/// - tell() never blocks. Messages that find a full mailbox wait at the sender's worker. While that has no
///   room for as many as a handler of the set may send, it is *held*: it handles only mail whose handlers
///   do not send.
/// - A worker that is held for long moves its mail to memory of Options::spill_bytes, and does not slow down
///   its own senders any more. When that memory is full, further messages are lost, and counted as refused.
/// - A message that its receiver refuses, or whose handler fails, is counted, and nobody is told.
/// - Runtime::drain() waits for these messages. terminate() loses those under way: Books::mail counts them.
template <uint32_t most>
class Sending : public detail::SendingContext {
  static_assert(most >= 1 && most <= 32, "gyre::Sending<N>: a handler may send 1 to 32 messages");

 public:
  /// Only the worker makes one.
  GYRE_DEVICE explicit Sending(const detail::SendingContext& context) : detail::SendingContext(context) {}

  /// Sends a message to an actor, once the handler has ended well. Every thread of the team must call it, in
  /// the same order and with equal arguments; it has no barrier. Never waits.
  /// @tparam Message  the view of the message, which the receiver must handle; a response is not sent
  /// @param to    any actor of the set; one that is not there is created as by the host's messages
  /// @param fill  called as fill(Message::Builder) to build the message. All threads make the same calls that
  ///              allocate; any of them may set an element
  /// The handler's message fails with Status::unknown_actor where the set has no such actor type, and with
  /// Status::check_failed after more than `most` messages, or where the message does not fit a slot.
  template <class Message, class Actor, class Fill>
  GYRE_DEVICE void tell(Address<Actor> to, Fill&& fill) {
    tell_from<Message>(most, to, fill);
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
    tell_each_from<Message>(most, count, address_of, fill);
  }
};

}  // namespace gyre
