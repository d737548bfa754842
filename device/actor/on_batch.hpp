// Several waiting messages in one call of a handler: on_batch(ctx, requests, replies).
#pragma once

#include <gyre/device/actor/ending.hpp>
#include <gyre/device/actor/handlers.hpp>
#include <gyre/device/context.hpp>
#include <gyre/messages/view.hpp>

namespace gyre {

namespace detail {

// One message of a batch, in the calling thread.
struct BatchedMessage {
  wire::Message message;
  wire::Body reply;
  wire::StructReader request_root;
  wire::StructBuilder reply_root;
  uint32_t code = 0;
  bool failed = false;  // by the handler, with `code`

  GYRE_DEVICE BatchedMessage(const void* body, uint32_t body_bytes, uint64_t traversal_words,
                             uint64_t type_id, void* response, uint32_t capacity)
      : message(body, body_bytes, traversal_words),
        reply(response, capacity),
        request_root(message.root(type_id)) {}
};

// The messages of a batch. Refers to them.
class Batch {
 public:
  GYRE_DEVICE Batch(BatchedMessage* messages, uint32_t size, Context& context, MessageVerdict* verdicts,
                    uint32_t capacity)
      : messages_(messages), size_(size), context_(context), verdicts_(verdicts), capacity_(capacity) {}

  GYRE_DEVICE uint32_t size() const { return size_; }
  GYRE_DEVICE BatchedMessage& operator[](uint32_t n) const { return messages_[n]; }
  // How message n ends in the calling thread.
  GYRE_DEVICE Handled handled(uint32_t n) const {
    const BatchedMessage& one = messages_[n];
    const Handled handled = Ending(one.message, context_, one.reply, capacity_).handled();
    const bool failed_alone = one.failed && !one.message.failed() && context_.status() == Status::ok;
    return failed_alone ? Handled{Status::handler_failed, one.code, 0, handled.response_bytes} : handled;
  }
  GYRE_DEVICE bool ok(uint32_t n) const {
    note_failure(verdicts_[n], handled(n));
    context_.sync();
    const bool sound = verdicts_[n].status == Status::ok;
    context_.sync();
    return sound;
  }

 private:
  BatchedMessage* messages_;
  uint32_t size_;
  Context& context_;
  MessageVerdict* verdicts_;
  uint32_t capacity_;
};

}  // namespace detail

/// The requests of a batch, in the order in which they came. Valid until the handler returns.
template <class Request>
class Requests {
 public:
  GYRE_DEVICE explicit Requests(const detail::Batch& batch) : batch_(&batch) {}

  /// Returns the number of messages, at least 2.
  GYRE_DEVICE uint32_t size() const { return batch_->size(); }
  /// Returns request `n`, which is below size(). Where its bytes are malformed, fields read as their
  /// defaults.
  GYRE_DEVICE typename Request::Reader operator[](uint32_t n) const {
    return typename Request::Reader((*batch_)[n].request_root);
  }
  /// Fails message `n` alone, with Status::handler_failed. One thread or several may call it; a thread's
  /// first failure counts. Context::fail() fails all messages of the batch.
  /// @param code  chosen by the handler; the sender receives it
  GYRE_DEVICE void fail(uint32_t n, uint32_t code) const {
    detail::BatchedMessage& one = (*batch_)[n];
    if (one.failed) return;
    one.failed = true;
    one.code = code;
  }
  /// Returns true if message `n` can still succeed: Context::ok() of this message. Contains a barrier: every
  /// thread must call it, and all threads get one answer.
  GYRE_DEVICE bool ok(uint32_t n) const { return batch_->ok(n); }

 private:
  const detail::Batch* batch_;
};

/// The replies of a batch: number n answers request n. Valid until the handler returns.
template <class Response>
class Replies {
 public:
  GYRE_DEVICE explicit Replies(const detail::Batch& batch) : batch_(&batch) {}

  /// Returns the number of messages, at least 2.
  GYRE_DEVICE uint32_t size() const { return batch_->size(); }
  /// Returns the reply to request `n`, which is below size().
  GYRE_DEVICE typename Response::Builder operator[](uint32_t n) const {
    return typename Response::Builder((*batch_)[n].reply_root);
  }

 private:
  const detail::Batch* batch_;
};

/// Most messages of a batch, and the default of an actor's `static constexpr uint32_t most_in_batch`.
inline constexpr uint32_t most_batched = 32;

namespace detail {

template <class Actor, class Request, class Response>
inline constexpr bool takes_batches_of = requires(Actor& actor, Context& context, Requests<Request> requests,
                                                  Replies<Response> replies) {
  actor.on_batch(context, requests, replies);
};
template <class Actor, class Request>
inline constexpr bool takes_batches_of<Actor, Request, NoResponse> = requires(Actor& actor, Context& context,
                                                                              Requests<Request> requests) {
  actor.on_batch(context, requests);
};
/// True if Actor has an on_batch() for the view Request.
template <class Actor, class Request>
inline constexpr bool takes_batches = takes_batches_of<Actor, Request, ResponseOf<Actor, Request>>;

template <class Actor, class... Requests>
GYRE_DEVICE constexpr bool takes_any_batches(Handles<Requests...>) {
  return (takes_batches<Actor, Requests> || ...);
}

}  // namespace detail

/// Returns how many messages of one handler Actor takes in one call, at most; 0 if it has no on_batch().
template <class Actor>
GYRE_DEVICE constexpr uint32_t most_in_batch() {
  constexpr bool any = detail::takes_any_batches<Actor>(HandlesOf<Actor>{});
  if constexpr (requires { &Actor::on_batch; }) {
    static_assert(any,
                  "on_batch() fits none of the actor's handlers: a message that on(gyre::Context&, "
                  "Request::Reader, Response::Builder) handles is taken by on_batch(gyre::Context&, "
                  "gyre::Requests<Request>, gyre::Replies<Response>), a tell without the replies");
  }
  if constexpr (any) {
    static_assert(
        !HandlesSideBySide<Actor>,
        "on_batch() and side_by_side exclude each other: both say what becomes of waiting messages");
    static_assert(
        !requires { requires Actor::rollback_on_error; },
        "on_batch() and rollback_on_error exclude each other: of messages that are handled in one call one "
        "cannot be undone alone");
    if constexpr (requires { Actor::most_in_batch; }) {
      static_assert(Actor::most_in_batch >= 2 && Actor::most_in_batch <= most_batched,
                    "most_in_batch is 2 to 32 messages");
      return Actor::most_in_batch;
    } else {
      return most_batched;
    }
  } else {
    return 0;
  }
}

/// The largest most_in_batch() of the actors; 0 if none has an on_batch().
template <class... Actors>
inline constexpr uint32_t most_gathered = detail::largest(most_in_batch<Actors>()...);

/// Where gathered messages and their replies lie, in the group's own memory.
struct Gathered {
  const uint32_t* first;   ///< the first message
  const uint32_t* others;  ///< the second, and the others at equal distances
  uint32_t request_stride;
  uint32_t* replies;
  uint32_t reply_stride;
  uint32_t count;

  /// Returns message n's request.
  GYRE_DEVICE const uint32_t* request(uint32_t n) const {
    return n == 0 ? first : others + (n - 1) * request_stride;
  }
  /// Returns the memory of its reply.
  GYRE_DEVICE uint32_t* reply(uint32_t n) const { return replies + n * reply_stride; }
};

}  // namespace gyre
