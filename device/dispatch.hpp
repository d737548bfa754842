// From a message's two numbers to the handler's call: which handlers an actor has, and the call itself.
#pragma once

#include <gyre/device/actor_table.hpp>
#include <gyre/device/context.hpp>
#include <gyre/messages/view.hpp>

#if !defined(__CUDACC_RTC__)
#include <new>
#endif

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
  if (context.status() != Status::ok)
    return {context.status(), context.detail(), context.where(), reply.used_bytes()};
  if (reply.full()) return {Status::reply_too_large, response_capacity, 0, reply.used_bytes()};
  return {Status::ok, 0, 0, reply.used_bytes()};
}

/// The actor types of a worker, as a value to dispatch on.
template <class... Actors>
struct ActorList {};

namespace detail {

template <class... Requests>
GYRE_DEVICE constexpr uint32_t count_of(Handles<Requests...>) {
  return sizeof...(Requests);
}

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

GYRE_DEVICE constexpr bool is_lifecycle(uint32_t message_type) {
  return message_type == lifecycle_message::start || message_type == lifecycle_message::stop;
}

// Creates what is not there and should be. One thread; the actor's hooks come later, from the group.
template <class Actor>
GYRE_DEVICE void locate_in(ActorTable table, uint32_t capacity, const Envelope& envelope,
                           WorkerShared& shared) {
  const uint32_t message_type = envelope.message_type;
  if (message_type >= count_of(gyre::HandlesOf<Actor>{}) && !is_lifecycle(message_type)) {
    shared.refused = Status::unknown_message;
    return;
  }
  shared.state = table.find(envelope.key);
  if (shared.state != nullptr) return;
  const bool creates = message_type == lifecycle_message::start ||
                       (message_type != lifecycle_message::stop && created_by_message<Actor>());
  if (!creates) {
    shared.refused = Status::no_such_actor;
    return;
  }
  shared.state = table.insert(envelope.key);
  if (shared.state == nullptr) {
    shared.refused = Status::actor_table_full;
    shared.detail = capacity;
    return;
  }
  new (shared.state) Actor{};
  shared.created = 1;
}

// True where some thread of the group failed. The whole group; nobody sets the status between the barriers.
GYRE_DEVICE inline bool hook_failed(const Context& context, WorkerShared& shared) {
  if (context.status() != Status::ok && HandlerGroup::first_to_set(shared.status, context.status())) {
    shared.detail = context.detail();
    shared.where = context.where();
  }
  HandlerGroup::sync();
  const bool failed = shared.status != Status::ok;
  HandlerGroup::sync();
  return failed;
}

}  // namespace detail

GYRE_DEVICE inline void locate(ActorList<>, const EngineMemory&, uint8_t*, uint32_t, const Envelope&,
                               WorkerShared& shared) {
  shared.refused = Status::unknown_actor;
}

/// Finds the actor that a message is for, or creates it: `shared.state`, or `shared.refused`. `tables`: the
/// worker's, of the types from First on. One thread.
template <class First, class... Rest>
GYRE_DEVICE void locate(ActorList<First, Rest...>, const EngineMemory& memory, uint8_t* tables,
                        uint32_t actor_type, const Envelope& envelope, WorkerShared& shared) {
  const ActorTableLayout layout = ActorTables<First>::first(memory.actors_per_worker);
  if (actor_type != 0) {
    return locate(ActorList<Rest...>{}, memory, tables + layout.bytes(), actor_type - 1, envelope, shared);
  }
  if constexpr (detail::state_bytes<First>() != 0) {
    detail::locate_in<First>(ActorTable(tables, layout), layout.capacity, envelope, shared);
  }
}

GYRE_DEVICE inline void remove(ActorList<>, const EngineMemory&, uint8_t*, uint32_t, uint64_t) {}

/// Removes an actor from its table. One thread.
template <class First, class... Rest>
GYRE_DEVICE void remove(ActorList<First, Rest...>, const EngineMemory& memory, uint8_t* tables,
                        uint32_t actor_type, uint64_t key) {
  const ActorTableLayout layout = ActorTables<First>::first(memory.actors_per_worker);
  if (actor_type != 0) {
    return remove(ActorList<Rest...>{}, memory, tables + layout.bytes(), actor_type - 1, key);
  }
  if constexpr (detail::state_bytes<First>() != 0) ActorTable(tables, layout).erase(key);
}

GYRE_DEVICE inline Handled dispatch(ActorList<>, WorkerShared&, Context&, uint32_t, uint32_t, const void*,
                                    uint32_t, void*, uint32_t) {
  return {Status::unknown_actor, 0, 0, 0};
}

/// Hands a message to the handler with its numbers, of the actor in `shared.state`; a new actor's on_start
/// comes first. Run by the whole handler group.
template <class First, class... Rest>
GYRE_DEVICE Handled dispatch(ActorList<First, Rest...>, WorkerShared& shared, Context& context,
                             uint32_t actor_type, uint32_t message_type, const void* body,
                             uint32_t body_bytes, void* response, uint32_t capacity) {
  if (actor_type != 0) {
    return dispatch(ActorList<Rest...>{}, shared, context, actor_type - 1, message_type, body, body_bytes,
                    response, capacity);
  }
  if constexpr (detail::state_bytes<First>() == 0) {
    if (detail::is_lifecycle(message_type)) return {Status::ok, 0, 0, 0};
    First actor{};
    return detail::dispatch_message(HandlesOf<First>{}, actor, context, message_type, body, body_bytes,
                                    response, capacity);
  } else {
    First& actor = *static_cast<First*>(shared.state);
    if constexpr (detail::HasOnStart<First>) {
      if (shared.created != 0) {
        actor.on_start(context);
        if (detail::hook_failed(context, shared)) {
          if (HandlerGroup::rank() == 0) shared.gone = 1;
          return {shared.status, shared.detail, shared.where, 0};
        }
      }
    }
    if (message_type == lifecycle_message::start) return {Status::ok, 0, 0, 0};
    if (message_type == lifecycle_message::stop) {
      if constexpr (detail::HasOnStop<First>) actor.on_stop(context);
      if (HandlerGroup::rank() == 0) shared.gone = 1;
      return {context.status(), context.detail(), context.where(), 0};
    }
    return detail::dispatch_message(HandlesOf<First>{}, actor, context, message_type, body, body_bytes,
                                    response, capacity);
  }
}

/// Calls `visit(actor, key)` for each actor there is whose type has an on_stop. Run by the whole handler
/// group.
template <class Visit>
GYRE_DEVICE void for_each_to_stop(ActorList<>, const EngineMemory&, uint8_t*, uint32_t, Visit&&) {}
template <class First, class... Rest, class Visit>
GYRE_DEVICE void for_each_to_stop(ActorList<First, Rest...>, const EngineMemory& memory, uint8_t* tables,
                                  uint32_t actor_type, Visit&& visit) {
  const ActorTableLayout layout = ActorTables<First>::first(memory.actors_per_worker);
  if constexpr (detail::HasOnStop<First>) {
    const ActorTable table(tables, layout);
    uint32_t left = table.living();
    for (uint32_t n = 0; left != 0 && n < table.slot_count(); ++n) {
      uint64_t key = 0;
      void* const state = table.at(n, key);
      if (state == nullptr) continue;
      visit(*static_cast<First*>(state), actor_type, key);
      --left;
    }
  }
  for_each_to_stop(ActorList<Rest...>{}, memory, tables + layout.bytes(), actor_type + 1, visit);
}

}  // namespace gyre
