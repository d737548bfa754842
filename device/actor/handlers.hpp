// Reads what an actor declares: its handlers, and how large their replies are.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/device/actor/rights.hpp>
#include <gyre/device/protocol.hpp>
#include <gyre/messages/envelope.hpp>
#include <gyre/messages/view.hpp>

namespace gyre {

class Context;
template <uint32_t most, class... May>
class Sending;
template <uint32_t most, class... May>
class Asking;
/// Lets a handler call tell_host(): its context lists it, as in gyre::Sending<4, gyre::ToHost>.
struct ToHost {};
/// Lets a handler set timers by send_after() and send_every(): listed as ToHost is.
struct Timers {};
/// Lets a handler broadcast(), publish() and subscribe(): listed as ToHost is.
struct ToMany {};
/// Lets a handler send actors messages, asks and answers that do not fit a slot: listed as ToHost is.
struct LargeMessages {};

/// Lists the requests of an actor with several handlers: `using Handles = gyre::Handles<view::Get,
/// view::Add>;`. An actor with one on(), and one with a protocol (ProtocolOf), needs no list.
template <class... Requests>
struct Handles {
  static constexpr uint32_t count = sizeof...(Requests);
};

namespace detail {

template <class A, class B>
struct Same {
  GYRE_DEVICE static constexpr bool value() { return false; }
};
template <class A>
struct Same<A, A> {
  GYRE_DEVICE static constexpr bool value() { return true; }
};
template <class Type, class... Types>
GYRE_DEVICE constexpr bool is_listed() {
  return (Same<Type, Types>::value() || ...);
}

// What the context that a handler takes allows.
template <class ContextType>
struct RightsOf;
template <>
struct RightsOf<Context> {
  GYRE_DEVICE static constexpr uint32_t most_sent() { return 0; }
  GYRE_DEVICE static constexpr Rights rights() { return {}; }
};
template <bool asks, uint32_t most, class... May>
struct RightsOfSender {
  GYRE_DEVICE static constexpr uint32_t most_sent() { return most; }
  GYRE_DEVICE static constexpr Rights rights() {
    return {true,
            asks,
            is_listed<ToHost, May...>(),
            is_listed<Timers, May...>(),
            is_listed<ToMany, May...>(),
            is_listed<LargeMessages, May...>()};
  }
};
template <uint32_t most, class... May>
struct RightsOf<Sending<most, May...>> : RightsOfSender<false, most, May...> {};
template <uint32_t most, class... May>
struct RightsOf<Asking<most, May...>> : RightsOfSender<true, most, May...> {};
template <class ContextType>
concept IsHandlersContext = requires {
  detail::RightsOf<ContextType>::most_sent();
};

template <class Declared, class Reader, class Builder>
struct AskHandler {
  using ContextType = Declared;
  using Request = typename Reader::Reads;
  using Response = typename Builder::Builds;
};
template <class Declared, class Reader>
struct TellHandler {
  using ContextType = Declared;
  using Request = typename Reader::Reads;
  using Response = NoResponse;
};

// Overload resolution does the deduction: given the Reader, only one member of the overload set on(…) fits.
template <class Reader, class Actor, IsHandlersContext ContextType, class Builder>
GYRE_DEVICE AskHandler<ContextType, Reader, Builder> handler_of(void (Actor::*)(ContextType&, Reader,
                                                                                Builder));
template <class Reader, class Actor, IsHandlersContext ContextType>
GYRE_DEVICE TellHandler<ContextType, Reader> handler_of(void (Actor::*)(ContextType&, Reader));

// Fits `&Actor::on` unless `on` is overloaded: the compiler cannot choose then.
template <class Actor, class ContextType, class Reader, class... Builder>
GYRE_DEVICE auto handler_unless_overloaded(void (Actor::*on)(ContextType&, Reader, Builder...))
    -> decltype(handler_of<Reader>(on));

template <class Actor, class Request>
using HandlerOf = decltype(detail::handler_of<typename Request::Reader>(&Actor::on));
template <class Actor, class Request>
concept HasHandler = requires {
  typename HandlerOf<Actor, Request>;
};

template <class... Requests>
GYRE_DEVICE constexpr uint32_t count_of(Handles<Requests...>) {
  return sizeof...(Requests);
}
template <class... Messages>
GYRE_DEVICE constexpr uint32_t count_of(Accepts<Messages...>) {
  return sizeof...(Messages);
}

template <class Request, class... Requests>
GYRE_DEVICE constexpr uint32_t place_among() {
  uint32_t n = 0;
  (void)((Request::type_id == Requests::type_id ? true : (++n, false)) || ...);
  return n;
}
template <class Request, class... Requests>
GYRE_DEVICE constexpr uint32_t place_of(Handles<Requests...>) {
  return place_among<Request, Requests...>();
}
template <class Request, class... Messages>
GYRE_DEVICE constexpr uint32_t place_of(Accepts<Messages...>) {
  return place_among<Request, typename Accepted<Messages>::Request...>();
}

template <class Actor>
concept ListsItsHandlers = requires {
  typename Actor::Handles;
};
template <class Actor>
concept HasProtocol = (count_of(gyre::ProtocolOf<Actor>{}) != 0);
template <class... Messages>
GYRE_DEVICE Handles<typename Accepted<Messages>::Request...> requests_of(Accepts<Messages...>);

// The requests that an actor says it handles: by Handles, by its protocol, or by its only on().
template <class Actor>
struct RequestsOf {
  static_assert(
      requires { detail::handler_unless_overloaded(&Actor::on); },
      "an actor needs on(gyre::Context&, Request::Reader, Response::Builder); one with several on() lists "
      "their requests: using Handles = gyre::Handles<view::Request, …>");
  using type = gyre::Handles<typename decltype(detail::handler_unless_overloaded(&Actor::on))::Request>;
};
template <ListsItsHandlers Actor>
struct RequestsOf<Actor> {
  using type = typename Actor::Handles;
};
template <class Actor>
requires(!ListsItsHandlers<Actor> && HasProtocol<Actor>) struct RequestsOf<Actor> {
  using type = decltype(detail::requests_of(gyre::ProtocolOf<Actor>{}));
};

template <class Response>
GYRE_DEVICE constexpr uint64_t id_of_response() {
  if constexpr (requires { Response::type_id; }) {
    return Response::type_id;
  } else {
    return 0;
  }
}

// Conditions of the checks below. Compilers print the failed one, with the names of actor and message.
template <class Actor, class Message>
GYRE_DEVICE constexpr bool has_handler() {
  return HasHandler<Actor, typename Accepted<Message>::Request>;
}
template <class Actor, class Message>
GYRE_DEVICE constexpr bool lists() {
  using Listed = typename RequestsOf<Actor>::type;
  return place_of<typename Accepted<Message>::Request>(Listed{}) < count_of(Listed{});
}
template <class Actor, class Message>
GYRE_DEVICE constexpr bool lists_in_order() {
  using Request = typename Accepted<Message>::Request;
  return !lists<Actor, Message>() || place_of<Request>(typename RequestsOf<Actor>::type{}) ==
                                         place_of<Request>(gyre::ProtocolOf<Actor>{});
}
template <class Actor, class Message>
GYRE_DEVICE constexpr bool has_accepted_response() {
  if constexpr (has_handler<Actor, Message>()) {
    return id_of_response<typename HandlerOf<Actor, typename Accepted<Message>::Request>::Response>() ==
           id_of_response<typename Accepted<Message>::Response>();
  } else {
    return true;  // check_handler() reports it
  }
}

template <class Actor, class Request>
GYRE_DEVICE constexpr bool check_handler() {
  static_assert(has_handler<Actor, Request>(),
                "the actor lists the message in its Handles or its protocol and has no handler for it: add "
                "on(gyre::Context&, Message::Reader), or with a Response::Builder for a request");
  return true;
}
template <class Actor, class Message>
GYRE_DEVICE constexpr bool check_protocol() {
  static_assert(lists<Actor, Message>(),
                "the actor's protocol lists the message and its Handles do not: add the message to Handles "
                "and a handler on() to the actor, or remove the message from gyre::Accepts");
  static_assert(lists_in_order<Actor, Message>(),
                "the actor's Handles list the message at another place than its protocol: begin Handles with "
                "the messages of gyre::Accepts, in the same order");
  static_assert(has_accepted_response<Actor, Message>(),
                "the actor's handler has another response to the message than its protocol: write the "
                "handler's as Response(Request) into gyre::Accepts, or the message alone if it has none");
  return true;
}
template <class Actor, class... Requests>
GYRE_DEVICE constexpr bool check_handlers(Handles<Requests...>) {
  return (check_handler<Actor, Requests>() && ...);
}
template <class Actor, class... Messages>
GYRE_DEVICE constexpr bool check_protocols(Accepts<Messages...>) {
  return (check_protocol<Actor, Messages>() && ...);
}

template <class Actor, class... Requests>
GYRE_DEVICE constexpr bool has_handlers(Handles<Requests...>) {
  return (has_handler<Actor, Requests>() && ...);
}
template <class Requests, bool handled>
struct IfHandled {
  using type = Requests;
};
template <class Requests>
struct IfHandled<Requests, false> {
  using type = Handles<>;  // so that the check's error is the only one
};

template <class Actor>
struct HandlesOf {
  using Requests = typename RequestsOf<Actor>::type;
  static_assert(check_handlers<Actor>(Requests{}));
  static_assert(check_protocols<Actor>(gyre::ProtocolOf<Actor>{}));
  using type = typename IfHandled<Requests, has_handlers<Actor>(Requests{})>::type;
};

}  // namespace detail

/// Lists the requests that Actor handles as Handles<…>, in the order of their message_type numbers.
template <class Actor>
using HandlesOf = typename detail::HandlesOf<Actor>::type;

/// Names the view of Actor's response to the view Request; detail::NoResponse if the handler takes only
/// tells.
template <class Actor, class Request>
using ResponseOf = typename detail::HandlerOf<Actor, Request>::Response;

namespace detail {
template <class Actor, class Request>
using ContextOf = typename HandlerOf<Actor, Request>::ContextType;
template <class Actor, class Request>
using RightsToHandle = RightsOf<ContextOf<Actor, Request>>;
}  // namespace detail
/// Returns how many messages Actor's handler of Request may send: N where its context is a Sending<N> or an
/// Asking<N>, else 0.
template <class Actor, class Request>
GYRE_DEVICE constexpr uint32_t most_sent_by() {
  return detail::RightsToHandle<Actor, Request>::most_sent();
}

/// Lists the states that an actor gives its asks, where it has several on_reply():
/// `using Awaits = gyre::Awaits<Withdrawn, Deposited>;`
template <class... States>
struct Awaits {
  static constexpr uint32_t count = sizeof...(States);
};

namespace detail {

template <class Declared, class Reader>
struct ReplyHandler {
  using ContextType = Declared;
  using Response = typename Reader::Reads;
};
template <class Declared>
struct FailureHandler {
  using ContextType = Declared;
};
// As handler_of(), of on_reply(…) and on_failure(…).
template <class State, class Actor, IsHandlersContext ContextType, class Reader>
GYRE_DEVICE ReplyHandler<ContextType, Reader> reply_handler_of(void (Actor::*)(ContextType&, State, Reader));
template <class State, class Actor, IsHandlersContext ContextType>
GYRE_DEVICE FailureHandler<ContextType> failure_handler_of(void (Actor::*)(ContextType&, State, ErrorBody));

// Fits `&Actor::on_reply` unless it is overloaded.
template <class Actor, class ContextType, class State, class Reader>
GYRE_DEVICE Awaits<State> awaits_unless_overloaded(void (Actor::*)(ContextType&, State, Reader));

template <class Actor>
concept ListsItsReplies = requires {
  typename Actor::Awaits;
};
template <class Actor>
concept HasOneReply = requires {
  detail::awaits_unless_overloaded(&Actor::on_reply);
};
template <class Actor>
struct AwaitsOf {
  using type = gyre::Awaits<>;
};
template <ListsItsReplies Actor>
struct AwaitsOf<Actor> {
  using type = typename Actor::Awaits;
};
template <class Actor>
requires(!ListsItsReplies<Actor> && HasOneReply<Actor>) struct AwaitsOf<Actor> {
  using type = decltype(detail::awaits_unless_overloaded(&Actor::on_reply));
};

// The two handlers that take what an ask with that state ends with.
template <class Actor, class State>
struct ReplyHandlers {
  static_assert(
      requires { detail::reply_handler_of<State>(&Actor::on_reply); },
      "an actor needs on_reply(gyre::Context&, State, Response::Reader) for each state that it awaits, by "
      "value; the context may be a gyre::Sending<N>& or gyre::Asking<N>&");
  static_assert(
      requires { detail::failure_handler_of<State>(&Actor::on_failure); },
      "an actor that asks needs on_failure(gyre::Context&, State, gyre::ErrorBody) for each state that it "
      "awaits, all by value; the context may be a gyre::Sending<N>& or gyre::Asking<N>&");
  using OnReply = decltype(detail::reply_handler_of<State>(&Actor::on_reply));
  using OnFailure = decltype(detail::failure_handler_of<State>(&Actor::on_failure));
};

}  // namespace detail

/// Lists the states of Actor's asks as Awaits<…>; none if it does not ask.
template <class Actor>
using AwaitsOf = typename detail::AwaitsOf<Actor>::type;

namespace detail {
GYRE_DEVICE constexpr uint32_t largest() { return 0; }
template <class... Rest>
GYRE_DEVICE constexpr uint32_t largest(uint32_t first, Rest... rest) {
  const uint32_t of_rest = largest(rest...);
  return first > of_rest ? first : of_rest;
}
// The rights of several handlers together.
template <class... Each>
struct AllRights {
  GYRE_DEVICE static constexpr uint32_t most_sent() { return largest(Each::most_sent()...); }
  GYRE_DEVICE static constexpr Rights rights() { return (Rights{} | ... | Each::rights()); }
};
template <class Actor, class... Requests, class... States>
GYRE_DEVICE AllRights<RightsToHandle<Actor, Requests>...,
                      RightsOf<typename ReplyHandlers<Actor, States>::OnReply::ContextType>...,
                      RightsOf<typename ReplyHandlers<Actor, States>::OnFailure::ContextType>...>
    rights_of_all(Handles<Requests...>, Awaits<States...>);
// What the handlers of Actor may do, on_reply() and on_failure() included.
template <class Actor>
using RightsOfActor =
    decltype(detail::rights_of_all<Actor>(gyre::HandlesOf<Actor>{}, gyre::AwaitsOf<Actor>{}));
}  // namespace detail
/// Returns how many messages a handler of Actor may send, on_reply() and on_failure() included; 0 if none
/// sends.
template <class Actor>
GYRE_DEVICE constexpr uint32_t most_sent() {
  return detail::RightsOfActor<Actor>::most_sent();
}
/// Returns what the handlers of Actor may do, on_reply() and on_failure() included.
template <class Actor>
GYRE_DEVICE constexpr Rights rights_of() {
  return detail::RightsOfActor<Actor>::rights();
}
/// Returns what the handlers of any of Actors may do.
template <class... Actors>
GYRE_DEVICE constexpr Rights rights_of_any() {
  return (Rights{} | ... | rights_of<Actors>());
}
/// Counts the replies that Actors take: the states of their asks.
template <class... Actors>
GYRE_DEVICE constexpr uint32_t reply_handler_count() {
  return (0u + ... + AwaitsOf<Actors>::count);
}
/// Returns the Cap'n Proto id of Actor's response to Request; 0 if the handler takes only tells.
template <class Actor, class Request>
GYRE_DEVICE constexpr uint64_t response_id() {
  return detail::id_of_response<ResponseOf<Actor, Request>>();
}

namespace detail {
GYRE_DEVICE constexpr uint32_t as_bytes(uint32_t bytes) { return bytes; }

template <class Actor, class Request>
GYRE_DEVICE constexpr uint32_t declared_reply_bytes() {
  if constexpr (requires { detail::as_bytes(Actor::max_reply_bytes(Request{})); }) {
    return Actor::max_reply_bytes(Request{});
  } else if constexpr (requires { detail::as_bytes(Actor::max_reply_bytes); }) {
    return Actor::max_reply_bytes;
  } else {
    return 0;
  }
}
}  // namespace detail

/// Returns the bytes of the largest reply of Actor to Request, as the actor declares them; 0 if it
/// declares none. An ask reserves them for the reply unless its sender says. An actor declares them for
/// all its handlers, `static constexpr uint32_t max_reply_bytes = 4096;`, or per request,
/// `GYRE_DEVICE static constexpr uint32_t max_reply_bytes(view::List) { return 65536; }`.
template <class Actor, class Request>
GYRE_DEVICE constexpr uint32_t max_reply_bytes() {
  using Response = ResponseOf<Actor, Request>;
  if constexpr (requires { Response::data_words; }) {
    constexpr uint32_t bytes = detail::declared_reply_bytes<Actor, Request>();
    static_assert(bytes == 0 || bytes >= 8 * (1 + Response::data_words + Response::pointers),
                  "max_reply_bytes has no room for the reply's root: 8 bytes, and 8 for each of its words");
    return bytes;
  } else {
    return 0;  // a tell has no reply
  }
}

namespace detail {
template <class Actor, class... Requests>
GYRE_DEVICE constexpr bool any_max_reply_bytes_of(Handles<Requests...>) {
  return ((max_reply_bytes<Actor, Requests>() != 0) || ...);
}
}  // namespace detail
/// Whether a handler of Actors declares how large its replies are.
template <class... Actors>
GYRE_DEVICE constexpr bool any_max_reply_bytes() {
  return (detail::any_max_reply_bytes_of<Actors>(HandlesOf<Actors>{}) || ...);
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

/// Compares the handlers of Actors with the types that the host expects. Returns the number of the first
/// handler that differs; `count` if all agree.
template <class... Actors>
GYRE_DEVICE uint32_t first_mismatched_handler(const HandlerTypes* types, uint32_t count) {
  uint32_t n = 0;
  (void)(detail::handlers_agree<Actors>(HandlesOf<Actors>{}, types, count, n) && ...);
  return n;
}

/// Counts the handlers of all Actors.
template <class... Actors>
inline constexpr uint32_t handler_count = (0u + ... + HandlesOf<Actors>::count);

/// Returns the number, among the handlers of all Actors, of the handler with these numbers in envelopes;
/// handler_count if there is none.
template <class... Actors>
GYRE_DEVICE uint32_t handler_number(uint32_t actor_type, uint32_t message_type) {
  uint32_t first = 0, type = 0, number = handler_count<Actors...>;
  const auto visit = [&](uint32_t handlers) {
    if (type++ == actor_type && message_type < handlers) number = first + message_type;
    first += handlers;
  };
  (visit(HandlesOf<Actors>::count), ...);
  return number;
}

/// Matches an actor with `static constexpr bool side_by_side = true`. If several short messages for one
/// handler and one key have arrived, a worker of one warp may handle them at once, each by an equal part
/// of the warp. A part has at most as many threads as a message has packets, rounded up to 4, 8 or 16; one
/// thread if 17 or more messages of up to 4 packets have arrived. Longer messages are handled one by one. The
/// actor's handlers may change state only by add_to(), and use no collective functions except Context's.
template <class Actor>
concept HandlesSideBySide = requires {
  requires Actor::side_by_side;
};
template <class... Actors>
inline constexpr bool any_side_by_side = (HandlesSideBySide<Actors> || ...);

/// Which messages to actors of a type a worker of one warp may handle at once, beside each other.
enum class SideBySide : uint8_t {
  none,
  any,           ///< HandlesSideBySide: also those to one actor
  distinct_keys  ///< those of other actors, to different actors
};
/// Returns it for an actor; `distinct_keys` if it says `static constexpr bool keys_side_by_side = true`: when
/// several messages of other actors have arrived for one of its handlers that neither answers nor sends, up
/// to 32 are handled at once, each by one thread, one message of an actor at a time. Its handlers use no
/// collective functions except Context's.
template <class Actor>
GYRE_DEVICE constexpr SideBySide side_by_side() {
  if constexpr (HandlesSideBySide<Actor>) {
    return SideBySide::any;
  } else if constexpr (requires { requires Actor::keys_side_by_side; }) {
    return SideBySide::distinct_keys;
  } else {
    return SideBySide::none;
  }
}

/// Matches an actor with `static constexpr bool cuda_only = true`: the CPU engine refuses it by name. For the
/// host's compiler its handlers need only be declared.
template <class Actor>
concept CudaOnly = requires {
  requires Actor::cuda_only;
};

}  // namespace gyre
