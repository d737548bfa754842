// The client: sends typed requests to actors.
#pragma once

#include <gyre/messages/official.hpp>
#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/future.hpp>
#include <gyre/runtime/scratch.hpp>

namespace gyre {

/// An actor: its type, and its key among the actors of that type. A key always goes to the same worker.
template <class Actor>
struct Address {
  uint64_t key = 0;
};

/// Sends messages. A value: copies are cheap, and any thread may use any copy. Outlives its Runtime safely:
/// every message is then refused with Status::terminated.
///
/// `Request` is the official Cap'n Proto class; include <…/schema.official.hpp>. `fill(Request::Builder)`
/// builds it in place, on the calling thread, before anything is claimed; it must not send messages. What it
/// throws passes through.
class Client {
 public:
  /// The official class of what `Actor` answers to `Request`.
  template <class Request, class Actor>
  using ResponseTo = typename OfficialOf<ResponseOf<Actor, typename ViewOf<Request>::type>>::type;

  explicit Client(std::shared_ptr<detail::Core> core) : core_(std::move(core)) {}

  /// Sends a request; its outcome comes by the future within `timeout`. Blocks, `timeout` at the longest,
  /// only while there is no room, and reads replies for all meanwhile. A refused ask is a future that is
  /// ready with the reason: ring_full, call_table_full, too_large, unknown_actor, nested_fill, draining,
  /// terminated, engine_failed.
  template <class Request, class Actor, class Fill>
  Future<Reply<ResponseTo<Request, Actor>>> ask(Address<Actor> to, Fill&& fill,
                                                std::chrono::nanoseconds timeout) {
    using Outcome = Future<Reply<ResponseTo<Request, Actor>>>;
    auto sent = send_ask<Request>(to, std::forward<Fill>(fill), timeout, detail::WhenFull::wait);
    if (!sent) return Outcome(detail::CallHandle(sent.error()));
    return Outcome(detail::CallHandle(core_, sent.value()));
  }
  template <class Request, class Actor, class Fill>
  auto ask(Address<Actor> to, Fill&& fill) {
    return ask<Request>(to, std::forward<Fill>(fill), core_->options().timeout);
  }

  /// As ask, but never blocks: no room is a failure at once (ring_full, call_table_full).
  template <class Request, class Actor, class Fill>
  Result<Future<Reply<ResponseTo<Request, Actor>>>> try_ask(Address<Actor> to, Fill&& fill,
                                                            std::chrono::nanoseconds timeout) {
    auto sent = send_ask<Request>(to, std::forward<Fill>(fill), timeout, detail::WhenFull::refuse);
    if (!sent) return sent.error();
    return Future<Reply<ResponseTo<Request, Actor>>>(detail::CallHandle(core_, sent.value()));
  }
  template <class Request, class Actor, class Fill>
  auto try_ask(Address<Actor> to, Fill&& fill) {
    return try_ask<Request>(to, std::forward<Fill>(fill), core_->options().timeout);
  }

  /// Sends a message that wants no reply. Success means accepted: it will be processed or become a dead
  /// letter. Blocks, `timeout` at the longest, only while there is no room.
  template <class Request, class Actor, class Fill>
  Result<void> tell(Address<Actor> to, Fill&& fill, std::chrono::nanoseconds timeout) {
    return send_tell<Request>(to, std::forward<Fill>(fill), timeout, detail::WhenFull::wait);
  }
  template <class Request, class Actor, class Fill>
  Result<void> tell(Address<Actor> to, Fill&& fill) {
    return tell<Request>(to, std::forward<Fill>(fill), core_->options().timeout);
  }
  /// As tell, but never blocks: no room is a failure at once.
  template <class Request, class Actor, class Fill>
  Result<void> try_tell(Address<Actor> to, Fill&& fill) {
    return send_tell<Request>(to, std::forward<Fill>(fill), {}, detail::WhenFull::refuse);
  }

  /// Largest request or response body, in bytes.
  uint32_t body_capacity() const { return core_->shape().body_capacity(); }

 private:
  template <class Request, class Actor>
  Result<detail::Destination> resolve(Address<Actor> to) const {
    const Handler* const handler = core_->actors().find(actor_id<Actor>, ViewOf<Request>::type::type_id);
    if (handler == nullptr) return Failure{Status::unknown_actor};
    return detail::Destination{core_->worker_of(to.key), handler->actor_type, handler->message_type, to.key};
  }

  template <class Request, class Actor, class Fill>
  Result<CallId> send_ask(Address<Actor> to, Fill&& fill, std::chrono::nanoseconds timeout,
                          detail::WhenFull when_full) {
    const auto destination = resolve<Request>(to);
    if (!destination) return destination.error();
    return detail::Scratch::of_this_thread().build_and_send<Request>(
        core_->shape(), std::forward<Fill>(fill), [&](uint32_t* payload, uint32_t body_bytes) {
          return core_->ask(destination.value(), payload, body_bytes, timeout, when_full);
        });
  }

  template <class Request, class Actor, class Fill>
  Result<void> send_tell(Address<Actor> to, Fill&& fill, std::chrono::nanoseconds timeout,
                         detail::WhenFull when_full) {
    const auto destination = resolve<Request>(to);
    if (!destination) return destination.error();
    return detail::Scratch::of_this_thread().build_and_send<Request>(
        core_->shape(), std::forward<Fill>(fill), [&](uint32_t* payload, uint32_t body_bytes) {
          return core_->tell(destination.value(), payload, body_bytes, timeout, when_full);
        });
  }

  std::shared_ptr<detail::Core> core_;
};

}  // namespace gyre
