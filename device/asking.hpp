// Asking: the context of a handler that asks other actors, answers later, or forwards what it is asked.
#pragma once

#include <gyre/device/sending.hpp>
#include <gyre/device/worker/open_calls.hpp>

#if !defined(__CUDACC_RTC__)
#include <new>
#endif

namespace gyre {

/// Stands for the reply that an actor is to give later: see Asking::later(). A plain value of 8 bytes that
/// may be kept in a state, or sent in a message as its `call`.
template <class Response>
struct Promise {
  uint64_t call = 0;  ///< 0: of a message that nobody waits for; an answer to it is ignored
};

/// What a handler that asks can do: the base of Asking. A function that a handler calls may take it whatever
/// N the handler has.
class AskingContext : public SendingContext {
 public:
  /// Only the worker makes one.
  /// @param from_actor  as of SendingContext
  /// @param request     the message in hand
  /// @param calls       the worker's
  GYRE_DEVICE AskingContext(uint64_t key, bool is_ask, WorkerShared& shared, const Staging& staging,
                            uint32_t actor_type, bool from_actor, const uint32_t* request,
                            const OpenCalls& calls)
      : SendingContext(key, is_ask, shared, staging, actor_type, from_actor),
        request_(request),
        calls_(calls) {}

  /// Asks an actor, once the handler has ended well. Every thread of the team must call it, in the same order
  /// and with equal arguments; it has no barrier. Never waits.
  /// @tparam Request  the view of the request, whose handler at the receiver has a response
  /// @param to     any actor of the set, the asking one too
  /// @param fill   as of tell()
  /// @param state  handed to on_reply() or on_failure(): trivially copyable, 48 bytes at most
  /// The handler's message fails with Status::open_calls_full where 256 calls of the worker are open, with
  /// Status::check_failed where the actor has no on_reply() for that state and response, and as of tell().
  template <class Request, class Actor, class Fill, class State>
  GYRE_DEVICE void ask(Address<Actor> to, Fill&& fill, const State& state) {
    detail::check_can_be_asked<Actor, Request>();
    static_assert(
        __is_trivially_copyable(State) && sizeof(State) <= sizeof(OpenCall::content) && alignof(State) <= 16,
        "ctx.ask<Request>(address, fill, state): a state is trivially copyable, of 48 bytes at most");
    const uint32_t actor_type = number_of<Request, Actor>();
    if (actor_type == Staging::no_actor) return end(Status::unknown_actor, 0, 0);
    GYRE_CHECK(staged_ < most_);  // more messages than gyre::Asking<N> allows
    constexpr uint64_t state_type = detail::type_hash<State>();
    constexpr uint64_t response_type = detail::id_of_response<ResponseFrom<Actor, Request>>();
    // The asking actor has no on_reply(…, State, Response::Reader).
    GYRE_CHECK(staging_.takes_reply(detail::reply_hash(state_type, response_type, actor_type_)));
    const uint64_t id = open_call(OpenCall::Kind::ask, [&](OpenCall& call) {
      call.state_type = state_type;
      new (call.content) State(state);
    });
    if (id == 0) return;
    Envelope envelope = envelope_to<Request, Actor>(actor_type, to.key);
    envelope.correlation = id;
    envelope.flags = envelope_flags::ask;
    stage<Request>(staged_, envelope, rank() == 0, fill);
    ++staged_;
  }

  /// Defers the reply to the ask in hand: none is sent when the handler returns. Answer it by answer() or
  /// fail(), from any actor. Every thread of the team must call it; it has no barrier.
  /// @tparam Response  the view of the handler's response
  /// @returns the promise. In a tell, in on_reply() and in on_failure() one that nobody waits for
  /// If this actor is stopped before, the ask ends with Status::actor_stopped. A promise that nobody answers
  /// keeps its place among the open calls until then, also when the host's ask has timed out. The handler's
  /// message fails with Status::open_calls_full where 256 calls of the worker are open, with
  /// Status::check_failed for another response.
  template <class Response>
  GYRE_DEVICE Promise<Response> later() {
    Promise<Response> promise;
    later_into(promise);
    return promise;
  }

  /// Answers the ask that a promise stands for, once the handler has ended well. Every thread of the team
  /// must call it, as tell(). A second answer is dropped, and counts as failed.
  /// @param fill  called as fill(Response::Builder) to build the response
  template <class Response, class Fill>
  GYRE_DEVICE void answer(Promise<Response> promise, Fill&& fill) {
    if (promise.call == 0) return;
    GYRE_CHECK(staged_ < most_);  // more messages than gyre::Asking<N> allows
    stage<Response>(staged_, answer_to(promise.call, 0), rank() == 0, fill);
    ++staged_;
  }
  using Context::fail;
  /// Ends the ask that a promise stands for with Status::handler_failed. Otherwise as answer().
  /// @param code  chosen by the handler; the asker receives it
  template <class Response>
  GYRE_DEVICE void fail(Promise<Response> promise, uint32_t code) {
    if (promise.call == 0) return;
    GYRE_CHECK(staged_ < most_);  // more messages than gyre::Asking<N> allows
    uint32_t* const message = staging_.message(staged_);
    if (rank() == 0) {
      *reinterpret_cast<ErrorBody*>(message + Staging::envelope_words) = {Status::handler_failed, code, 0};
      write_envelope(message, answer_to(promise.call, envelope_flags::error), sizeof(ErrorBody), actor_type_);
    }
    ++staged_;
  }

  /// Passes the message in hand on to another actor, once the handler has ended well. That actor's reply goes
  /// to who asked; the response that this handler builds is not sent. Every thread of the team must call it;
  /// it has no barrier.
  /// @param to  an actor whose handler of the request has the same response
  /// @param in  the handler's reader
  /// The handler's message fails with Status::open_calls_full where it is the host's and 256 calls of the
  /// worker are open, and as of tell().
  template <class Actor, class Reader>
  GYRE_DEVICE void forward(Address<Actor> to, const Reader& in) {
    using Request = typename Reader::Reads;
    (void)in;
    const uint32_t actor_type = number_of<Request, Actor>();
    if (actor_type == Staging::no_actor) return end(Status::unknown_actor, 0, 0);
    GYRE_CHECK(staged_ < most_);  // more messages than gyre::Asking<N> allows
    const uint32_t body_bytes = body_in_hand_bytes();
    GYRE_CHECK(Request::type_id == request_id_);  // it reads another message
    const bool fits = body_bytes <= staging_.body_capacity;
    GYRE_CHECK(fits || sends_large_);  // larger than a slot: see gyre::LargeMessages, or --slot-bytes
    // The other actor's response is not this handler's.
    GYRE_CHECK((!is_ask() || detail::id_of_response<ResponseFrom<Actor, Request>>() == response_id_));
    GYRE_CHECK(!deferred_);  // it was forwarded already, or is answered later
    Envelope envelope = envelope_to<Request, Actor>(actor_type, to.key);
    envelope.deadline_us = request().deadline_us;
    envelope.correlation = request().correlation;
    if (is_ask()) {
      envelope.flags = envelope_flags::ask;
      if (from_actor_) {
        deferred_ = true;
      } else {
        envelope.correlation = keep_ask(OpenCall::Kind::forwarded);
        if (envelope.correlation == 0) return;
      }
    }
    const uint32_t first_sender = from_actor_ ? staging_.sender_type() : uint32_t(Staging::nobody);
    if (sends_large_ && !fits) {
      stage_copy(envelope, body_bytes, first_sender);
    } else {
      uint32_t* const message = staging_.message(staged_);
      const auto* const words = static_cast<const uint32_t*>(body_in_hand());
      GYRE_ROLLED
      for (uint32_t i = rank(); i < body_bytes / sizeof(uint32_t); i += size()) {
        message[Staging::envelope_words + i] = words[i];
      }
      if (rank() == 0) write_envelope(message, envelope, body_bytes, first_sender);
    }
    ++staged_;
  }

  // For the worker:

  /// Calls that the handler wrote.
  GYRE_DEVICE uint32_t opened() const { return opened_; }
  /// Whether the message in hand is answered later, or by another actor.
  GYRE_DEVICE bool is_deferred() const { return deferred_; }
  /// Whether the message in hand is a reply to an ask of the actor.
  GYRE_DEVICE bool is_reply() const { return (request().flags & envelope_flags::to_asker) != 0; }
  /// Of a reply in hand: the ask, and whether it failed.
  GYRE_DEVICE const CallInHand& call_in_hand() const { return staging_.call(); }
  GYRE_DEVICE bool reply_failed() const { return (request().flags & envelope_flags::error) != 0; }
  /// The handler's request and response have these Cap'n Proto ids; 0: it has no response.
  GYRE_DEVICE void note_types(uint64_t request, uint64_t response) {
    request_id_ = request;
    response_id_ = response;
  }

 protected:
  GYRE_DEVICE const Envelope& request() const { return *reinterpret_cast<const Envelope*>(request_); }
  // Whether the bodies of the message in hand do not lie in its slot. The host's lie, or may lie, in the
  // arena; an actor's lies in the pool of bodies.
  GYRE_DEVICE bool is_out_of_line() const { return (request().flags & envelope_flags::out_of_line) != 0; }
  // The ask in hand, by which it is answered once the request is gone.
  GYRE_DEVICE KeptAsk asked() const {
    KeptAsk asked{request(), 0, 0, 0};
    if (from_actor_ || !is_out_of_line()) return asked;
    const auto& head = *reinterpret_cast<const OutOfLine*>(request_ + Staging::envelope_words);
    asked.envelope.key = head.block;
    asked.reply_offset = head.reply_offset;
    asked.reply_capacity = head.reply_capacity;
    return asked;
  }
  // Stages the message in hand, which does not fit a slot, for another actor. The chunk that an actor's lies
  // in is passed on with the first such message.
  GYRE_DEVICE void stage_copy(const Envelope& envelope, uint32_t body_bytes, uint32_t first_sender) {
    const uint32_t capacity = staging_.body_pool().body_bytes();
    GYRE_CHECK(body_bytes <= capacity);  // larger than a body of the pool: see --body-bytes
    if (from_actor_ && !passed_on_) {
      passed_on_ = true;
      if (rank() == 0) staging_.body(staged_) = {BodyRecord::in_hand, body_bytes};
    } else {
      uint8_t* const memory = take_body(staged_, envelope.key);
      if (memory == nullptr) return;
      auto* const copy = reinterpret_cast<uint64_t*>(memory);
      const auto* const words = static_cast<const uint64_t*>(body_in_hand());
      for (uint32_t i = rank(); i < body_bytes / sizeof(uint64_t); i += size()) copy[i] = words[i];
      detail::raise_in_group(staging_.body(staged_).bytes, body_bytes);
    }
    if (rank() == 0) write_envelope_of_place(staged_, envelope, first_sender);
  }
  // Writes the next call to be opened. Every thread calls it.
  // @param write  write(OpenCall&): by one thread
  // @returns its id; 0 if there is no room, and the message ends with Status::open_calls_full
  template <class Write>
  GYRE_DEVICE uint64_t open_call(OpenCall::Kind kind, Write&& write) {
    if (!calls_.has_room(opened_)) {
      end(Status::open_calls_full, OpenCalls::capacity, 0);
      return 0;
    }
    const uint64_t id = calls_.next_id(opened_);
    if (rank() == 0) {
      OpenCall& call = calls_.next(opened_);
      call.key = key();
      call.actor_type = uint16_t(actor_type_);
      call.kind = kind;
      call.asked_by_actor = from_actor_ ? 1 : 0;
      write(call);
    }
    ++opened_;
    return id;
  }
  // open_call() of one that keeps the ask in hand.
  GYRE_DEVICE uint64_t keep_ask(OpenCall::Kind kind) {
    deferred_ = true;
    return open_call(kind, [this](OpenCall& call) {
      if (staging_.layout.rights.sends_large) {
        *reinterpret_cast<KeptAsk*>(call.content) = asked();
      } else {  // the answer fits a slot
        *reinterpret_cast<Envelope*>(call.content) = asked().envelope;
      }
    });
  }

  template <class Response>
  GYRE_DEVICE void later_into(Promise<Response>& promise) {
    if (!is_ask()) return;
    GYRE_CHECK(Response::type_id == response_id_);  // it is not the handler's response
    GYRE_CHECK(!deferred_);                         // it was forwarded, or is answered later already
    promise.call = keep_ask(OpenCall::Kind::promise);
  }
  GYRE_DEVICE Envelope answer_to(uint64_t call, uint8_t flags) const {
    return {call, 0, 0, key(), uint16_t(actor_type_), call_message::answer, 0, 0, flags};
  }

  const uint32_t* request_;
  OpenCalls calls_;
  uint32_t opened_ = 0;
  bool deferred_ = false;
  bool passed_on_ = false;    // the chunk of the message in hand, with a message that is staged
  uint64_t request_id_ = 0;   // 0: of no handler's
  uint64_t response_id_ = 0;  // as request_id_
};

namespace detail {
/// Whether that is the context of a set in which a handler asks.
template <class ContextType>
GYRE_DEVICE constexpr bool is_asking() {
  return false;
}
template <>
GYRE_DEVICE constexpr bool is_asking<AskingContext>() {
  return true;
}
}  // namespace detail

/// The Context of a handler that also asks: a handler declares it as its first parameter,
/// `void on(gyre::Asking<4>& ctx, view::Transfer::Reader in, view::Done::Builder out)`. `most`, 1 to 64,
/// counts everything that it sends: messages, asks, answers and forwarded messages.
///
/// An ask never blocks. What it ends with is a message to the asking actor:
///
///     void on_reply(gyre::Context& ctx, State state, view::Response::Reader in);
///     void on_failure(gyre::Context& ctx, State state, gyre::ErrorBody error);
///
/// State is what ask() was given; both may take a Sending<N>& or Asking<N>& and send, too. An actor with
/// several states has on_reply() and on_failure() for each, and lists them:
/// `using Awaits = gyre::Awaits<StateA, StateB>;`
///
/// What holds of asks between actors, beside what holds of messages (Sending):
/// - Each ask ends once: with the reply, or with an error that names the reason. There is no timeout: it ends
///   when the other actor answers.
/// - An on_reply() that fails, or whose reply is malformed, is counted as failed; on_failure() is not called
///   then, and a promise that was in its state is not answered.
/// - Between ask and reply the asking actor handles other messages: what it has read of its own state may
///   have changed.
/// - A reply to an actor that was stopped meanwhile is dropped, and counts as failed; also where there is an
///   actor with that key again.
/// - A worker has room for 256 open calls: asks, promises and forwarded asks of the host.
template <uint32_t most, class... May>
class Asking : public detail::DeclaredContext<AskingContext, most, May...> {
 public:
  using detail::DeclaredContext<AskingContext, most, May...>::DeclaredContext;
};

}  // namespace gyre
