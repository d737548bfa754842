// The client: sends typed requests to actors.
#pragma once

#include <gyre/messages/official.hpp>
#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/encoded.hpp>
#include <gyre/runtime/future.hpp>
#include <gyre/runtime/memory/scratch.hpp>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace gyre {

/// An actor: its type, and its key among the actors of that type. A key always goes to the same worker.
template <class ActorType>
struct Address {
  using Actor = ActorType;
  uint64_t key = 0;
};

/// An actor type by its qualified name, "my::Counter": of actors given as source text, whose C++ types the
/// program does not have, and of any others.
class ActorName {
 public:
  /// Of a name with its namespaces; not checked: messages to a name that is none are `unknown_actor`.
  constexpr ActorName(std::string_view name) : id_(fnv1a(name)) {}
  /// The same.
  constexpr ActorName(const char* name) : ActorName(std::string_view(name)) {}
  /// The same.
  ActorName(const std::string& name) : ActorName(std::string_view(name)) {}
  constexpr uint64_t id() const { return id_; }

 private:
  uint64_t id_;
};

/// As Address, of an actor type known by name.
struct NamedAddress {
  ActorName actor;
  uint64_t key = 0;
};

/// What envelopes say instead of types.
struct MessageNumbers {
  uint16_t actor_type;
  uint16_t message_type;
  uint32_t max_reply_bytes = 0;  ///< Handler::max_reply_bytes
};

/// What an ask may take, where it differs from the runtime's Options.
struct AskOptions {
  std::optional<std::chrono::nanoseconds> timeout;
  /// Room for a reply larger than a slot, in bytes; 0: what the actor says (max_reply_bytes of its handler),
  /// or else Options::max_reply_bytes.
  uint32_t max_reply_bytes = 0;
};

/// What a tell may take, where it differs from the runtime's Options.
struct TellOptions {
  std::optional<std::chrono::nanoseconds> timeout;  ///< to wait for room
  /// A worker that comes to the message later than this does not handle it: a dead letter. 0: however late.
  std::chrono::nanoseconds expires_after{0};
};

/// Says how many messages tell_many sent, and why it sent no more.
struct TellManyResult {
  size_t sent = 0;  ///< the first so many were accepted, the others not
  Failure refused;  ///< why the others were not; Status::ok where all were sent
  explicit operator bool() const { return refused.status == Status::ok; }
};

/// Sends messages. A value: copies are cheap, and any thread may use any copy. Outlives its Runtime safely:
/// every message is then refused with Status::terminated; in a child of fork(), with Status::forked. Messages
/// throw std::bad_alloc where there is no memory to build them in; nothing was accepted then.
///
/// `Request` is the official Cap'n Proto class; include <…/schema.official.hpp>. What a message holds is said
/// by `content`:
///   fill(Request::Builder)   a function that builds it, once, on the calling thread, before anything is
///   claimed; it
///                            must not send messages. What it throws passes through.
///   Encoded{bytes, …}        a message from outside, as bytes (encoded.hpp)
/// A message that does not fit a slot goes through the arena; so does a reply, if its ask made room for it.
class Client {
 public:
  /// The official class of what `Actor` answers to `Request`.
  template <class Request, class Actor>
  using ResponseTo = typename OfficialOf<ResponseOf<Actor, typename ViewOf<Request>::type>>::type;
  /// The actor type that a function from an index to an Address addresses.
  template <class To>
  using ActorOf = typename std::invoke_result_t<To&, size_t>::Actor;

  /// See Runtime::client.
  explicit Client(std::shared_ptr<detail::Core> core) : core_(std::move(core)) {}
  /// Copied where it is moved, too: none is ever empty.
  Client(const Client&) = default;
  /// The same.
  Client& operator=(const Client&) = default;

  /// Sends a request; its outcome comes by the future within the timeout. Blocks, as long at the longest,
  /// only while there is no room, and reads replies for all meanwhile. A refused ask is a future that is
  /// ready with the reason: ring_full, arena_full, call_table_full, too_large, unknown_actor, nested_fill,
  /// malformed (bytes that are no message), draining, terminated, engine_failed.
  template <class Request, class Actor, class Content>
  Future<Reply<ResponseTo<Request, Actor>>> ask(Address<Actor> to, Content&& content,
                                                const AskOptions& options = {}) {
    using Outcome = Future<Reply<ResponseTo<Request, Actor>>>;
    auto sent = send_ask(resolve<Request>(to), content_of<Request>(content), options, detail::WhenFull::wait);
    if (!sent) return Outcome(core_, sent.error());
    return Outcome(detail::CallHandle(*core_, sent.value()));
  }
  /// The same with a timeout of its own.
  template <class Request, class Actor, class Content>
  auto ask(Address<Actor> to, Content&& content, std::chrono::nanoseconds timeout) {
    return ask<Request>(to, std::forward<Content>(content), AskOptions{timeout, 0});
  }

  /// As ask, but never blocks: no room is a failure at once (ring_full, arena_full, call_table_full).
  template <class Request, class Actor, class Content>
  Result<Future<Reply<ResponseTo<Request, Actor>>>> try_ask(Address<Actor> to, Content&& content,
                                                            const AskOptions& options = {}) {
    auto sent =
        send_ask(resolve<Request>(to), content_of<Request>(content), options, detail::WhenFull::refuse);
    if (!sent) return sent.error();
    return Future<Reply<ResponseTo<Request, Actor>>>(detail::CallHandle(*core_, sent.value()));
  }
  /// The same with a timeout of its own.
  template <class Request, class Actor, class Content>
  auto try_ask(Address<Actor> to, Content&& content, std::chrono::nanoseconds timeout) {
    return try_ask<Request>(to, std::forward<Content>(content), AskOptions{timeout, 0});
  }

  /// Sends a message that wants no reply. Success means accepted: it will be processed or become a dead
  /// letter. Blocks, `timeout` at the longest, only while there is no room.
  template <class Request, class Actor, class Content>
  Result<void> tell(Address<Actor> to, Content&& content, const TellOptions& options = {}) {
    return send_tell(resolve<Request>(to), content_of<Request>(content), options, detail::WhenFull::wait);
  }
  /// The same with a time to wait for room.
  template <class Request, class Actor, class Content>
  Result<void> tell(Address<Actor> to, Content&& content, std::chrono::nanoseconds timeout) {
    return tell<Request>(to, std::forward<Content>(content), TellOptions{timeout, {}});
  }
  /// As tell, but never blocks: no room is a failure at once.
  template <class Request, class Actor, class Content>
  Result<void> try_tell(Address<Actor> to, Content&& content, const TellOptions& options = {}) {
    return send_tell(resolve<Request>(to), content_of<Request>(content), options, detail::WhenFull::refuse);
  }

  /// Sends a request for each of `futures`, in their order, for less than so many asks: they are built up to
  /// 16 at a time, and share what need not be done for each. `fill(size_t i, Request::Builder)` builds
  /// request i; `to` is an Address<Actor>, or a function of i that gives one. Returns how many were sent, the
  /// first so many; the other futures hold the reason, as an ask's. Blocks as ask does, for each 16.
  /// Allocates nothing. What fill throws passes through: the futures of what was not sent are as they were
  /// then.
  template <class Request, class Actor, class Fill>
  size_t ask_many(Address<Actor> to, std::span<Future<Reply<ResponseTo<Request, Actor>>>> futures,
                  Fill&& fill, const AskOptions& options = {}) {
    return send_asks<Request>(resolve<Request>(to), SameKey{to.key}, futures, fill, options);
  }
  /// The same, to an address for each request.
  template <class Request, class To, class Fill, class Actor = ActorOf<To>>
  size_t ask_many(To&& to, std::span<Future<Reply<ResponseTo<Request, Actor>>>> futures, Fill&& fill,
                  const AskOptions& options = {}) {
    const auto key = [&to](size_t i) { return to(i).key; };
    return send_asks<Request>(resolve<Request>(Address<Actor>{}), key, futures, fill, options);
  }
  /// The same, to an actor known by name.
  template <class Request, class Response, class Fill>
  size_t ask_many(const NamedAddress& to, std::span<Future<Reply<Response>>> futures, Fill&& fill,
                  const AskOptions& options = {}) {
    return send_asks<Request>(resolve<Request, Response>(to), SameKey{to.key}, futures, fill, options);
  }
  /// The same for `count` messages that want no reply.
  template <class Request, class Actor, class Fill>
  TellManyResult tell_many(Address<Actor> to, size_t count, Fill&& fill, const TellOptions& options = {}) {
    return send_tells<Request>(resolve<Request>(to), SameKey{to.key}, count, fill, options);
  }
  /// The same, to an address for each.
  template <class Request, class To, class Fill, class Actor = ActorOf<To>>
  TellManyResult tell_many(To&& to, size_t count, Fill&& fill, const TellOptions& options = {}) {
    const auto key = [&to](size_t i) { return to(i).key; };
    return send_tells<Request>(resolve<Request>(Address<Actor>{}), key, count, fill, options);
  }
  /// The same, to an actor known by name.
  template <class Request, class Fill>
  TellManyResult tell_many(const NamedAddress& to, size_t count, Fill&& fill,
                           const TellOptions& options = {}) {
    return send_tells<Request>(resolve<Request>(to), SameKey{to.key}, count, fill, options);
  }

  /// Makes sure that the actor is there: a new one has had its on_start. A message does the same, unless the
  /// type says `static constexpr bool created_by_message = false`. Blocks until the worker has answered.
  /// Failures: those of an ask, actor_table_full, and what on_start failed with.
  template <class Actor>
  Result<void> start(Address<Actor> to, std::optional<std::chrono::nanoseconds> timeout = {}) {
    return start(NamedAddress{type_name<Actor>(), to.key}, timeout);
  }
  /// Ends the actor, after its on_stop: its state is gone. Blocks until the worker has answered. Failures:
  /// those of an ask, no_such_actor, and what on_stop failed with (the actor is gone all the same).
  template <class Actor>
  Result<void> stop(Address<Actor> to, std::optional<std::chrono::nanoseconds> timeout = {}) {
    return stop(NamedAddress{type_name<Actor>(), to.key}, timeout);
  }

  /// The same for actors known by name. `Request` and `Response` are official classes. Refused besides:
  /// unknown_message, where the actor has no handler for `Request`, or one that does not answer `Response`.
  template <class Request, class Response, class Content>
  Future<Reply<Response>> ask(const NamedAddress& to, Content&& content, const AskOptions& options = {}) {
    using Outcome = Future<Reply<Response>>;
    auto sent = send_ask(resolve<Request, Response>(to), content_of<Request>(content), options,
                         detail::WhenFull::wait);
    if (!sent) return Outcome(core_, sent.error());
    return Outcome(detail::CallHandle(*core_, sent.value()));
  }
  /// As try_ask, by name.
  template <class Request, class Response, class Content>
  Result<Future<Reply<Response>>> try_ask(const NamedAddress& to, Content&& content,
                                          const AskOptions& options = {}) {
    auto sent = send_ask(resolve<Request, Response>(to), content_of<Request>(content), options,
                         detail::WhenFull::refuse);
    if (!sent) return sent.error();
    return Future<Reply<Response>>(detail::CallHandle(*core_, sent.value()));
  }
  /// As tell, by name.
  template <class Request, class Content>
  Result<void> tell(const NamedAddress& to, Content&& content, const TellOptions& options = {}) {
    return send_tell(resolve<Request>(to), content_of<Request>(content), options, detail::WhenFull::wait);
  }
  /// As try_tell, by name.
  template <class Request, class Content>
  Result<void> try_tell(const NamedAddress& to, Content&& content, const TellOptions& options = {}) {
    return send_tell(resolve<Request>(to), content_of<Request>(content), options, detail::WhenFull::refuse);
  }
  /// As start, by name.
  Result<void> start(const NamedAddress& to, std::optional<std::chrono::nanoseconds> timeout = {}) {
    return send_lifecycle(to, lifecycle_message::start, timeout);
  }
  /// As stop, by name.
  Result<void> stop(const NamedAddress& to, std::optional<std::chrono::nanoseconds> timeout = {}) {
    return send_lifecycle(to, lifecycle_message::stop, timeout);
  }

  /// The numbers of the handler for `request`, a Cap'n Proto type id, for ask_by_number. Failures:
  /// unknown_actor, unknown_message.
  Result<MessageNumbers> numbers_of(ActorName actor, uint64_t request) const {
    const auto handler = find(actor, request);
    if (!handler) return handler.error();
    return MessageNumbers{handler.value()->actor_type, handler.value()->message_type,
                          handler.value()->max_reply_bytes};
  }

  /// An ask by numbers, of whatever they mean to the worker: for clients that do not know the types, and for
  /// tests of what becomes of bytes that nobody should send. numbers_of finds the numbers in use, and
  /// ActorSet::handlers() lists them.
  Future<Reply<capnp::AnyPointer>> ask_by_number(uint16_t actor_type, uint16_t message_type, uint64_t key,
                                                 const Encoded& content, const AskOptions& options = {}) {
    using Outcome = Future<Reply<capnp::AnyPointer>>;
    auto sent = send_ask(detail::Destination{core_->worker_of(key), actor_type, message_type, key,
                                             core_->actors().max_reply_bytes(actor_type, message_type)},
                         content, options, detail::WhenFull::wait);
    if (!sent) return Outcome(core_, sent.error());
    return Outcome(detail::CallHandle(*core_, sent.value()));
  }

  /// As ask_by_number, with a refusal apart from the outcome; without waiting for room if `when_full` says
  /// so.
  Result<Future<Reply<capnp::AnyPointer>>> send_ask_by_number(MessageNumbers numbers, uint64_t key,
                                                              const Encoded& content,
                                                              const AskOptions& options,
                                                              detail::WhenFull when_full) {
    auto sent = send_ask(detail::Destination{core_->worker_of(key), numbers.actor_type, numbers.message_type,
                                             key, numbers.max_reply_bytes},
                         content, options, when_full);
    if (!sent) return sent.error();
    return Future<Reply<capnp::AnyPointer>>(detail::CallHandle(*core_, sent.value()));
  }
  /// A tell by numbers.
  Result<void> send_tell_by_number(MessageNumbers numbers, uint64_t key, const Encoded& content,
                                   const TellOptions& options, detail::WhenFull when_full) {
    return send_tell(
        detail::Destination{core_->worker_of(key), numbers.actor_type, numbers.message_type, key}, content,
        options, when_full);
  }

  /// Largest request or response body that fits a slot, in bytes.
  uint32_t body_capacity() const { return core_->shape().body_capacity(); }
  /// Largest body that can be sent at all, in bytes: the arena's size. An ask needs room for its reply
  /// besides.
  uint64_t max_body_bytes() const { return core_->max_body_bytes(); }

 private:
  struct SameKey {
    uint64_t key;
    uint64_t operator()(size_t) const { return key; }
  };

  template <class Request, class Actor>
  Result<detail::Destination> resolve(Address<Actor> to) const {
    const Handler* const handler = core_->actors().find(actor_id<Actor>, ViewOf<Request>::type::type_id);
    if (handler == nullptr) return Failure{Status::unknown_actor};
    return detail::Destination{core_->worker_of(to.key), handler->actor_type, handler->message_type, to.key,
                               handler->max_reply_bytes};
  }

  Result<const Handler*> find(ActorName actor, uint64_t request) const {
    if (const Handler* const handler = core_->actors().find(actor.id(), request)) return handler;
    return Failure{core_->actors().has(actor.id()) ? Status::unknown_message : Status::unknown_actor};
  }
  template <class Request, class... Response>
  Result<detail::Destination> resolve(const NamedAddress& to) const {
    const auto handler = find(to.actor, capnp::typeId<Request>());
    if (!handler) return handler.error();
    if (((handler.value()->response != capnp::typeId<Response>()) || ...)) {
      return Failure{Status::unknown_message};
    }
    return detail::Destination{core_->worker_of(to.key), handler.value()->actor_type,
                               handler.value()->message_type, to.key, handler.value()->max_reply_bytes};
  }

  // What Scratch::build_and_send takes.
  template <class Request, class Content>
  static auto content_of(Content& content) {
    if constexpr (std::is_same_v<std::remove_const_t<Content>, Encoded>) {
      return content;
    } else {
      return [&content](capnp::AnyPointer::Builder root) { content(root.initAs<Request>()); };
    }
  }

  template <class Content, class Send>
  auto build_and_send(const Content& content, Send&& send) -> decltype(send(detail::Outgoing{})) {
    if constexpr (std::is_same_v<std::remove_const_t<Content>, Encoded>) {
      return detail::send_encoded(content, core_->max_body_bytes(), std::forward<Send>(send));
    } else {
      return detail::Scratch::of_this_thread().build_and_send(core_->max_body_bytes(), content,
                                                              std::forward<Send>(send));
    }
  }

  template <class Content>
  Result<CallId> send_ask(const Result<detail::Destination>& to, const Content& content,
                          const AskOptions& options, detail::WhenFull when_full) {
    if (!to) return to.error();
    const detail::AskLimits limits{options.timeout.value_or(core_->options().timeout),
                                   options.max_reply_bytes};
    return build_and_send(content, [&](detail::Outgoing message) {
      return core_->ask(to.value(), message, limits, when_full);
    });
  }

  template <class Content>
  Result<void> send_tell(const Result<detail::Destination>& to, const Content& content,
                         const TellOptions& options, detail::WhenFull when_full) {
    if (!to) return to.error();
    const detail::TellLimits limits{options.timeout.value_or(core_->options().timeout),
                                    options.expires_after};
    return build_and_send(content, [&](detail::Outgoing message) {
      return core_->tell(to.value(), message, limits, when_full);
    });
  }

  // Builds messages for `to` with the keys `key(i)`, and sends them by `send(first, span<const Addressed>)`,
  // which returns how many of them it sent. Returns how many were sent, and why not all.
  template <class Request, class Key, class Fill, class Send>
  TellManyResult send_many(const Result<detail::Destination>& to, Key&& key, size_t count, Fill& fill,
                           Send&& send) {
    if (!to) return {0, to.error()};
    TellManyResult told;
    const Failure failure = detail::Scratch::of_this_thread().build_and_send_many(
        count, core_->max_body_bytes(), core_->shape().body_capacity(),
        [&](size_t i, capnp::AnyPointer::Builder root) { fill(i, root.initAs<Request>()); },
        [&](size_t first, std::span<const detail::Outgoing> built) {
          std::array<detail::Addressed, detail::Scratch::run> messages;
          for (size_t i = 0; i < built.size(); ++i) {
            messages[i] = {to.value(), built[i]};
            messages[i].to.key = key(first + i);
            messages[i].to.worker = core_->worker_of(messages[i].to.key);
          }
          const size_t sent =
              send(first, std::span<const detail::Addressed>(messages.data(), built.size()), told.refused);
          told.sent += sent;
          return sent == built.size();
        });
    if (told.refused.status == Status::ok) told.refused = failure;
    return told;
  }

  template <class Request, class Response, class Key, class Fill>
  size_t send_asks(const Result<detail::Destination>& to, Key&& key,
                   std::span<Future<Reply<Response>>> futures, Fill& fill, const AskOptions& options) {
    const detail::AskLimits limits{options.timeout.value_or(core_->options().timeout),
                                   options.max_reply_bytes};
    const auto send = [&](size_t first, std::span<const detail::Addressed> messages, Failure& refused) {
      std::array<CallId, detail::Scratch::run> calls;
      const size_t sent = core_->ask_many(messages, limits, calls.data(), refused);
      for (size_t i = 0; i < sent; ++i) {
        futures[first + i] = Future<Reply<Response>>(detail::CallHandle(*core_, calls[i]));
      }
      return sent;
    };
    const TellManyResult told = send_many<Request>(to, key, futures.size(), fill, send);
    for (auto& future : futures.subspan(told.sent)) future = Future<Reply<Response>>(core_, told.refused);
    return told.sent;
  }

  template <class Request, class Key, class Fill>
  TellManyResult send_tells(const Result<detail::Destination>& to, Key&& key, size_t count, Fill& fill,
                            const TellOptions& options) {
    const detail::TellLimits limits{options.timeout.value_or(core_->options().timeout),
                                    options.expires_after};
    const auto send = [&](size_t, std::span<const detail::Addressed> messages, Failure& refused) {
      return core_->tell_many(messages, limits, refused);
    };
    return send_many<Request>(to, key, count, fill, send);
  }

  Result<void> send_lifecycle(const NamedAddress& to, uint16_t message_type,
                              std::optional<std::chrono::nanoseconds> timeout) {
    for (const Handler& handler : core_->actors().handlers()) {
      if (handler.actor != to.actor.id()) continue;
      return core_->ask_lifecycle(
          detail::Destination{core_->worker_of(to.key), handler.actor_type, message_type, to.key},
          timeout.value_or(core_->options().timeout));
    }
    return Failure{Status::unknown_actor};
  }

  std::shared_ptr<detail::Core> core_;
};

}  // namespace gyre
