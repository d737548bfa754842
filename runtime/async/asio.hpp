// Asks for programs that run on Boost.Asio, with any completion token: a callback, use_future,
// use_awaitable, deferred, or a token that a library defines. Not part of gyre.hpp, which needs no Asio.
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

/// Calls an Asio handler on the handler's executor. Keeps the executor busy until then.
template <class Handler, class Outcome>
class AsioCompletion {
 public:
  explicit AsioCompletion(Handler handler)
      : work_(boost::asio::get_associated_executor(handler)), handler_(std::move(handler)) {}

  /// Lets the handler's cancellation slot cancel the ask; does nothing before Boost 1.77, which has no
  /// slots.
  template <class Asked>
  void cancel_by_slot([[maybe_unused]] const Asked& asked) {
#if BOOST_VERSION >= 107700
    if (auto slot = boost::asio::get_associated_cancellation_slot(handler_); slot.is_connected()) {
      slot.assign([canceller = asked.canceller()](boost::asio::cancellation_type) { canceller.cancel(); });
    }
#endif
  }
  /// Posts the handler with its outcome. Called once, from any thread.
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

/// Sends a request by Client::try_ask as an Asio operation. The operation completes with
/// `void(Result<Reply<Response>>)`, posted to the handler's associated executor, or to the system executor
/// if the handler has none. Never blocks: without room the outcome is ring_full, arena_full or
/// call_table_full. With Boost 1.77 and later the handler's cancellation slot cancels the ask. What the
/// handler throws is thrown where its executor runs.
/// @param content  a fill function, or Encoded bytes: see Client. It is used when the operation begins;
///                 some tokens begin it later, and what `content` refers to must live until then.
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
/// Sends a request as an Asio operation with the runtime's options; see async_ask() with AskOptions.
template <class Request, class Actor, class Content, class Token>
auto async_ask(Client client, Address<Actor> to, Content content, Token&& token) {
  return async_ask<Request>(std::move(client), to, std::move(content), AskOptions{},
                            std::forward<Token>(token));
}

}  // namespace gyre
