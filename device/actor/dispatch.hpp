// From a message's two numbers to the call of its handler.
#pragma once

#include <gyre/device/actor/ending.hpp>
#include <gyre/device/actor/handlers.hpp>
#include <gyre/device/actor/table.hpp>
#include <gyre/device/actor/working_memory.hpp>
#include <gyre/device/context.hpp>
#include <gyre/messages/view.hpp>

#if !defined(__CUDACC_RTC__)
#include <new>
#endif

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

// The handler's call itself.
template <class Actor, class Request, class Root>
GYRE_DEVICE void call(Actor& actor, Context& context, wire::Message& message, wire::StructReader root,
                      wire::Body& reply, uint32_t response_capacity, Root init_root) {
  ContextAccess::begin_handler<Actor>(context, message, reply, response_capacity);
  using Response = ResponseOf<Actor, Request>;
  typename Request::Reader reader(root);
  if constexpr (requires { typename Response::Builder; }) {
    typename Response::Builder builder(init_root(reply, Response::data_words, Response::pointers));
    if (!message.failed()) actor.on(context, reader, builder);
  } else {
    if (!message.failed()) actor.on(context, reader);
  }
}

struct InitRoot {
  GYRE_DEVICE wire::StructBuilder operator()(wire::Body& reply, uint32_t data_words,
                                             uint32_t pointers) const {
    return reply.init_root(data_words, pointers);
  }
};
struct InitPlainRoot {
  GYRE_DEVICE wire::StructBuilder operator()(wire::Body& reply, uint32_t data_words,
                                             uint32_t pointers) const {
    return reply.init_plain_root(data_words, pointers);
  }
};

template <class Response>
GYRE_DEVICE constexpr bool root_fits(uint32_t capacity_bytes) {
  if constexpr (requires { Response::data_words; }) {
    return capacity_bytes >= 8 * (1 + Response::data_words + Response::pointers);
  } else {
    return true;
  }
}

}  // namespace detail

/// Calls Actor::on for one request type. An actor that follows pointers of a request over and over, more than
/// wire::Message::default_traversal_words, says how far it may: `static constexpr uint64_t traversal_words`.
/// `response`: zeroed, response_capacity bytes. Run by the whole handler group.
template <class Actor, class Request>
GYRE_DEVICE Handled handle(Actor& actor, Context& context, const void* body, uint32_t body_bytes,
                           void* response, uint32_t response_capacity) {
  wire::Message message(body, body_bytes, detail::traversal_words<Actor>(body_bytes));
  wire::Body reply(response, response_capacity);
  detail::call<Actor, Request>(actor, context, message, message.root(Request::type_id), reply,
                               response_capacity, detail::InitRoot{});
  return detail::Ending(message, context, reply, response_capacity).handled();
}

/// What became of a message on the short way.
enum class Handling : uint32_t {
  no,          ///< nothing: it goes the long way
  done,        ///< all
  exceptional  ///< handled; what it ends with is in the worker's notes
};

namespace detail {
/// Of the root's lists, those that a comparison of words can vouch for; none where that is not how messages
/// are compared.
template <class Request>
GYRE_DEVICE constexpr wire::NumberLists known_lists() {
  wire::NumberLists known;
  if constexpr (compares_packets) {
    constexpr wire::NumberLists all = wire::NumberLists::in<Request>();
    for (uint32_t index = 0; index != Request::pointers; ++index) {
      const bool comparable = 1 + Request::data_words + index < PacketMatch::body_words;
      if (comparable && index < wire::NumberLists::most) known.set(index, all.of(index));
    }
  }
  return known;
}
/// Words of a request's body that decide, with its size, where its root and those lists lie: bit k, word k.
template <class Request>
GYRE_DEVICE constexpr uint64_t deciding_words() {
  uint64_t words = 1;
  for (uint32_t index = 0; index != Request::pointers; ++index) {
    if (known_lists<Request>().of(index) != wire::ElementSize::none) {
      words |= uint64_t(1) << (1 + Request::data_words + index);
    }
  }
  return words;
}
}  // namespace detail

/// Whether a request lies as it nearly always does, its root as this program's schema has it and the lists of
/// numbers in it plain, and a response's root has room in a slot: then handle_plain() may be called, and so
/// it may for others of its size in which the words are the same that this gives, as bits; 0 if not. `head`:
/// of the request, whose body is at `body`.
template <class Actor, class Request>
GYRE_DEVICE uint64_t fast_path_words(const RequestHead& head, const void* body, uint32_t response_capacity) {
  const bool plain = wire::Message::is_plain_root(head.root_word(), head.body_bytes(), Request::data_words,
                                                  Request::pointers) &&
                     detail::root_fits<ResponseOf<Actor, Request>>(response_capacity) &&
                     wire::Message::has_plain_lists(body, head.body_bytes(), Request::data_words,
                                                    Request::pointers, detail::known_lists<Request>());
  return plain ? detail::deciding_words<Request>() : 0;
}

/// The same as handle() for such a request, which makes a shorter way of it, and then what
/// `conclude(detail::Ending)` says. `head`: of the request, whose body of `body_bytes` bytes is at `body`.
template <class Actor, class Request, class Conclude>
GYRE_DEVICE Handling handle_fast(Actor& actor, Context& context, const RequestHead& head, const void* body,
                                 uint32_t body_bytes, void* response, uint32_t response_capacity,
                                 Conclude&& conclude) {
  constexpr uint32_t words = Request::data_words + Request::pointers;
  // A small root is read from registers.
  [[maybe_unused]] uint64_t root[RequestHead::root_words];
  for (uint32_t k = 0; k < RequestHead::root_words; ++k) root[k] = head.behind_root_word(k);
  wire::Message message(body, body_bytes, detail::traversal_words<Actor>(body_bytes),
                        detail::known_lists<Request>());
  wire::Body reply(response, response_capacity);
  detail::call<Actor, Request>(actor, context, message,
                               message.plain_root(Request::data_words, Request::pointers,
                                                  words <= RequestHead::root_words ? root : nullptr),
                               reply, response_capacity, detail::InitPlainRoot{});
  return conclude(detail::Ending(message, context, reply, response_capacity));
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

template <class Actor, class... Requests>
GYRE_DEVICE uint64_t fast_path_words_of_message(Handles<Requests...>, uint32_t index, const RequestHead& head,
                                                const void* body, uint32_t response_capacity) {
  uint64_t words = 0;
  (void)((head.types() == index
              ? (words = fast_path_words<Actor, Requests>(head, body, response_capacity), true)
              : (index += 1u << 16, false)) ||
         ...);
  return words;
}

// `actor` may be null where `types` is of another.
template <class Actor, class... Requests, class... Arguments>
GYRE_DEVICE bool dispatch_fast_message(Handles<Requests...>, Handling& taken, uint32_t index, uint32_t types,
                                       Actor* actor, Arguments&&... arguments) {
  return ((types == index ? (taken = handle_fast<Actor, Requests>(*actor, arguments...), true)
                          : (index += 1u << 16, false)) ||
          ...);
}

GYRE_DEVICE constexpr bool is_lifecycle(uint32_t message_type) {
  return message_type == lifecycle_message::start || message_type == lifecycle_message::stop;
}

// Creates what is not there and should be. One thread; the actor's hooks come later, from the group.
template <class Actor>
GYRE_DEVICE void locate_in(ActorTable table, uint32_t capacity, const Envelope& envelope,
                           MessageVerdict& verdict) {
  const uint32_t message_type = envelope.message_type;
  if (message_type >= count_of(gyre::HandlesOf<Actor>{}) && !is_lifecycle(message_type)) {
    verdict.refused = Status::unknown_message;
    return;
  }
  verdict.state = table.find(envelope.key);
  if (verdict.state != nullptr) return;
  const bool creates = message_type == lifecycle_message::start ||
                       (message_type != lifecycle_message::stop && created_by_message<Actor>());
  if (!creates) {
    verdict.refused = Status::no_such_actor;
    return;
  }
  verdict.state = table.insert(envelope.key);
  if (verdict.state == nullptr) {
    verdict.refused = Status::actor_table_full;
    verdict.detail = capacity;
    return;
  }
  new (verdict.state) Actor{};
  verdict.new_actor = 1;
}

}  // namespace detail

GYRE_DEVICE inline void locate(ActorList<>, const EngineMemory&, uint8_t*, uint32_t, const Envelope&,
                               MessageVerdict& verdict) {
  verdict.refused = Status::unknown_actor;
}

/// Finds the actor that a message is for, or creates it: `notes.state`, or `notes.refused`. `tables`: the
/// worker's, of the types from First on. One thread.
template <class First, class... Rest>
GYRE_DEVICE void locate(ActorList<First, Rest...>, const EngineMemory& memory, uint8_t* tables,
                        uint32_t actor_type, const Envelope& envelope, MessageVerdict& verdict) {
  const ActorTableLayout layout = ActorTables<First>::first(memory.actors_per_worker);
  if (actor_type != 0) {
    return locate(ActorList<Rest...>{}, memory, tables + layout.bytes(), actor_type - 1, envelope, verdict);
  }
  if constexpr (detail::state_bytes<First>() != 0) {
    detail::locate_in<First>(ActorTable(tables, layout), layout.capacity, envelope, verdict);
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

GYRE_DEVICE inline Handled dispatch(ActorList<>, MessageVerdict&, Context&, uint32_t, uint32_t, const void*,
                                    uint32_t, void*, uint32_t) {
  return {Status::unknown_actor, 0, 0, 0};
}

/// Hands a message to the handler with its numbers, of the actor in `notes.state`; a new actor's on_start
/// comes first. Run by the whole handler group.
template <class First, class... Rest>
GYRE_DEVICE Handled dispatch(ActorList<First, Rest...>, MessageVerdict& verdict, Context& context,
                             uint32_t actor_type, uint32_t message_type, const void* body,
                             uint32_t body_bytes, void* response, uint32_t capacity) {
  if (actor_type != 0) {
    return dispatch(ActorList<Rest...>{}, verdict, context, actor_type - 1, message_type, body, body_bytes,
                    response, capacity);
  }
  if constexpr (detail::state_bytes<First>() == 0) {
    if (detail::is_lifecycle(message_type)) return {Status::ok, 0, 0, 0};
    First actor{};
    return detail::dispatch_message(HandlesOf<First>{}, actor, context, message_type, body, body_bytes,
                                    response, capacity);
  } else {
    First& actor = *static_cast<First*>(verdict.state);
    if constexpr (detail::HasOnStart<First>) {
      if (verdict.new_actor != 0) {
        detail::ContextAccess::begin_hook<First>(context);
        actor.on_start(context);
        if (!context.ok()) {
          if (HandlerGroup::rank() == 0) verdict.remove_actor = 1;
          return {verdict.status, verdict.detail, verdict.where, 0};
        }
      }
    }
    if (message_type == lifecycle_message::start) return {Status::ok, 0, 0, 0};
    if (message_type == lifecycle_message::stop) {
      if constexpr (detail::HasOnStop<First>) {
        detail::ContextAccess::begin_hook<First>(context);
        actor.on_stop(context);
      }
      if (HandlerGroup::rank() == 0) verdict.remove_actor = 1;
      return {context.status(), context.detail(), context.where(), 0};
    }
    return detail::dispatch_message(HandlesOf<First>{}, actor, context, message_type, body, body_bytes,
                                    response, capacity);
  }
}

GYRE_DEVICE inline uint64_t fast_path_words(ActorList<>, uint32_t, const RequestHead&, const void*,
                                            uint32_t) {
  return 0;
}

/// Whether dispatch_plain() may be called for a request, and for which others: words_if_plain() of its actor
/// and type. `first`: the number of the type First.
template <class First, class... Rest>
GYRE_DEVICE uint64_t fast_path_words(ActorList<First, Rest...>, uint32_t first, const RequestHead& head,
                                     const void* body, uint32_t response_capacity) {
  if ((head.types() & 0xffff) != first) {
    return fast_path_words(ActorList<Rest...>{}, first + 1, head, body, response_capacity);
  }
  return detail::fast_path_words_of_message<First>(HandlesOf<First>{}, first, head, body, response_capacity);
}

template <class... Arguments>
GYRE_DEVICE Handling dispatch_fast(ActorList<>, uint32_t, uint32_t, void*, Arguments&&...) {
  return Handling::no;
}

/// The short way of what nearly every message is: for an actor that is there, `state` (null where its type
/// has none), and a message of which words_if_plain() does not say 0. `first`: the number of the type First.
/// `types`: actor and message type, as in the envelope. `arguments`: handle_plain's. Run by the whole handler
/// group.
template <class First, class... Rest, class... Arguments>
GYRE_DEVICE Handling dispatch_fast(ActorList<First, Rest...>, uint32_t first, uint32_t types, void* state,
                                   Arguments&&... arguments) {
  Handling taken = Handling::no;
  bool found = false;
  if constexpr (detail::state_bytes<First>() == 0) {
    First actor{};
    found = detail::dispatch_fast_message(HandlesOf<First>{}, taken, first, types, &actor, arguments...);
  } else {
    found = detail::dispatch_fast_message(HandlesOf<First>{}, taken, first, types, static_cast<First*>(state),
                                          arguments...);
  }
  if (found) return taken;
  return dispatch_fast(ActorList<Rest...>{}, first + 1, types, state, arguments...);
}

/// Bytes that a worker copies of the state of an actor of the type `actor_type` before a message is handled:
/// rollback_bytes() of it.
GYRE_DEVICE inline uint32_t rollback_bytes(ActorList<>, uint32_t) { return 0; }
template <class First, class... Rest>
GYRE_DEVICE uint32_t rollback_bytes(ActorList<First, Rest...>, uint32_t actor_type) {
  if (actor_type != 0) return rollback_bytes(ActorList<Rest...>{}, actor_type - 1);
  return detail::rollback_bytes<First>();
}

/// Whether messages to the actor type `actor_type` may be handled side by side.
GYRE_DEVICE inline bool is_batched(ActorList<>, uint32_t) { return false; }
template <class First, class... Rest>
GYRE_DEVICE bool is_batched(ActorList<First, Rest...>, uint32_t actor_type) {
  if (actor_type != 0) return is_batched(ActorList<Rest...>{}, actor_type - 1);
  return HandlesSideBySide<First>;
}

/// dispatch_plain() for such an actor type, by part of the handler group.
template <class... Arguments>
GYRE_DEVICE void dispatch_in_batch(ActorList<>, uint32_t, uint32_t, void*, Arguments&&...) {}
template <class First, class... Rest, class... Arguments>
GYRE_DEVICE void dispatch_in_batch(ActorList<First, Rest...>, uint32_t first, uint32_t types, void* state,
                                   Arguments&&... arguments) {
  if constexpr (HandlesSideBySide<First>) {
    if (dispatch_fast(ActorList<First>{}, first, types, state, arguments...) != Handling::no) return;
  }
  dispatch_in_batch(ActorList<Rest...>{}, first + 1, types, state, arguments...);
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
