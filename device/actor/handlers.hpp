// What an actor declares: its handlers, and how large their replies are.
#pragma once

#include <gyre/messages/envelope.hpp>
#include <gyre/messages/view.hpp>

namespace gyre {

class Context;

/// The requests an actor with several handlers answers: `using Handles = gyre::Handles<view::Get,
/// view::Add>;`. An actor with one on() needs none.
template <class... Requests>
struct Handles {
  static constexpr uint32_t count = sizeof...(Requests);
};

namespace detail {

struct NoResponse {};

template <class Actor, class Reader, class Builder>
struct AskHandler {
  using Request = typename Reader::Reads;
  using Response = typename Builder::Builds;
};
template <class Actor, class Reader>
struct TellHandler {
  using Request = typename Reader::Reads;
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

/// Bytes of the largest reply that `Actor` gives to `Request`, as the actor says it: for all its handlers,
/// `static constexpr uint32_t max_reply_bytes = 4096;`, or request by request,
/// `GYRE_DEVICE static constexpr uint32_t max_reply_bytes(view::List) { return 65536; }`. An ask makes so
/// much room for the reply where its sender says nothing. 0: the actor does not say.
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
GYRE_DEVICE uint32_t first_mismatched_handler(const HandlerTypes* types, uint32_t count) {
  uint32_t n = 0;
  (void)(detail::handlers_agree<Actors>(HandlesOf<Actors>{}, types, count, n) && ...);
  return n;
}

/// The handlers of `Actors`, all together.
template <class... Actors>
inline constexpr uint32_t handler_count = (0u + ... + HandlesOf<Actors>::count);

/// The number among them of the handler with these numbers in envelopes; handler_count if there is none.
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

/// An actor that says `static constexpr bool side_by_side = true`: where several short messages to one of its
/// handlers and one key are there together, a worker of one warp may run the handler for all of them at the
/// same time, each by an equal part of the warp: of no more threads than it has packets, rounded up to 4, 8
/// or 16, and of one where 17 and more of up to 4 packets are there. Longer ones are not. Its handlers change
/// state by add_to() alone, and use no other collective functions than Context's.
template <class Actor>
concept HandlesSideBySide = requires {
  requires Actor::side_by_side;
};
template <class... Actors>
inline constexpr bool any_side_by_side = (HandlesSideBySide<Actors> || ...);

}  // namespace gyre
