// Asks for programs that run on Boost.Asio, with any completion token: a callback, use_future, use_awaitable,
// deferred, and what others define. Not part of gyre.hpp, which needs no Asio.
#pragma once

#include <gyre/runtime/client.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/version.hpp>
#if BOOST_VERSION >= 107700
#include <boost/asio/associated_cancellation_slot.hpp>
#endif

#include <utility>

namespace gyre {

namespace detail {

/// An Asio handler, to be called on its executor, which has work until then.
template <class Handler, class Outcome>
class AsioCompletion {
 public:
  explicit AsioCompletion(Handler handler)
      : work_(boost::asio::get_associated_executor(handler)), handler_(std::move(handler)) {}

  /// Lets a cancellation by the handler's slot cancel the ask, where this Boost has such slots.
  template <class Asked>
  void cancel_by_slot([[maybe_unused]] const Asked& asked) {
#if BOOST_VERSION >= 107700
    if (auto slot = boost::asio::get_associated_cancellation_slot(handler_); slot.is_connected()) {
      slot.assign([canceller = asked.canceller()](boost::asio::cancellation_type) { canceller.cancel(); });
    }
#endif
  }
  /// Once; from any thread.
  void operator()(Outcome outcome) {
    const auto executor = work_.get_executor();
    boost::asio::post(executor, [completion = std::move(*this), outcome = std::move(outcome)]() mutable {
      completion.complete(std::move(outcome));
    });
  }

 private:
  void complete(Outcome outcome) {
    Handler handler = std::move(handler_);
#if BOOST_VERSION >= 107700
    if (auto slot = boost::asio::get_associated_cancellation_slot(handler); slot.is_connected()) slot.clear();
#endif
    work_.reset();
    handler(std::move(outcome));
  }

  boost::asio::executor_work_guard<boost::asio::associated_executor_t<Handler>> work_;
  Handler handler_;
};

}  // namespace detail

/// Client::try_ask as an Asio operation: completes with `void(Result<Reply<Response>>)`, posted to the
/// handler's associated executor (else to the system executor). It never blocks: no room is an outcome too,
/// ring_full, arena_full or call_table_full. `content` is as Client says, and is used when the operation
/// begins: with a token that begins it later, what it refers to must live until then. What the handler throws
/// is thrown where its executor runs. With Boost 1.77 and later a cancellation by the handler's slot cancels
/// the ask; with any, a stop token does: see Future::canceller for asks by hand.
template <class Request, class Actor, class Content, class Token>
auto async_ask(Client client, Address<Actor> to, Content content, const AskOptions& options, Token&& token) {
  using Outcome = Result<Reply<Client::ResponseTo<Request, Actor>>>;
  return boost::asio::async_initiate<Token, void(Outcome)>(
      [](auto handler, Client asker, Address<Actor> address, Content filling, const AskOptions& limits) {
        using Completion = detail::AsioCompletion<std::decay_t<decltype(handler)>, Outcome>;
        Completion completion(std::move(handler));
        auto asked = asker.try_ask<Request>(address, std::move(filling), limits);
        if (!asked) return completion(asked.error());
        completion.cancel_by_slot(asked.value());
        std::move(asked).value().then(std::move(completion));
      },
      token, std::move(client), to, std::move(content), options);
}
template <class Request, class Actor, class Content, class Token>
auto async_ask(Client client, Address<Actor> to, Content content, Token&& token) {
  return async_ask<Request>(std::move(client), to, std::move(content), AskOptions{},
                            std::forward<Token>(token));
}

}  // namespace gyre
