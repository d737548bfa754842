// From a message's two numbers to the handler's call: which handlers an actor has, and the call itself.
#pragma once

#include <gyre/device/context.hpp>
#include <gyre/messages/view.hpp>

namespace gyre {

/// The requests an actor with several handlers answers: `using Handles = gyre::Handles<view::Get,
/// view::Add>;`. An actor with one on() needs none.
template <class... Requests>
struct Handles {
  static constexpr uint32_t count = sizeof...(Requests);
};

namespace detail {

template <class T>
struct OwnerOf;  // a view's message from its Reader or Builder
template <class T>
requires requires { typename T::Struct; }
struct OwnerOf<T> {
  using type = typename T::Struct;
};

struct NoResponse {};

template <class Actor, class Reader, class Builder>
struct AskHandler {
  using Request = typename OwnerOf<Reader>::type;
  using Response = typename OwnerOf<Builder>::type;
};
template <class Actor, class Reader>
struct TellHandler {
  using Request = typename OwnerOf<Reader>::type;
  using Response = NoResponse;
};

// Overload resolution does the deduction: given the Reader, only one member of the overload set on(…) fits.
template <class Reader, class Actor, class Builder>
GYRE_DEVICE AskHandler<Actor, Reader, Builder> handler_of(void (Actor::*)(Context&, Reader, Builder));
template <class Reader, class Actor>
GYRE_DEVICE TellHandler<Actor, Reader> handler_of(void (Actor::*)(Context&, Reader));

template <class Actor, class Reader, class Builder>
GYRE_DEVICE AskHandler<Actor, Reader, Builder> only_handler_of(void (Actor::*)(Context&, Reader, Builder));
template <class Actor, class Reader>
GYRE_DEVICE TellHandler<Actor, Reader> only_handler_of(void (Actor::*)(Context&, Reader));

template <class Actor>
concept ListsItsHandlers = requires {
  typename Actor::Handles;
};

template <class Actor>
struct HandlesOf {
  static_assert(
      requires { detail::only_handler_of(&Actor::on); },
      "an actor needs on(gyre::Context&, Request::Reader, Response::Builder); one with several on() lists "
      "their requests: using Handles = gyre::Handles<view::Request, …>");
  using type = gyre::Handles<typename decltype(detail::only_handler_of(&Actor::on))::Request>;
};
template <ListsItsHandlers Actor>
struct HandlesOf<Actor> {
  using type = typename Actor::Handles;
};

}  // namespace detail

/// Handles<…> of the requests that Actor answers, in the order of their message_type numbers.
template <class Actor>
using HandlesOf = typename detail::HandlesOf<Actor>::type;

/// The view of the response that Actor gives to the view Request; detail::NoResponse where it only takes
/// tells.
template <class Actor, class Request>
using ResponseOf = typename decltype(detail::handler_of<typename Request::Reader>(&Actor::on))::Response;

template <class Actor, class Request>
inline constexpr bool answers = requires {
  typename ResponseOf<Actor, Request>;
};

/// Cap'n Proto id of what `Actor` answers to `Request`; 0 where it only takes tells.
template <class Actor, class Request>
GYRE_DEVICE constexpr uint64_t response_id() {
  if constexpr (requires { ResponseOf<Actor, Request>::type_id; }) {
    return ResponseOf<Actor, Request>::type_id;
  } else {
    return 0;
  }
}

namespace detail {
template <class Actor, class... Requests>
GYRE_DEVICE bool handlers_agree(Handles<Requests...>, const HandlerTypes* types, uint32_t count,
                                uint32_t& n) {
  const auto agrees = [&](uint64_t request, uint64_t response) {
    if (n >= count || types[n].request != request || types[n].response != response) return false;
    ++n;
    return true;
  };
  return (agrees(Requests::type_id, response_id<Actor, Requests>()) && ...);
}
}  // namespace detail

/// The number of the first handler of `Actors` that is not of the types that the host says it is; `count` if
/// all are, and there are no others.
template <class... Actors>
GYRE_DEVICE uint32_t first_handler_in_dispute(const HandlerTypes* types, uint32_t count) {
  uint32_t n = 0;
  (void)(detail::handlers_agree<Actors>(HandlesOf<Actors>{}, types, count, n) && ...);
  return n;
}

/// What a handler left behind.
struct Handled {
  Status status;
  uint32_t detail;
  uint64_t where;  ///< see ErrorBody::where
  uint32_t response_bytes;
};

namespace detail {

template <class Actor>
GYRE_DEVICE constexpr uint64_t traversal_words(uint32_t body_bytes) {
  if constexpr (requires { Actor::traversal_words; }) {
    return Actor::traversal_words;
  } else {
    return wire::Message::default_traversal_words(body_bytes);
  }
}

}  // namespace detail

/// Calls Actor::on for one request type. An actor that follows pointers of a request over and over, more than
/// wire::Message::default_traversal_words, says how far it may: `static constexpr uint64_t traversal_words`.
/// `response`: zeroed, response_capacity bytes. Run by the whole handler group.
template <class Actor, class Request>
GYRE_DEVICE Handled handle(Actor& actor, Context& context, const void* body, uint32_t body_bytes,
                           void* response, uint32_t response_capacity) {
  using Response = ResponseOf<Actor, Request>;
  wire::Message message(body, body_bytes, detail::traversal_words<Actor>(body_bytes));
  wire::Body reply(response, response_capacity);
  typename Request::Reader reader(message.root(Request::type_id));
  if constexpr (requires { typename Response::Builder; }) {
    typename Response::Builder builder(reply.init_root(Response::data_words, Response::pointers));
    if (!message.failed()) actor.on(context, reader, builder);
  } else {
    if (!message.failed()) actor.on(context, reader);
  }
  if (message.failed()) {
    const wire::Field field = message.failed_field();
    const MalformedField where = MalformedField::of(field.type_id, uint8_t(message.reason()), field.index);
    return {Status::malformed, message.failed_word(), where.packed, reply.used_bytes()};
  }
  if (context.status() != Status::ok) return {context.status(), context.detail(), 0, reply.used_bytes()};
  if (reply.full()) return {Status::reply_too_large, response_capacity, 0, reply.used_bytes()};
  return {Status::ok, 0, 0, reply.used_bytes()};
}

/// The actors of one worker, one of each type.
template <class... Actors>
struct ActorStates;
template <>
struct ActorStates<> {};
template <class First, class... Rest>
struct ActorStates<First, Rest...> {
  First first;
  ActorStates<Rest...> rest;
};

namespace detail {

template <class Actor, class... Requests>
GYRE_DEVICE Handled dispatch_message(Handles<Requests...>, Actor& actor, Context& context,
                                     uint32_t message_type, const void* body, uint32_t body_bytes,
                                     void* response, uint32_t capacity) {
  Handled handled{Status::unknown_message, 0, 0, 0};
  uint32_t index = 0;
  (void)((message_type == index++
              ? (handled = handle<Actor, Requests>(actor, context, body, body_bytes, response, capacity),
                 true)
              : false) ||
         ...);
  return handled;
}

}  // namespace detail

GYRE_DEVICE inline Handled dispatch(ActorStates<>&, Context&, uint32_t, uint32_t, const void*, uint32_t,
                                    void*, uint32_t) {
  return {Status::unknown_actor, 0, 0, 0};
}

/// Hands a message to the actor and handler with its numbers. Run by the whole handler group.
template <class First, class... Rest>
GYRE_DEVICE Handled dispatch(ActorStates<First, Rest...>& actors, Context& context, uint32_t actor_type,
                             uint32_t message_type, const void* body, uint32_t body_bytes, void* response,
                             uint32_t capacity) {
  if (actor_type == 0) {
    return detail::dispatch_message(HandlesOf<First>{}, actors.first, context, message_type, body, body_bytes,
                                    response, capacity);
  }
  return dispatch(actors.rest, context, actor_type - 1, message_type, body, body_bytes, response, capacity);
}

}  // namespace gyre
