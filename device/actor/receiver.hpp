// What a sender knows of the receiver of its message.
#pragma once

#include <gyre/device/actor/handlers.hpp>

namespace gyre {

namespace detail {

// Where a sender finds its message.
enum class FoundIn : uint8_t { nothing, protocol, handlers };

template <class Actor>
concept IsDefined = requires {
  sizeof(Actor);
};

// A message of the protocol is found there, whether the actor is defined or not. Another message needs the
// definition: whether that is there decides between a number and an error, never between two numbers.
template <class Actor, class Message>
GYRE_DEVICE constexpr FoundIn found_in() {
  if constexpr (place_of<Message>(gyre::ProtocolOf<Actor>{}) < count_of(gyre::ProtocolOf<Actor>{})) {
    return FoundIn::protocol;
  } else if constexpr (!IsDefined<Actor>) {
    return FoundIn::nothing;
  } else if constexpr (place_of<Message>(gyre::HandlesOf<Actor>{}) < count_of(gyre::HandlesOf<Actor>{})) {
    return FoundIn::handlers;
  } else {
    return FoundIn::nothing;
  }
}

template <class Message, class First, class... Rest>
GYRE_DEVICE constexpr auto accepted_in(Accepts<First, Rest...>) {
  if constexpr (Accepted<First>::Request::type_id == Message::type_id) {
    return Accepted<First>{};
  } else {
    return accepted_in<Message>(Accepts<Rest...>{});
  }
}

template <class Actor, class Message, FoundIn found>
struct KnownHandler {  // stands in for none, so that check_can_be_sent()'s error is the only one
  struct Response {
    struct Reader {};
    static constexpr uint64_t type_id = 0;
  };
  GYRE_DEVICE static constexpr uint32_t number() { return 0; }
};
template <class Actor, class Message>
struct KnownHandler<Actor, Message, FoundIn::protocol> {
  using Response = typename decltype(accepted_in<Message>(gyre::ProtocolOf<Actor>{}))::Response;
  GYRE_DEVICE static constexpr uint32_t number() { return place_of<Message>(gyre::ProtocolOf<Actor>{}); }
};
template <class Actor, class Message>
struct KnownHandler<Actor, Message, FoundIn::handlers> {
  using Response = gyre::ResponseOf<Actor, Message>;
  GYRE_DEVICE static constexpr uint32_t number() { return place_of<Message>(gyre::HandlesOf<Actor>{}); }
};

template <class Actor, class Message>
using HandlerKnownToSenders = KnownHandler<Actor, Message, found_in<Actor, Message>()>;

template <class Actor, class Message>
GYRE_DEVICE constexpr bool accepts_or_is_defined() {
  return found_in<Actor, Message>() != FoundIn::nothing || IsDefined<Actor>;
}
template <class Actor, class Message>
GYRE_DEVICE constexpr bool handles_or_is_declared_only() {
  return found_in<Actor, Message>() != FoundIn::nothing || !IsDefined<Actor>;
}
template <class Actor, class Request>
GYRE_DEVICE constexpr bool answers() {
  return requires { typename HandlerKnownToSenders<Actor, Request>::Response::Reader; };
}
template <class Actor, class Request>
GYRE_DEVICE constexpr bool is_answered() {
  return found_in<Actor, Request>() != FoundIn::nothing && answers<Actor, Request>();
}

// Does not compile unless an actor of that type can be sent that message. Compilers name both in the error.
template <class Actor, class Message>
GYRE_DEVICE constexpr bool check_can_be_sent() {
  static_assert(
      accepts_or_is_defined<Actor, Message>(),
      "the actor at that address is only declared here, and its protocol does not list the message: add "
      "the message to gyre::ProtocolOf of the actor, or include the header that defines the actor");
  static_assert(handles_or_is_declared_only<Actor, Message>(),
                "the actor at that address has no handler for the message: add on() for the message to the "
                "actor, and the message to its Handles; or send the message to an actor that handles it");
  return true;
}
// Does not compile if the actor's handler of that request has no response.
template <class Actor, class Request>
GYRE_DEVICE constexpr bool check_can_be_asked() {
  static_assert(answers<Actor, Request>(),
                "the actor's handler of the message has no response: tell the actor instead of asking it, or "
                "give the handler a Response::Builder");
  return true;
}

}  // namespace detail

/// Returns the number that Message has in envelopes to Actor, which may be known by its protocol alone. Does
/// not compile unless the actor handles the message.
template <class Actor, class Message>
GYRE_DEVICE constexpr uint32_t message_number() {
  detail::check_can_be_sent<Actor, Message>();
  return detail::HandlerKnownToSenders<Actor, Message>::number();
}
/// Names the view of the response that a sender of Request gets from Actor, which may be known by its
/// protocol alone; detail::NoResponse if there is none.
template <class Actor, class Request>
using ResponseFrom = typename detail::HandlerKnownToSenders<Actor, Request>::Response;

}  // namespace gyre
