// Calls a handler of an actor with the context that it declares.
#pragma once

#include <gyre/device/actor/handlers.hpp>
#include <gyre/device/actor/on_batch.hpp>
#include <gyre/device/asking.hpp>
#include <gyre/messages/view.hpp>

namespace gyre {

namespace detail {

template <class Actor>
GYRE_DEVICE constexpr uint64_t traversal_words(uint32_t body_bytes) {
  if constexpr (requires { Actor::traversal_words; }) {
    return Actor::traversal_words;
  } else {
    return wire::Message::default_traversal_words(body_bytes);
  }
}

struct CallOn {
  template <class Actor, class ContextType, class... Arguments>
  GYRE_DEVICE_INLINE void operator()(Actor& actor, ContextType& context, Arguments&... arguments) const {
    actor.on(context, arguments...);
  }
};
struct CallOnReply {
  template <class Actor, class ContextType, class... Arguments>
  GYRE_DEVICE_INLINE void operator()(Actor& actor, ContextType& context, Arguments&... arguments) const {
    actor.on_reply(context, arguments...);
  }
};
struct CallOnFailure {
  template <class Actor, class ContextType, class... Arguments>
  GYRE_DEVICE_INLINE void operator()(Actor& actor, ContextType& context, Arguments&... arguments) const {
    actor.on_failure(context, arguments...);
  }
};

// Calls a handler of an actor.
// @tparam Declared  the context that the handler takes
template <class Declared, class Call, class Actor, class ContextType, class... Arguments>
GYRE_DEVICE_INLINE void run_handler(Call call, Actor& actor, ContextType& context, Arguments&... arguments) {
  if constexpr (RightsOf<Declared>::most_sent() == 0) {
    call(actor, context, arguments...);
  } else {
    static_assert(!HandlesSideBySide<Actor> && most_in_batch<Actor>() == 0,
                  "a handler that takes gyre::Sending handles one message at a time: side_by_side and "
                  "on_batch() are for actors that do not send");
    Declared declared(context);
    call(actor, declared, arguments...);
    static_cast<typename Declared::Made&>(context) = declared;
  }
}

}  // namespace detail

}  // namespace gyre
