// Protocols: what an actor may be sent, declared apart from the actor.
#pragma once

#include <gyre/messages/fixed_width.hpp>

namespace gyre {

namespace detail {

struct NoResponse {};

template <class View>
concept IsView = requires {
  View::type_id;
};
// A message of a protocol: a view, or Response(Request).
template <class Message>
struct Accepted {
  using Request = Message;
  using Response = NoResponse;
  GYRE_DEVICE static constexpr bool is_message() { return IsView<Message>; }
};
template <class Reply, class Message>
struct Accepted<Reply(Message)> {
  using Request = Message;
  using Response = Reply;
  GYRE_DEVICE static constexpr bool is_message() { return IsView<Message> && IsView<Reply>; }
};

template <class Message>
GYRE_DEVICE constexpr bool check_accepted() {
  static_assert(Accepted<Message>::is_message(),
                "gyre::Accepts lists views: a message without a response as view::Message, a request as "
                "view::Response(view::Request)");
  return true;
}

}  // namespace detail

/// Lists the messages of a protocol: those without a response as `view::Message`, requests as
/// `view::Response(view::Request)`. See ProtocolOf.
template <class... Messages>
struct Accepts {
  static_assert((detail::check_accepted<Messages>() && ...));
};

/// Says what an actor may be sent, for senders that know nothing else of the actor:
///
///     namespace game {
///     struct Pong;
///     }
///     template <>
///     struct gyre::ProtocolOf<game::Pong>
///         : gyre::Accepts<game::view::Ball, game::view::Score(game::view::ScoreRequest)> {};
///
/// Declare it beside the forward declaration, in a header that the actor's own header includes too. The
/// actor's Handles begin with these messages, in this order; an actor without Handles handles these. A
/// mismatch does not compile. An actor without a protocol is sent messages where it is defined.
template <class Actor>
struct ProtocolOf : Accepts<> {};

}  // namespace gyre
