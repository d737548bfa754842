// An EchoMessage as Gyre's request, and as its checked reply.
#pragma once

#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre/messages/echo.official.hpp>

#include "echo_message.hpp"

namespace gyre::bench {

/// fill for an ask of actors::Echo.
inline auto filling(const EchoMessage& message) {
  return [words = message.words()](messages::EchoRequest::Builder request) {
    request.setSequence(words[0]);
    auto payload = request.initPayload(uint32_t(words.size() - 1));
    for (uint32_t i = 0; i < payload.size(); ++i) payload.set(i, words[i + 1]);
  };
}

/// Throws Error where the outcome is one.
inline void expect_success(const EchoMessage& message, const Result<Reply<messages::EchoResponse>>& outcome) {
  if (!outcome) throw Error(message.name() + ": " + outcome.error().message(), outcome.error().status);
}

/// Throws Error unless the outcome is that message, word for word.
inline void expect_echo(const EchoMessage& message, const Result<Reply<messages::EchoResponse>>& outcome) {
  expect_success(message, outcome);
  const auto& response = *outcome.value();
  message.expect(0, response.getSequence());
  const auto payload = response.getPayload();
  if (payload.size() != message.words().size() - 1) {
    throw Error(fmt::format("{}: {} payload words came back, not {}; please report it", message.name(),
                            payload.size(), message.words().size() - 1));
  }
  for (uint32_t i = 0; i < payload.size(); ++i) message.expect(i + 1, payload[i]);
}

}  // namespace gyre::bench
