// The client: sends typed requests to actors.
#pragma once

#include <gyre/device/actor/receiver.hpp>
#include <gyre/messages/official.hpp>
#include <gyre/runtime/actor_page.hpp>
#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/address.hpp>
#include <gyre/runtime/core/incarnations.hpp>
#include <gyre/runtime/encoded.hpp>
#include <gyre/runtime/future.hpp>
#include <gyre/runtime/memory/scratch.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gyre {

/// Holds the numbers that stand for types in envelopes. Client::numbers_of() returns them.
struct MessageNumbers {
  uint16_t actor_type;
  uint16_t message_type;
  uint32_t max_reply_bytes = 0;  ///< see Handler::max_reply_bytes
};

/// Overrides the runtime's Options for one ask.
struct AskOptions {
  std::optional<std::chrono::nanoseconds> timeout;  ///< from the call to the outcome; empty: Options::timeout
  /// Bytes to reserve for the reply; only replies larger than a slot need any. 0: Handler::max_reply_bytes,
  /// or Options::max_reply_bytes if the handler has none.
  uint32_t max_reply_bytes = 0;
};

/// Overrides the runtime's Options for one tell.
struct TellOptions {
  std::optional<std::chrono::nanoseconds> timeout;  ///< limits the wait for room; empty: Options::timeout
  /// Lifetime of the message from the call on. A worker makes a dead letter of an older message instead of
  /// handling it. 0: no limit. More than 30 minutes count as no limit.
  std::chrono::nanoseconds expires_after{0};
};

/// Limits one tell with a receipt.
struct ReceiptOptions {
  /// From the call to the receipt, in which the wait for room counts; may be days. Empty: Options::timeout.
  std::optional<std::chrono::nanoseconds> timeout;
  /// Lifetime of the message from the call on. The outcome of a message that a worker takes later is
  /// Status::expired: it is not handled. The receipt of a handler that has begun in time arrives later, too.
  /// 0: no limit. More than 30 minutes count as no limit.
  std::chrono::nanoseconds expires_after{0};
};

/// Says how many messages tell_many() sent, and why it sent no more. True if it sent all.
struct TellManyResult {
  size_t sent = 0;  ///< number of messages accepted, counted from the first
  Failure failure;  ///< why the remaining messages were refused; Status::ok if all were sent
  explicit operator bool() const { return failure.status == Status::ok; }
};

namespace detail {
template <class Type>
concept IsMessageClass = requires {
  typename Type::Reader;
  typename Type::Builder;
};
// The official class of the response of an actor.
template <class Request, class Actor>
struct ResponseTo {
  using View = typename ViewOf<Request>::type;
  static_assert(check_can_be_sent<Actor, View>());
  static_assert(check_can_be_asked<Actor, View>());
  using type = capnp::AnyPointer;  // so that the check's error is the only one
};
template <class Request, class Actor>
requires(!IsMessageClass<Actor> &&
         is_answered<Actor, typename ViewOf<Request>::type>()) struct ResponseTo<Request, Actor> {
  using type = typename OfficialOf<ResponseFrom<Actor, typename ViewOf<Request>::type>>::type;
};
// In place of an actor's type, the response of a function for a NamedAddress: this function is not for it.
template <class Request, IsMessageClass Response>
struct ResponseTo<Request, Response> {};
}  // namespace detail

/// Sends messages to actors. Copies are cheap. Thread-safe: any thread may use any copy. A Client may outlive
/// its Runtime: every message is then refused with Status::terminated. In a child of fork() every message is
/// refused with Status::forked. Every sending function throws std::bad_alloc if there is no memory to build
/// the message in; the message is not accepted then.
///
/// `Request` is the official Cap'n Proto class; include <…/schema.official.hpp>. The argument `content` gives
/// the message, in one of two forms:
/// - a function called as fill(Request::Builder), which builds the message. It is called once, on the calling
///   thread, before any ring slot is claimed. It must not send messages. What it throws passes through.
/// - Encoded{bytes, encoding}, a message that exists as bytes (encoded.hpp).
///
/// A request larger than a slot travels through the arena. So does a larger reply, if its ask reserved room.
class Client {
 public:
  /// Names the official class of the response of `Actor` to `Request`.
  template <class Request, class Actor>
  using ResponseTo = typename detail::ResponseTo<Request, Actor>::type;
  /// Names the actor type of the addresses that the function `To` returns.
  template <class To>
  using ActorOf = typename std::invoke_result_t<To&, size_t>::Actor;

  /// Makes a client of a runtime; programs call Runtime::client().
  explicit Client(std::shared_ptr<detail::Incarnations> incarnations)
      : incarnations_(std::move(incarnations)) {}
  /// Copies the client. Moving copies too: a Client is never empty.
  Client(const Client&) = default;
  /// Copies the client. Moving copies too: a Client is never empty.
  Client& operator=(const Client&) = default;

  /// Sends a request and returns the future of its reply.
  /// @param content  a fill function, or Encoded bytes: see the class
  /// @returns        a future whose outcome is there within the timeout. If the request was refused, the
  ///                 future is ready and holds the reason: ring_full, arena_full, call_table_full, too_large,
  ///                 unknown_actor, nested_fill, malformed (the bytes are no message), draining, terminated,
  ///                 engine_failed, forked.
  /// Blocks only while there is no room, at most for the timeout; completes other threads' replies meanwhile.
  template <class Request, class Actor, class Content>
  Future<Reply<ResponseTo<Request, Actor>>> ask(Address<Actor> to, Content&& content,
                                                const AskOptions& options = {}) {
    using Outcome = Future<Reply<ResponseTo<Request, Actor>>>;
    const detail::Entered core(*incarnations_);
    auto sent = send_ask(*core, resolve<Request>(*core, to), content_of<Request>(content), options,
                         detail::WhenFull::wait);
    if (!sent) return Outcome(core.share(), sent.error());
    return Outcome(detail::CallHandle(*core, sent.value()));
  }
  /// Sends a request with a timeout that replaces Options::timeout; see ask().
  template <class Request, class Actor, class Content>
  auto ask(Address<Actor> to, Content&& content, std::chrono::nanoseconds timeout) {
    return ask<Request>(to, std::forward<Content>(content), AskOptions{timeout, 0});
  }

  /// Sends a request like ask(), but never blocks.
  /// @returns the future, or why the request was refused. Without room the status is ring_full, arena_full or
  ///          call_table_full.
  template <class Request, class Actor, class Content>
  Result<Future<Reply<ResponseTo<Request, Actor>>>> try_ask(Address<Actor> to, Content&& content,
                                                            const AskOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    auto sent = send_ask(*core, resolve<Request>(*core, to), content_of<Request>(content), options,
                         detail::WhenFull::refuse);
    if (!sent) return sent.error();
    return Future<Reply<ResponseTo<Request, Actor>>>(detail::CallHandle(*core, sent.value()));
  }
  /// Sends a request with a timeout that replaces Options::timeout, and never blocks; see try_ask().
  template <class Request, class Actor, class Content>
  auto try_ask(Address<Actor> to, Content&& content, std::chrono::nanoseconds timeout) {
    return try_ask<Request>(to, std::forward<Content>(content), AskOptions{timeout, 0});
  }

  /// Sends a message without a reply.
  /// @param content  a fill function, or Encoded bytes: see the class
  /// @returns        success if the message was accepted: a worker handles it, or it becomes a dead letter.
  ///                 Otherwise the reason, one of those listed at ask().
  /// Blocks only while there is no room, at most for `options.timeout`.
  template <class Request, class Actor, class Content>
  Result<void> tell(Address<Actor> to, Content&& content, const TellOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    return send_tell(*core, resolve<Request>(*core, to), content_of<Request>(content), options,
                     detail::WhenFull::wait);
  }
  /// Sends a message without a reply and waits for room at most for `timeout`; see tell().
  template <class Request, class Actor, class Content>
  Result<void> tell(Address<Actor> to, Content&& content, std::chrono::nanoseconds timeout) {
    return tell<Request>(to, std::forward<Content>(content), TellOptions{timeout, {}});
  }
  /// Sends a message like tell(), but never blocks: without room the status is ring_full or arena_full.
  template <class Request, class Actor, class Content>
  Result<void> try_tell(Address<Actor> to, Content&& content, const TellOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    return send_tell(*core, resolve<Request>(*core, to), content_of<Request>(content), options,
                     detail::WhenFull::refuse);
  }

  /// Sends a message like a tell, and returns the future of its receipt. The handler may be one with a
  /// response, which is dropped, or one without. The books count an ask, and count it as timed out if the
  /// message expired.
  /// @param content  a fill function, or Encoded bytes: see the class
  /// @returns        a future whose outcome is there within the timeout: a Receipt if the handler has ended
  ///                 well; the handler's failure; `expired` if a worker took the message after
  ///                 `options.expires_after` and did not handle it; `timed_out` if nothing is known at the
  ///                 timeout: the message may be handled later. Other outcomes are those of ask().
  /// Blocks only while there is no room, at most for the timeout; completes other threads' replies meanwhile.
  template <class Request, class Actor, class Content>
  Future<Receipt> tell_with_receipt(Address<Actor> to, Content&& content,
                                    const ReceiptOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    auto sent = send_tell_with_receipt(*core, resolve<Request>(*core, to), content_of<Request>(content),
                                       options, detail::WhenFull::wait);
    if (!sent) return Future<Receipt>(core.share(), sent.error());
    return std::move(sent).value();
  }
  /// Sends a message like tell_with_receipt(), but never blocks.
  /// @returns the future, or why the message was refused. Without room the status is ring_full, arena_full or
  ///          call_table_full.
  template <class Request, class Actor, class Content>
  Result<Future<Receipt>> try_tell_with_receipt(Address<Actor> to, Content&& content,
                                                const ReceiptOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    return send_tell_with_receipt(*core, resolve<Request>(*core, to), content_of<Request>(content), options,
                                  detail::WhenFull::refuse);
  }

  /// Sends one request per future, in order, in batches of up to 16 to one worker. Costs less than as many
  /// calls of ask().
  /// @param futures  receives the outcomes
  /// @param fill     called as fill(size_t i, Request::Builder) to build request i. What it throws passes
  ///                 through; the futures of unsent requests are unchanged then.
  /// @returns        how many requests were sent, counted from the first. The remaining futures hold the
  ///                 reason, one of those listed at ask().
  /// Blocks only while there is no room, at most for the timeout per batch. Does not allocate.
  template <class Request, class Actor, class Fill>
  size_t ask_many(Address<Actor> to, std::span<Future<Reply<ResponseTo<Request, Actor>>>> futures,
                  Fill&& fill, const AskOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    return send_asks<Request>(core, resolve<Request>(*core, to), SameKey{to.key}, futures, fill, options);
  }
  /// Sends one request per future, each to its own address; see ask_many() to one address.
  /// @param to  called as to(size_t i); returns the address of request i
  template <class Request, class To, class Fill, class Actor = ActorOf<To>>
  size_t ask_many(To&& to, std::span<Future<Reply<ResponseTo<Request, Actor>>>> futures, Fill&& fill,
                  const AskOptions& options = {}) {
    const auto key = [&to](size_t i) { return to(i).key; };
    const detail::Entered core(*incarnations_);
    return send_asks<Request>(core, resolve<Request>(*core, Address<Actor>{}), key, futures, fill, options);
  }
  /// Sends one request per future to an actor known by name; see ask_many() to one address.
  template <class Request, class Response, class Fill>
  size_t ask_many(const NamedAddress& to, std::span<Future<Reply<Response>>> futures, Fill&& fill,
                  const AskOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    return send_asks<Request>(core, resolve<Request, Response>(*core, to), SameKey{to.key}, futures, fill,
                              options);
  }
  /// Sends `count` messages without replies, in order, in batches of up to 16 to one worker.
  /// @param fill  called as fill(size_t i, Request::Builder) to build message i. What it throws passes
  ///              through.
  /// Blocks only while there is no room, at most for `options.timeout` per batch. Does not allocate.
  template <class Request, class Actor, class Fill>
  TellManyResult tell_many(Address<Actor> to, size_t count, Fill&& fill, const TellOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    return send_tells<Request>(*core, resolve<Request>(*core, to), SameKey{to.key}, count, fill, options);
  }
  /// Sends `count` messages without replies, each to its own address; see tell_many() to one address.
  /// @param to  called as to(size_t i); returns the address of message i
  template <class Request, class To, class Fill, class Actor = ActorOf<To>>
  TellManyResult tell_many(To&& to, size_t count, Fill&& fill, const TellOptions& options = {}) {
    const auto key = [&to](size_t i) { return to(i).key; };
    const detail::Entered core(*incarnations_);
    return send_tells<Request>(*core, resolve<Request>(*core, Address<Actor>{}), key, count, fill, options);
  }
  /// Sends `count` messages without replies to an actor known by name; see tell_many() to one address.
  template <class Request, class Fill>
  TellManyResult tell_many(const NamedAddress& to, size_t count, Fill&& fill,
                           const TellOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    return send_tells<Request>(*core, resolve<Request>(*core, to), SameKey{to.key}, count, fill, options);
  }

  /// Creates the actor unless it exists, and runs its on_start. A message creates its actor too, unless the
  /// actor type has `static constexpr bool created_by_message = false`.
  /// @param timeout  empty: Options::timeout
  /// @returns        success, a failure of ask(), actor_table_full, or the failure of on_start
  /// Blocks until the worker has answered, at most for the timeout.
  template <class Actor>
  Result<void> start(Address<Actor> to, std::optional<std::chrono::nanoseconds> timeout = {}) {
    return start(NamedAddress{type_name<Actor>(), to.key}, timeout);
  }
  /// Runs the actor's on_stop and removes the actor with its state.
  /// @param timeout  empty: Options::timeout
  /// @returns        success, a failure of ask(), no_such_actor, or the failure of on_stop, after which the
  ///                 actor is removed as well
  /// Blocks until the worker has answered, at most for the timeout.
  template <class Actor>
  Result<void> stop(Address<Actor> to, std::optional<std::chrono::nanoseconds> timeout = {}) {
    return stop(NamedAddress{type_name<Actor>(), to.key}, timeout);
  }

  /// Sends a request to an actor known by name; see ask(). `Request` and `Response` are official classes.
  /// @returns the future. One more reason to refuse a request is unknown_message: the actor has no handler
  ///          for `Request`, or its handler does not answer with `Response`.
  template <class Request, class Response, class Content>
  Future<Reply<Response>> ask(const NamedAddress& to, Content&& content, const AskOptions& options = {}) {
    using Outcome = Future<Reply<Response>>;
    const detail::Entered core(*incarnations_);
    auto sent = send_ask(*core, resolve<Request, Response>(*core, to), content_of<Request>(content), options,
                         detail::WhenFull::wait);
    if (!sent) return Outcome(core.share(), sent.error());
    return Outcome(detail::CallHandle(*core, sent.value()));
  }
  /// Sends a request to an actor known by name, and never blocks; see try_ask().
  template <class Request, class Response, class Content>
  Result<Future<Reply<Response>>> try_ask(const NamedAddress& to, Content&& content,
                                          const AskOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    auto sent = send_ask(*core, resolve<Request, Response>(*core, to), content_of<Request>(content), options,
                         detail::WhenFull::refuse);
    if (!sent) return sent.error();
    return Future<Reply<Response>>(detail::CallHandle(*core, sent.value()));
  }
  /// Sends a message without a reply to an actor known by name; see tell().
  template <class Request, class Content>
  Result<void> tell(const NamedAddress& to, Content&& content, const TellOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    return send_tell(*core, resolve<Request>(*core, to), content_of<Request>(content), options,
                     detail::WhenFull::wait);
  }
  /// Sends a message without a reply to an actor known by name, and never blocks; see try_tell().
  template <class Request, class Content>
  Result<void> try_tell(const NamedAddress& to, Content&& content, const TellOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    return send_tell(*core, resolve<Request>(*core, to), content_of<Request>(content), options,
                     detail::WhenFull::refuse);
  }
  /// Sends a message to an actor known by name, and returns the future of its receipt; see
  /// tell_with_receipt().
  template <class Request, class Content>
  Future<Receipt> tell_with_receipt(const NamedAddress& to, Content&& content,
                                    const ReceiptOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    auto sent = send_tell_with_receipt(*core, resolve<Request>(*core, to), content_of<Request>(content),
                                       options, detail::WhenFull::wait);
    if (!sent) return Future<Receipt>(core.share(), sent.error());
    return std::move(sent).value();
  }
  /// Sends a message to an actor known by name, never blocks, and returns the future of its receipt; see
  /// try_tell_with_receipt().
  template <class Request, class Content>
  Result<Future<Receipt>> try_tell_with_receipt(const NamedAddress& to, Content&& content,
                                                const ReceiptOptions& options = {}) {
    const detail::Entered core(*incarnations_);
    return send_tell_with_receipt(*core, resolve<Request>(*core, to), content_of<Request>(content), options,
                                  detail::WhenFull::refuse);
  }
  /// Creates an actor known by name unless it exists; see start().
  Result<void> start(const NamedAddress& to, std::optional<std::chrono::nanoseconds> timeout = {}) {
    return send_lifecycle(to, lifecycle_message::start, timeout);
  }
  /// Removes an actor known by name; see stop().
  Result<void> stop(const NamedAddress& to, std::optional<std::chrono::nanoseconds> timeout = {}) {
    return send_lifecycle(to, lifecycle_message::stop, timeout);
  }

  /// Copies the state of one actor as it is between two of its messages: never in the middle of one. All
  /// messages that this thread sent before to the actor are handled by then. Creates no actor and calls no
  /// handler. Works while the runtime is inactive, too. Counts as an ask. Blocks until the worker has
  /// answered, at most for the timeout.
  /// @param timeout  empty: Options::timeout
  /// @returns        the state; no_such_actor, if there is no actor with that key or the type has no state;
  ///                 too_large, if the state fits neither a slot nor the arena; or what ask() fails with
  template <class Actor>
  Result<Actor> read_state(Address<Actor> to, std::optional<std::chrono::nanoseconds> timeout = {}) const {
    const auto state = read_state(NamedAddress{type_name<Actor>(), to.key}, timeout);
    if (!state) return state.error();
    std::array<std::byte, sizeof(Actor)> bytes;
    if (state.value().size() != bytes.size()) return Failure{Status::unknown_actor};  // of another program
    std::copy(state.value().begin(), state.value().end(), bytes.begin());
    return std::bit_cast<Actor>(bytes);
  }
  /// Copies the state of one actor, whose C++ type the program need not have, as bytes.
  Result<std::vector<std::byte>> read_state(const NamedAddress& to,
                                            std::optional<std::chrono::nanoseconds> timeout = {}) const;
  /// Lists keys of the actors of one type, a page a call. An actor that is there from the first call to the
  /// last is listed once; one that is created or stopped meanwhile may be. Blocks until the workers have
  /// answered, at most for the timeout.
  /// @param from     ActorPage::next of the page before; the default is the first page
  /// @param most     keys in the page, at least 1
  /// @param timeout  empty: Options::timeout
  /// @returns        a page; no_such_actor if the type has no state; or what ask() fails with
  Result<ActorPage> list_actors(ActorName type, const ActorCursor& from = {}, size_t most = 1000,
                                std::optional<std::chrono::nanoseconds> timeout = {}) const;
  /// Counts the actors of one type, each worker's after all messages that this thread sent to it before.
  /// WorkerStats::actors says it without an ask, some milliseconds late.
  /// @param timeout  empty: Options::timeout
  /// @returns        the number; no_such_actor if the type has no state; or what ask() fails with
  Result<uint64_t> count_actors(ActorName type, std::optional<std::chrono::nanoseconds> timeout = {}) const;

  /// Blocks until the work that a CUDA stream of the program was given before is done, so that handlers of
  /// messages sent afterwards see its results. Does not wait for work that the stream is given meanwhile.
  /// Makes CUDA calls in this thread: in its current context, or in the primary one that the program has
  /// made. Creates no context.
  /// @param stream   a CUstream or cudaStream_t; null: the default stream
  /// @param timeout  empty: Options::timeout
  /// @throws Error   with CUDA's error if the stream's work failed; with Status::timed_out at the timeout;
  ///                 without a CUDA context; on the CPU engine
  void wait_for_stream(void* stream, std::optional<std::chrono::nanoseconds> timeout = {}) const {
    incarnations_->present()->engine().program_streams().wait_for(
        stream, timeout.value_or(incarnations_->options().timeout));
  }

  /// Finds the numbers of a handler, for ask_by_number().
  /// @param request  the request's Cap'n Proto type id
  /// @returns        the numbers, or unknown_actor or unknown_message. Never blocks.
  Result<MessageNumbers> numbers_of(ActorName actor, uint64_t request) const {
    const auto handler = find(incarnations_->actors(), actor, request);
    if (!handler) return handler.error();
    return MessageNumbers{handler.value()->actor_type, handler.value()->message_type,
                          handler.value()->max_reply_bytes};
  }

  /// Sends a request to the handler with these numbers; see ask(). It serves clients that do not know the
  /// types. The worker checks the numbers. numbers_of() finds the numbers in use, and ActorSet::handlers()
  /// lists them.
  Future<Reply<capnp::AnyPointer>> ask_by_number(uint16_t actor_type, uint16_t message_type, uint64_t key,
                                                 const Encoded& content, const AskOptions& options = {}) {
    using Outcome = Future<Reply<capnp::AnyPointer>>;
    const detail::Entered core(*incarnations_);
    auto sent = send_ask(*core,
                         detail::Destination{core->worker_of(key), actor_type, message_type, key,
                                             core->actors().max_reply_bytes(actor_type, message_type)},
                         content, options, detail::WhenFull::wait);
    if (!sent) return Outcome(core.share(), sent.error());
    return Outcome(detail::CallHandle(*core, sent.value()));
  }

  /// Sends a request to the handler with these numbers, and returns a refusal instead of a future that holds
  /// the refusal; see ask().
  /// @param when_full  says whether to wait for room or to refuse the request
  Result<Future<Reply<capnp::AnyPointer>>> send_ask_by_number(MessageNumbers numbers, uint64_t key,
                                                              const Encoded& content,
                                                              const AskOptions& options,
                                                              detail::WhenFull when_full) {
    const detail::Entered core(*incarnations_);
    auto sent = send_ask(*core,
                         detail::Destination{core->worker_of(key), numbers.actor_type, numbers.message_type,
                                             key, numbers.max_reply_bytes},
                         content, options, when_full);
    if (!sent) return sent.error();
    return Future<Reply<capnp::AnyPointer>>(detail::CallHandle(*core, sent.value()));
  }
  /// Sends a message without a reply to the handler with these numbers; see tell().
  /// @param when_full  says whether to wait for room or to refuse the message
  Result<void> send_tell_by_number(MessageNumbers numbers, uint64_t key, const Encoded& content,
                                   const TellOptions& options, detail::WhenFull when_full) {
    const detail::Entered core(*incarnations_);
    return send_tell(*core,
                     detail::Destination{core->worker_of(key), numbers.actor_type, numbers.message_type, key},
                     content, options, when_full);
  }

  /// Sends a message to the handler with these numbers, and returns the future of its receipt; see
  /// tell_with_receipt().
  /// @param when_full  says whether to wait for room or to refuse the message
  Result<Future<Receipt>> send_tell_with_receipt_by_number(MessageNumbers numbers, uint64_t key,
                                                           const Encoded& content,
                                                           const ReceiptOptions& options,
                                                           detail::WhenFull when_full) {
    const detail::Entered core(*incarnations_);
    return send_tell_with_receipt(*core,
                                  detail::Destination{core->worker_of(key), numbers.actor_type,
                                                      numbers.message_type, key, numbers.max_reply_bytes},
                                  content, options, when_full);
  }

  /// Returns the size of the largest body that fits a slot, in bytes.
  uint32_t body_capacity() const { return incarnations_->options().ring_shape().body_capacity(); }
  /// Returns the size of the largest body that can be sent, in bytes. An ask also needs room for its reply.
  uint64_t max_body_bytes() const { return detail::Entered(*incarnations_)->max_body_bytes(); }

 private:
  struct SameKey {
    uint64_t key;
    uint64_t operator()(size_t) const { return key; }
  };

  template <class Request, class Actor>
  Result<detail::Destination> resolve(const detail::Core& core, Address<Actor> to) const {
    detail::check_can_be_sent<Actor, typename ViewOf<Request>::type>();
    const Handler* const handler = core.actors().find(actor_id<Actor>, ViewOf<Request>::type::type_id);
    if (handler == nullptr) return Failure{Status::unknown_actor};
    return detail::Destination{core.worker_of(to.key), handler->actor_type, handler->message_type, to.key,
                               handler->max_reply_bytes};
  }

  static Result<const Handler*> find(const ActorSet& actors, ActorName actor, uint64_t request) {
    if (const Handler* const handler = actors.find(actor.id(), request)) return handler;
    return Failure{actors.has(actor.id()) ? Status::unknown_message : Status::unknown_actor};
  }
  template <class Request, class... Response>
  Result<detail::Destination> resolve(const detail::Core& core, const NamedAddress& to) const {
    const auto handler = find(core.actors(), to.actor, capnp::typeId<Request>());
    if (!handler) return handler.error();
    if (((handler.value()->response != capnp::typeId<Response>()) || ...)) {
      return Failure{Status::unknown_message};
    }
    return detail::Destination{core.worker_of(to.key), handler.value()->actor_type,
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
  static auto build_and_send(detail::Core& core, const Content& content, Send&& send)
      -> decltype(send(detail::Outgoing{})) {
    if constexpr (std::is_same_v<std::remove_const_t<Content>, Encoded>) {
      return detail::send_encoded(content, core.max_body_bytes(), std::forward<Send>(send));
    } else {
      return detail::Scratch::of_this_thread().build_and_send(core.max_body_bytes(), content,
                                                              std::forward<Send>(send));
    }
  }

  template <class Content>
  Result<CallId> send_ask(detail::Core& core, const Result<detail::Destination>& to, const Content& content,
                          const AskOptions& options, detail::WhenFull when_full) {
    if (!to) return to.error();
    const detail::AskLimits limits{options.timeout.value_or(core.options().timeout), options.max_reply_bytes};
    return build_and_send(core, content, [&](detail::Outgoing message) {
      return core.ask(to.value(), message, limits, when_full);
    });
  }

  template <class Content>
  Result<void> send_tell(detail::Core& core, const Result<detail::Destination>& to, const Content& content,
                         const TellOptions& options, detail::WhenFull when_full) {
    if (!to) return to.error();
    const detail::TellLimits limits{options.timeout.value_or(core.options().timeout), options.expires_after};
    return build_and_send(core, content, [&](detail::Outgoing message) {
      return core.tell(to.value(), message, limits, when_full);
    });
  }

  template <class Content>
  Result<Future<Receipt>> send_tell_with_receipt(detail::Core& core, const Result<detail::Destination>& to,
                                                 const Content& content, const ReceiptOptions& options,
                                                 detail::WhenFull when_full) {
    if (!to) return to.error();
    const detail::ReceiptLimits limits{options.timeout.value_or(core.options().timeout),
                                       options.expires_after};
    auto sent = build_and_send(core, content, [&](detail::Outgoing message) {
      return core.ask(to.value(), message, limits, when_full);
    });
    if (!sent) return sent.error();
    return Future<Receipt>(detail::CallHandle(core, sent.value()));
  }

  // Builds messages for `to` with the keys `key(i)`, and sends them by `send(first, span<const Addressed>)`,
  // which returns how many of them it sent. Returns how many were sent, and why not all.
  template <class Request, class Key, class Fill, class Send>
  TellManyResult send_many(detail::Core& core, const Result<detail::Destination>& to, Key&& key, size_t count,
                           Fill& fill, Send&& send) {
    if (!to) return {0, to.error()};
    TellManyResult told;
    const Failure build_failure = detail::Scratch::of_this_thread().build_and_send_many(
        count, core.max_body_bytes(), core.shape().body_capacity(),
        [&](size_t i, capnp::AnyPointer::Builder root) { fill(i, root.initAs<Request>()); },
        [&](size_t first, std::span<const detail::Outgoing> built) {
          std::array<detail::Addressed, detail::Scratch::run> messages;
          for (size_t i = 0; i < built.size(); ++i) {
            messages[i] = {to.value(), built[i]};
            messages[i].to.key = key(first + i);
            messages[i].to.worker = core.worker_of(messages[i].to.key);
          }
          const size_t sent =
              send(first, std::span<const detail::Addressed>(messages.data(), built.size()), told.failure);
          told.sent += sent;
          return sent == built.size();
        });
    if (told.failure.status == Status::ok) told.failure = build_failure;
    return told;
  }

  template <class Request, class Response, class Key, class Fill>
  size_t send_asks(const detail::Entered& entered, const Result<detail::Destination>& to, Key&& key,
                   std::span<Future<Reply<Response>>> futures, Fill& fill, const AskOptions& options) {
    detail::Core& core = *entered;
    const detail::AskLimits limits{options.timeout.value_or(core.options().timeout), options.max_reply_bytes};
    const auto send = [&](size_t first, std::span<const detail::Addressed> messages, Failure& failure) {
      std::array<CallId, detail::Scratch::run> calls;
      const size_t sent = core.ask_many(messages, limits, calls.data(), failure);
      for (size_t i = 0; i < sent; ++i) {
        futures[first + i] = Future<Reply<Response>>(detail::CallHandle(core, calls[i]));
      }
      return sent;
    };
    const TellManyResult told = send_many<Request>(core, to, key, futures.size(), fill, send);
    for (auto& future : futures.subspan(told.sent))
      future = Future<Reply<Response>>(entered.share(), told.failure);
    return told.sent;
  }

  template <class Request, class Key, class Fill>
  TellManyResult send_tells(detail::Core& core, const Result<detail::Destination>& to, Key&& key,
                            size_t count, Fill& fill, const TellOptions& options) {
    const detail::TellLimits limits{options.timeout.value_or(core.options().timeout), options.expires_after};
    const auto send = [&](size_t, std::span<const detail::Addressed> messages, Failure& failure) {
      return core.tell_many(messages, limits, failure);
    };
    return send_many<Request>(core, to, key, count, fill, send);
  }

  Result<void> send_lifecycle(const NamedAddress& to, uint16_t message_type,
                              std::optional<std::chrono::nanoseconds> timeout) {
    const detail::Entered entered(*incarnations_);
    detail::Core& core = *entered;
    for (const Handler& handler : core.actors().handlers()) {
      if (handler.actor != to.actor.id()) continue;
      return core.ask_lifecycle(
          detail::Destination{core.worker_of(to.key), handler.actor_type, message_type, to.key},
          timeout.value_or(core.options().timeout));
    }
    return Failure{Status::unknown_actor};
  }

  std::shared_ptr<detail::Incarnations> incarnations_;
};

}  // namespace gyre
