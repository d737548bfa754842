// A benchmark's check of its replies lets no wrong one through.
#include "bench/echo_message.hpp"

#include <gyre/bridge/errors/error.hpp>

#include "support/catch.hpp"

namespace {

using gyre::bench::EchoMessage;

std::vector<uint64_t> copy_of(const EchoMessage& message) {
  return {message.words().begin(), message.words().end()};
}

std::string complaint(const EchoMessage& message, const std::vector<uint64_t>& reply) {
  try {
    message.expect(reply);
  } catch (const gyre::Error& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("the echo of a message passes") {
  EchoMessage message("a row", 8);
  message.next();
  CHECK(message.words().size() == 8);
  CHECK(message.words()[0] == message.sequence());
  CHECK(complaint(message, copy_of(message)).empty());
}

TEST_CASE("a stale reply differs in every word") {
  EchoMessage message("a row", 8);
  message.next();
  const std::vector<uint64_t> stale = copy_of(message);
  message.next();
  for (size_t i = 0; i < stale.size(); ++i) CHECK_THROWS_AS(message.expect(i, stale[i]), gyre::Error);
}

TEST_CASE("one wrong word anywhere is named with its row, message and place") {
  EchoMessage message("gyre at 64 bytes", 8);
  message.next();
  message.next();
  for (size_t i = 0; i < 8; ++i) {
    std::vector<uint64_t> reply = copy_of(message);
    reply[i] ^= uint64_t(1) << (i * 9);
    const std::string text = complaint(message, reply);
    CHECK(text.find("gyre at 64 bytes, message 2 ") == 0);
    CHECK(text.find("word " + std::to_string(i) + " of 8") != std::string::npos);
  }
}

TEST_CASE("words of one message differ, and rows share no sequence") {
  EchoMessage first("first", 4);
  first.next();
  CHECK(first.words()[1] != first.words()[2]);
  CHECK(first.words()[2] != first.words()[3]);
  const EchoMessage second("second", 4);
  CHECK(second.sequence() > first.sequence());
}

}  // namespace
