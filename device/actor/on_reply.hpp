// How an actor takes what its asks end with: on_reply() and on_failure().
#pragma once

#include <gyre/device/actor/call_handler.hpp>
#include <gyre/device/actor/ending.hpp>

namespace gyre {

namespace detail {

// Whether Actor takes replies in a set whose worker makes contexts of that type.
template <class Actor, class ContextType>
GYRE_DEVICE constexpr bool takes_replies() {
  return gyre::AwaitsOf<Actor>::count != 0 && is_asking<ContextType>();
}

// How a reply ends whose handler was called: see Ending.
struct EndingOfReply {
  static constexpr bool only_answers = false;
  Handled end;
  GYRE_DEVICE uint32_t failure_bits() const { return uint32_t(end.status); }
  GYRE_DEVICE uint32_t response_bytes() const { return end.response_bytes; }
  GYRE_DEVICE Handled handled() const { return end; }
};

// Calls Actor::on_reply or on_failure with the reply in hand.
template <class Actor, class State, class ContextType>
GYRE_DEVICE_INLINE Handled handle_reply(Actor& actor, ContextType& context, const void* body,
                                        uint32_t body_bytes, void* response, uint32_t capacity) {
  using Replies = ReplyHandlers<Actor, State>;
  const CallInHand& call = context.call_in_hand();
  wire::Message message(body, body_bytes, traversal_words<Actor>(body_bytes));
  wire::Body none(response, capacity);
  ContextAccess::begin_handler<Actor>(context, message, none, capacity);
  State state = *reinterpret_cast<const State*>(call.state);
  if (context.reply_failed()) {
    ErrorBody error = *static_cast<const ErrorBody*>(body);
    run_handler<typename Replies::OnFailure::ContextType>(CallOnFailure{}, actor, context, state, error);
  } else {
    using Response = typename Replies::OnReply::Response;
    typename Response::Reader reader(message.root(Response::type_id));
    if (!message.failed())
      run_handler<typename Replies::OnReply::ContextType>(CallOnReply{}, actor, context, state, reader);
  }
  return Ending(message, context, none, capacity).handled();
}
template <class Actor, class ContextType, class... States, class... Arguments>
GYRE_DEVICE_INLINE Handled dispatch_reply(Awaits<States...>, Actor& actor, ContextType& context,
                                          Arguments... arguments) {
  Handled handled{Status::unknown_message, 0, 0, 0};
  const uint64_t type = context.call_in_hand().state_type;
  (void)((type == type_hash<States>()
              ? (handled = handle_reply<Actor, States>(actor, context, arguments...), true)
              : false) ||
         ...);
  return handled;
}

}  // namespace detail

}  // namespace gyre
