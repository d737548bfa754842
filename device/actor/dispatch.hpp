// From a message's two numbers to the call of its handler.
#pragma once

#include <gyre/device/actor/call_handler.hpp>
#include <gyre/device/actor/ending.hpp>
#include <gyre/device/actor/handlers.hpp>
#include <gyre/device/actor/lookup.hpp>
#include <gyre/device/actor/on_batch.hpp>
#include <gyre/device/actor/on_reply.hpp>
#include <gyre/device/actor/working_memory.hpp>
#include <gyre/device/context.hpp>
#include <gyre/messages/view.hpp>

namespace gyre {

/// What a handler's responses take.
struct ReplyRoom {
  bool has_response;
  uint32_t max_bytes;  ///< as it declares them; 0: it does not
};

namespace detail {

// Calls Actor::on with a reader and, for asks, a builder.
template <class Actor, class Request, class ContextType, class Root>
GYRE_DEVICE_INLINE void call(Actor& actor, ContextType& context, wire::Message& message,
                             wire::StructReader root, wire::Body& reply, uint32_t response_capacity,
                             Root init_root) {
  ContextAccess::begin_handler<Actor>(context, message, reply, response_capacity);
  using Response = ResponseOf<Actor, Request>;
  typename Request::Reader reader(root);
  if constexpr (requires { typename Response::Builder; }) {
    typename Response::Builder builder(init_root(reply, Response::data_words, Response::pointers));
    if constexpr (is_asking<ContextType>()) context.note_types(Request::type_id, Response::type_id);
    if (!message.failed()) run_handler<ContextOf<Actor, Request>>(CallOn{}, actor, context, reader, builder);
  } else {
    if constexpr (is_asking<ContextType>()) context.note_types(Request::type_id, 0);
    if (!message.failed()) run_handler<ContextOf<Actor, Request>>(CallOn{}, actor, context, reader);
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

/// Calls Actor::on for one request type, on any body. An actor that reads more words of a request than
/// wire::Message::default_traversal_words declares its limit: `static constexpr uint64_t traversal_words`. By
/// the whole handler group.
/// @param response  zeroed, response_capacity bytes
template <class Actor, class Request, class ContextType>
GYRE_DEVICE_INLINE Handled handle(Actor& actor, ContextType& context, const void* body, uint32_t body_bytes,
                                  void* response, uint32_t response_capacity) {
  wire::Message message(body, body_bytes, detail::traversal_words<Actor>(body_bytes));
  wire::Body reply(response, response_capacity);
  detail::call<Actor, Request>(actor, context, message, message.root(Request::type_id), reply,
                               response_capacity, detail::InitRoot{});
  return detail::Ending(message, context, reply, response_capacity).handled();
}

/// What a path did with a message.
enum class Handling : uint32_t {
  none,        ///< nothing: the special path has to take it
  noted,       ///< the handler ran; how it ended in the calling thread is noted
  voted,       ///< and the group knows whether it ended well
  done,        ///< all
  exceptional  ///< the handler ran; how the message ends is in the verdict
};

namespace detail {
/// The root's lists of numbers whose places a comparison of packets guarantees; none where packets are not
/// compared.
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
/// The words of a request's body that decide, with its size, where its root and those lists lie: bit k, word
/// k.
template <class Request>
GYRE_DEVICE constexpr uint64_t deciding_word_mask() {
  uint64_t words = 1;
  for (uint32_t index = 0; index != Request::pointers; ++index) {
    if (known_lists<Request>().of(index) != wire::ElementSize::none) {
      words |= uint64_t(1) << (1 + Request::data_words + index);
    }
  }
  return words;
}

// Whether a request's root lies as this program's schema has it and its lists of numbers right behind their
// pointers, and the response's root has room in a slot: then handle_fast() may be called.
// @returns the words that must be equal in other requests of the same size, as bits, for them to be fast too;
// 0: not fast
template <class Actor, class Request>
GYRE_DEVICE uint64_t fast_path_mask_of(const RequestHead& head, const void* body,
                                       uint32_t response_capacity) {
  const bool plain = wire::Message::is_plain_root(head.root_word(), head.body_bytes(), Request::data_words,
                                                  Request::pointers) &&
                     root_fits<ResponseOf<Actor, Request>>(response_capacity) &&
                     wire::Message::has_plain_lists(body, head.body_bytes(), Request::data_words,
                                                    Request::pointers, known_lists<Request>());
  return plain ? deciding_word_mask<Request>() : 0;
}

// handle() for a request of which fast_path_mask_of() is not 0: a small root is read from registers, and
// neither its place nor that of its lists is checked again.
// @returns conclude(EndingOf<Actor, Request>)
template <class Actor, class Request, class ContextType, class Conclude>
GYRE_DEVICE_INLINE Handling handle_fast(Actor& actor, ContextType& context, const RequestHead& head,
                                        const void* body, uint32_t body_bytes, void* response,
                                        uint32_t response_capacity, Conclude&& conclude) {
  constexpr uint32_t words = Request::data_words + Request::pointers;
  [[maybe_unused]] uint64_t root[RequestHead::root_words];
  for (uint32_t k = 0; k < RequestHead::root_words; ++k) root[k] = head.behind_root_word(k);
  wire::Message message(body, body_bytes, traversal_words<Actor>(body_bytes), known_lists<Request>());
  wire::Body reply(response, response_capacity);
  call<Actor, Request>(actor, context, message,
                       message.plain_root(Request::data_words, Request::pointers,
                                          words <= RequestHead::root_words ? root : nullptr),
                       reply, response_capacity, InitPlainRoot{});
  return conclude(EndingOf<Actor, Request>(message, context, reply, response_capacity));
}
}  // namespace detail

namespace detail {

template <class Actor, class ContextType, class... Requests>
GYRE_DEVICE_INLINE Handled dispatch_message(Handles<Requests...>, Actor& actor, ContextType& context,
                                            uint32_t message_type, const void* body, uint32_t body_bytes,
                                            void* response, uint32_t capacity) {
  Handled handled{Status::unknown_message, 0, 0, 0};
  uint32_t n = 0;
  (void)((message_type == n++
              ? (handled = handle<Actor, Requests>(actor, context, body, body_bytes, response, capacity),
                 true)
              : false) ||
         ...);
  return handled;
}
template <class Actor, class... Requests>
GYRE_DEVICE uint64_t fast_path_mask_of_message(Handles<Requests...>, const RequestHead& head,
                                               const void* body, uint32_t response_capacity) {
  uint64_t words = 0;
  uint32_t n = 0;
  (void)((head.types() >> 16 == n++
              ? (words = fast_path_mask_of<Actor, Requests>(head, body, response_capacity), true)
              : false) ||
         ...);
  return words;
}
// `types`, as RequestHead::types(), is compared whole with each handler's. `actor` may be null where it is of
// another type.
template <class Actor, class... Requests, class... Arguments>
GYRE_DEVICE_INLINE bool dispatch_fast_message(Handles<Requests...>, Handling& handling, uint32_t n,
                                              uint32_t types, Actor* actor, Arguments&&... arguments) {
  return ((types == n ? (handling = handle_fast<Actor, Requests>(*actor, arguments...), true)
                      : (n += 1u << 16, false)) ||
          ...);
}
template <class Actor, class... Arguments>
GYRE_DEVICE_INLINE bool dispatch_fast_to(Handling& handling, uint32_t actor_type, uint32_t types, void* state,
                                         Arguments&&... arguments) {
  if constexpr (state_bytes<Actor>() == 0) {
    Actor actor{};
    return dispatch_fast_message(gyre::HandlesOf<Actor>{}, handling, actor_type, types, &actor, arguments...);
  } else {
    return dispatch_fast_message(gyre::HandlesOf<Actor>{}, handling, actor_type, types,
                                 static_cast<Actor*>(state), arguments...);
  }
}
// The same for the reply to an ask.
template <class Actor, class ContextType, class Conclude>
GYRE_DEVICE_INLINE bool dispatch_fast_reply(Handling& handling, uint32_t actor_type, uint32_t types,
                                            void* state, ContextType& context, const RequestHead&,
                                            const void* body, uint32_t body_bytes, void* response,
                                            uint32_t capacity, Conclude&& conclude) {
  if constexpr (takes_replies<Actor, ContextType>()) {
    if ((types & 0xffff) != actor_type) return false;
    const auto take = [&](Actor& actor) {
      const Handled handled =
          dispatch_reply(gyre::AwaitsOf<Actor>{}, actor, context, body, body_bytes, response, capacity);
      handling = conclude(EndingOfReply{handled});
    };
    if constexpr (state_bytes<Actor>() == 0) {
      Actor actor{};
      take(actor);
    } else {
      take(*static_cast<Actor*>(state));
    }
    return true;
  }
  return false;
}

// Calls the actor in `verdict.state`; a new actor's on_start comes first.
// @tparam with_replies  there may be a reply whose body lies in the pool. All others take the fast path
template <class Actor, bool with_replies, class ContextType>
GYRE_DEVICE_INLINE Handled dispatch_to(MessageVerdict& verdict, ContextType& context, uint32_t message_type,
                                       const void* body, uint32_t body_bytes, void* response,
                                       uint32_t capacity) {
  if constexpr (state_bytes<Actor>() == 0) {
    if (is_lifecycle(message_type)) {
      // Promises, timers and subscriptions end.
      if constexpr (is_asking<ContextType>() || rights_of<Actor>().sets_timers ||
                    rights_of<Actor>().sends_to_many) {
        if (message_type == lifecycle_message::stop && HandlerGroup::rank() == 0) verdict.remove_actor = 1;
      }
      return {Status::ok, 0, 0, 0};
    }
    Actor actor{};
    if constexpr (with_replies && takes_replies<Actor, ContextType>()) {
      if (context.is_reply())
        return dispatch_reply(gyre::AwaitsOf<Actor>{}, actor, context, body, body_bytes, response, capacity);
    }
    return dispatch_message(gyre::HandlesOf<Actor>{}, actor, context, message_type, body, body_bytes,
                            response, capacity);
  } else {
    Actor& actor = *static_cast<Actor*>(verdict.state);
    if constexpr (HasOnStart<Actor>) {
      if (verdict.new_actor != 0) {
        ContextAccess::begin_hook<Actor>(context);
        actor.on_start(context);
        if (!context.ok()) {
          if (HandlerGroup::rank() == 0) verdict.remove_actor = 1;
          return {verdict.status, verdict.detail, verdict.where, 0};
        }
      }
    }
    if constexpr (with_replies && takes_replies<Actor, ContextType>()) {
      if (context.is_reply())
        return dispatch_reply(gyre::AwaitsOf<Actor>{}, actor, context, body, body_bytes, response, capacity);
    }
    if (message_type == lifecycle_message::start) return {Status::ok, 0, 0, 0};
    if (message_type == lifecycle_message::stop) {
      if constexpr (HasOnStop<Actor>) {
        ContextAccess::begin_hook<Actor>(context);
        actor.on_stop(context);
      }
      if (HandlerGroup::rank() == 0) verdict.remove_actor = 1;
      return {context.status(), context.detail(), context.where(), 0};
    }
    return dispatch_message(gyre::HandlesOf<Actor>{}, actor, context, message_type, body, body_bytes,
                            response, capacity);
  }
}

template <class ContextType, bool with_replies>
struct Dispatch {
  MessageVerdict& verdict;
  ContextType& context;
  uint32_t message_type;
  const void* body;
  uint32_t body_bytes;
  void* response;
  uint32_t capacity;
  Handled handled{Status::unknown_actor, 0, 0, 0};
  template <class Actor>
  GYRE_DEVICE_INLINE void operator()(ActorType<Actor>) {
    handled = dispatch_to<Actor, with_replies>(verdict, context, message_type, body, body_bytes, response,
                                               capacity);
  }
};
struct FastPathMask {
  const RequestHead& head;
  const void* body;
  uint32_t response_capacity;
  uint64_t words = 0;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>) {
    words = fast_path_mask_of_message<Actor>(gyre::HandlesOf<Actor>{}, head, body, response_capacity);
  }
};
// What the worker needs to know of an actor's type.
struct Traits {
  uint32_t rollback_bytes = 0;
  bool handles_side_by_side = false;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>) {
    rollback_bytes = detail::rollback_bytes<Actor>();
    handles_side_by_side = HandlesSideBySide<Actor>;
  }
};
template <class Actor, class... Arguments>
GYRE_DEVICE bool dispatch_in_batch_to(uint32_t actor_type, uint32_t types, void* state,
                                      Arguments&&... arguments) {
  if constexpr (HandlesSideBySide<Actor>) {
    Handling handling = Handling::none;
    return dispatch_fast_to<Actor>(handling, actor_type, types, state, arguments...);
  } else {
    return false;
  }
}
template <class Actor, class... Requests>
GYRE_DEVICE uint32_t most_sent_of_message(Handles<Requests...>, uint32_t message_type) {
  uint32_t n = 0, most = 0;
  (void)((message_type == n++ ? (most = most_sent_by<Actor, Requests>(), true) : false) || ...);
  return most;
}
struct MostSentByHandler {
  uint32_t message_type;
  uint32_t most = 0;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>) {
    most = most_sent_of_message<Actor>(gyre::HandlesOf<Actor>{}, message_type);
  }
};
template <class Actor, class... Requests>
GYRE_DEVICE ReplyRoom reply_room_of(Handles<Requests...>, uint32_t message_type) {
  ReplyRoom found{false, 0};
  uint32_t n = 0;
  (void)((message_type == n++
              ? (found = {response_id<Actor, Requests>() != 0, gyre::max_reply_bytes<Actor, Requests>()},
                 true)
              : false) ||
         ...);
  return found;
}
struct FindReplyRoom {
  uint32_t message_type;
  ReplyRoom found;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>) {
    found = reply_room_of<Actor>(gyre::HandlesOf<Actor>{}, message_type);
  }
};
// Whether the messages of other actors to one handler of Actor are handled side by side.
template <class Actor, class Request>
GYRE_DEVICE constexpr bool handles_mail_side_by_side() {
  constexpr bool answers = requires { typename ResponseOf<Actor, Request>::Builder; };
  return side_by_side<Actor>() != SideBySide::none && !HasOnStart<Actor> &&
         most_sent_by<Actor, Request>() == 0 && !answers;
}
// Of the handler that `types` names: how its messages are handled side by side.
template <class Actor, class... Requests>
GYRE_DEVICE SideBySide mail_side_by_side_of(Handles<Requests...>, uint32_t message_type) {
  uint32_t n = 0;
  const bool joins = ((message_type == n++ && handles_mail_side_by_side<Actor, Requests>()) || ...);
  return joins ? side_by_side<Actor>() : SideBySide::none;
}
struct MailSideBySide {
  uint32_t message_type;
  SideBySide found = SideBySide::none;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>) {
    found = mail_side_by_side_of<Actor>(gyre::HandlesOf<Actor>{}, message_type);
  }
};
template <class Actor, class Request, class... Arguments>
GYRE_DEVICE void handle_one_of_mail(Actor* actor, Arguments&... arguments) {
  if constexpr (handles_mail_side_by_side<Actor, Request>())
    handle_fast<Actor, Request>(*actor, arguments...);
}
template <class Actor, class... Requests, class... Arguments>
GYRE_DEVICE void dispatch_mail_message(Handles<Requests...>, Actor* actor, uint32_t message_type,
                                       Arguments&... arguments) {
  uint32_t n = 0;
  (void)((message_type == n++ ? (handle_one_of_mail<Actor, Requests>(actor, arguments...), true) : false) ||
         ...);
}
template <class Actor, class... Arguments>
GYRE_DEVICE bool dispatch_mail_to(uint32_t actor_type, uint32_t types, void* state, Arguments&... arguments) {
  if constexpr (side_by_side<Actor>() != SideBySide::none) {
    if ((types & 0xffff) != actor_type) return false;
    if constexpr (state_bytes<Actor>() == 0) {
      Actor actor{};
      dispatch_mail_message(gyre::HandlesOf<Actor>{}, &actor, types >> 16, arguments...);
    } else {
      dispatch_mail_message(gyre::HandlesOf<Actor>{}, static_cast<Actor*>(state), types >> 16, arguments...);
    }
    return true;
  } else {
    return false;
  }
}
// Calls Actor::on_batch() with the gathered messages, then conclude(batch), where the messages still are. By
// the whole handler group.
template <class Actor, class Request, class Conclude>
GYRE_DEVICE void handle_together(Actor& actor, Context& context, WorkerShared& shared,
                                 const Gathered& gathered, uint32_t capacity, Conclude& conclude) {
  using Response = ResponseOf<Actor, Request>;
  constexpr uint32_t envelope_words = sizeof(Envelope) / sizeof(uint32_t);
  alignas(BatchedMessage) uint8_t storage[most_in_batch<Actor>() * sizeof(BatchedMessage)];
  auto* const messages = reinterpret_cast<BatchedMessage*>(storage);
  for (uint32_t n = 0; n < gathered.count; ++n) {
    const uint32_t* const request = gathered.request(n);
    const uint32_t body_bytes = body_bytes_in(request);
    auto* const one = new (messages + n)
        BatchedMessage(request + envelope_words, body_bytes, traversal_words<Actor>(body_bytes),
                       Request::type_id, gathered.reply(n) + envelope_words, capacity);
    if constexpr (requires { typename Response::Builder; }) {
      one->reply_root = one->reply.init_root(Response::data_words, Response::pointers);
    }
  }
  ContextAccess::begin_hook<Actor>(context);
  const Batch batch(messages, gathered.count, context, shared.batch_verdicts, capacity);
  if constexpr (requires { typename Response::Builder; }) {
    actor.on_batch(context, Requests<Request>(batch), Replies<Response>(batch));
  } else {
    actor.on_batch(context, Requests<Request>(batch));
  }
  conclude(batch);
}
template <class Actor, class Request, class... Arguments>
GYRE_DEVICE void handle_together_if_taken(Actor& actor, Arguments&... arguments) {
  if constexpr (takes_batches<Actor, Request>) {
    handle_together<Actor, Request>(actor, arguments...);
  }
}
template <class Actor, class... Requests, class... Arguments>
GYRE_DEVICE void dispatch_together_message(Handles<Requests...>, Actor& actor, uint32_t message_type,
                                           Arguments&... arguments) {
  uint32_t n = 0;
  (void)((message_type == n++ ? (handle_together_if_taken<Actor, Requests>(actor, arguments...), true)
                              : false) ||
         ...);
}
template <class Actor, class... Arguments>
GYRE_DEVICE bool dispatch_together_to(uint32_t actor_type, uint32_t types, void* state,
                                      Arguments&... arguments) {
  if constexpr (most_in_batch<Actor>() != 0) {
    if ((types & 0xffff) != actor_type) return false;
    if constexpr (state_bytes<Actor>() == 0) {
      Actor actor{};
      dispatch_together_message(gyre::HandlesOf<Actor>{}, actor, types >> 16, arguments...);
    } else {
      dispatch_together_message(gyre::HandlesOf<Actor>{}, *static_cast<Actor*>(state), types >> 16,
                                arguments...);
    }
    return true;
  } else {
    return false;
  }
}
template <class Actor, class... Requests>
GYRE_DEVICE uint32_t most_in_batch_of_message(Handles<Requests...>, uint32_t message_type) {
  uint32_t n = 0;
  const bool taken = ((message_type == n++ && takes_batches<Actor, Requests>) || ...);
  return taken ? most_in_batch<Actor>() : 0;
}
struct MostInBatch {
  uint32_t message_type;
  uint32_t most = 0;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>) {
    most = most_in_batch_of_message<Actor>(gyre::HandlesOf<Actor>{}, message_type);
  }
};

}  // namespace detail

/// Runs the handler that the two numbers select, or on_start or on_stop, of the actor in `verdict.state`. By
/// the whole handler group.
template <class... Actors, class ContextType>
GYRE_DEVICE_INLINE Handled dispatch(ActorList<Actors...> actors, MessageVerdict& verdict,
                                    ContextType& context, uint32_t actor_type, uint32_t message_type,
                                    const void* body, uint32_t body_bytes, void* response,
                                    uint32_t capacity) {
  constexpr bool with_replies = rights_of_any<Actors...>().sends_large;
  detail::Dispatch<ContextType, with_replies> visit{verdict,    context,  message_type, body,
                                                    body_bytes, response, capacity};
  visit_actor(actors, actor_type, visit);
  return visit.handled;
}

/// Whether dispatch_fast() may be called for a request.
/// @returns a mask of the 64-bit words of its body that must be equal in later requests of its size, handler
/// and actor for
///          them to be fast too; 0: it may not
template <class... Actors>
GYRE_DEVICE uint64_t fast_path_mask(ActorList<Actors...> actors, const RequestHead& head, const void* body,
                                    uint32_t response_capacity) {
  detail::FastPathMask visit{head, body, response_capacity};
  visit_actor(actors, head.types() & 0xffff, visit);
  return visit.words;
}

/// Handles a request of which fast_path_mask() is not 0. By the whole handler group.
/// @param types      RequestHead::types()
/// @param state      the actor's, which exists; null where its type has none
/// @param arguments  detail::handle_fast's
template <class... Actors, class... Arguments>
GYRE_DEVICE_INLINE Handling dispatch_fast(ActorList<Actors...>, uint32_t types, void* state,
                                          Arguments&&... arguments) {
  Handling handling = Handling::none;
  uint32_t n = 0;
  if constexpr (rights_of_any<Actors...>().asks) {
    if (types >> 16 == call_message::reply) {
      (void)(detail::dispatch_fast_reply<Actors>(handling, n++, types, state, arguments...) || ...);
      return handling;
    }
  }
  (void)(detail::dispatch_fast_to<Actors>(handling, n++, types, state, arguments...) || ...);
  return handling;
}

/// dispatch_fast() for an actor whose messages are handled side by side, by part of the handler group.
template <class... Actors, class... Arguments>
GYRE_DEVICE void dispatch_in_batch(ActorList<Actors...>, uint32_t types, void* state,
                                   Arguments&&... arguments) {
  uint32_t n = 0;
  (void)(detail::dispatch_in_batch_to<Actors>(n++, types, state, arguments...) || ...);
}

/// Returns how many messages the handler with these numbers may send.
/// @param types  RequestHead::types()
template <class... Actors>
GYRE_DEVICE uint32_t most_sent_by_handler(ActorList<Actors...> actors, uint32_t types) {
  detail::MostSentByHandler visit{types >> 16};
  visit_actor(actors, types & 0xffff, visit);
  return visit.most;
}
/// Says how messages of other actors with these numbers are handled side by side.
/// @param types  RequestHead::types()
template <class... Actors>
GYRE_DEVICE SideBySide mail_side_by_side(ActorList<Actors...> actors, uint32_t types) {
  detail::MailSideBySide visit{types >> 16};
  visit_actor(actors, types & 0xffff, visit);
  return visit.found;
}
/// dispatch_fast() for a message of those that are handled side by side, by its thread.
template <class... Actors, class... Arguments>
GYRE_DEVICE void dispatch_mail(ActorList<Actors...>, uint32_t types, void* state, Arguments&&... arguments) {
  uint32_t n = 0;
  (void)(detail::dispatch_mail_to<Actors>(n++, types, state, arguments...) || ...);
}

/// Handles gathered messages by an on_batch(), for which most_in_batch() is not 0. By the whole handler
/// group.
/// @param arguments  detail::handle_together's
template <class... Actors, class... Arguments>
GYRE_DEVICE void dispatch_together(ActorList<Actors...>, uint32_t types, void* state,
                                   Arguments&&... arguments) {
  uint32_t n = 0;
  (void)(detail::dispatch_together_to<Actors>(n++, types, state, arguments...) || ...);
}
/// Returns how many messages with these numbers one call takes; 0: it takes them one by one.
/// @param types  RequestHead::types()
template <class... Actors>
GYRE_DEVICE uint32_t most_in_batch(ActorList<Actors...> actors, uint32_t types) {
  detail::MostInBatch visit{types >> 16};
  visit_actor(actors, types & 0xffff, visit);
  return visit.most;
}

/// What the handler with these numbers says of its responses.
/// @param types  RequestHead::types()
template <class... Actors>
GYRE_DEVICE ReplyRoom reply_room(ActorList<Actors...> actors, uint32_t types) {
  detail::FindReplyRoom visit{types >> 16, {}};
  visit_actor(actors, types & 0xffff, visit);
  return visit.found;
}

/// Bytes of an actor's state that are copied before each message: detail::rollback_bytes() of its type.
template <class... Actors>
GYRE_DEVICE uint32_t rollback_bytes(ActorList<Actors...> actors, uint32_t actor_type) {
  detail::Traits traits;
  visit_actor(actors, actor_type, traits);
  return traits.rollback_bytes;
}

/// Whether messages to actors of the type may be handled side by side.
template <class... Actors>
GYRE_DEVICE bool handles_side_by_side(ActorList<Actors...> actors, uint32_t actor_type) {
  detail::Traits traits;
  visit_actor(actors, actor_type, traits);
  return traits.handles_side_by_side;
}

}  // namespace gyre
