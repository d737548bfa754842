#include <gyre/messages/status.hpp>
#include <gyre/runtime/nats/headers.hpp>

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "support/catch.hpp"

using namespace gyre::nats;

namespace {

constexpr const char* good_trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

HeaderTexts good_texts() { return {"e2c84f9a1d6b3075", "42", std::nullopt, std::nullopt, std::nullopt}; }

/// Returns what is wrong with good headers and this one.
std::string problem_with(std::optional<std::string_view> HeaderTexts::*header,
                         std::optional<std::string_view> text) {
  HeaderTexts texts = good_texts();
  texts.*header = text;
  RequestHeaders headers;
  return read_headers(texts, headers);
}

}  // namespace

TEST_CASE("headers of a request are read") {
  RequestHeaders headers;
  CHECK(read_headers(good_texts(), headers).empty());
  CHECK(headers.type == 0xe2c84f9a1d6b3075);
  CHECK(headers.key == 42);
  CHECK(headers.timeout_us == 0);
  CHECK(headers.id.empty());
  CHECK(headers.trace.empty());
  const HeaderTexts all{"00000000000000AF", "18446744073709551615", "1000000000000", "!~", good_trace};
  CHECK(read_headers(all, headers).empty());
  CHECK(headers.type == 0xaf);
  CHECK(headers.key == std::numeric_limits<uint64_t>::max());
  CHECK(headers.timeout_us == max_timeout_us);
  CHECK(headers.id == "!~");
  CHECK(headers.trace == good_trace);
}

TEST_CASE("a header that is missing is named") {
  CHECK(problem_with(&HeaderTexts::type, std::nullopt) ==
        "the header Gyre-Type is missing; give the request's type id");
  CHECK(problem_with(&HeaderTexts::key, std::nullopt) ==
        "the header Gyre-Key is missing; give the actor's key");
}

TEST_CASE("a type that is not 16 hexadecimal digits is refused with what it holds") {
  CHECK(problem_with(&HeaderTexts::type, "12") ==
        "the header Gyre-Type is \"12\"; give the request's type id as 16 hexadecimal digits");
  for (const std::string_view text :
       {"", "0x0123456789abcd", "0123456789abcde", "00123456789abcdef", "0123456789abcdeg",
        "-123456789abcdef", "+123456789abcdef", " 123456789abcdef", "0123456789abcde ", "@0x123456789abcd"}) {
    INFO(text);
    CHECK_THAT(problem_with(&HeaderTexts::type, text), gyre_test::containing("Gyre-Type is"));
  }
}

TEST_CASE("a key that is no decimal number below 2^64 is refused with what it holds") {
  CHECK(problem_with(&HeaderTexts::key, "18446744073709551616") ==
        "the header Gyre-Key is \"18446744073709551616\"; give a decimal number below 2^64");
  for (const std::string_view text : {"", "-1", "-0", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "a", "1,000",
                                      "99999999999999999999999999999999", "\xd9\xa1"}) {
    INFO(text);
    CHECK_THAT(problem_with(&HeaderTexts::key, text), gyre_test::containing("Gyre-Key is"));
  }
  CHECK(problem_with(&HeaderTexts::key, "0").empty());
  CHECK(problem_with(&HeaderTexts::key, "007").empty());
}

TEST_CASE("a timeout outside 1 to 10^12 microseconds is refused with what it holds") {
  CHECK(problem_with(&HeaderTexts::timeout, "0") ==
        "the header Gyre-Timeout is \"0\"; give 1 to 10^12 microseconds, decimal");
  for (const std::string_view text : {"", "-1", "1000000000001", "18446744073709551615", "1s", "1.5"}) {
    INFO(text);
    CHECK_THAT(problem_with(&HeaderTexts::timeout, text), gyre_test::containing("Gyre-Timeout is"));
  }
  CHECK(problem_with(&HeaderTexts::timeout, "1").empty());
}

TEST_CASE("an id that is not 1 to 64 characters from ! to ~ is refused") {
  CHECK(problem_with(&HeaderTexts::id, "a b") ==
        "the header Gyre-Id is \"a b\"; give 1 to 64 characters from ! to ~");
  const std::string longest(64, 'x'), longer(65, 'x');
  CHECK(problem_with(&HeaderTexts::id, longest).empty());
  for (const std::string_view text :
       {std::string_view(), std::string_view(longer), std::string_view("\x7f"), std::string_view("\xc3\xa4"),
        std::string_view("a\r\nGyre-Key: 1"), std::string_view("a\0b", 3)}) {
    CHECK_THAT(problem_with(&HeaderTexts::id, text), gyre_test::containing("Gyre-Id is"));
  }
}

TEST_CASE("a trace context that is not of version 00 is refused") {
  CHECK(problem_with(&HeaderTexts::trace, good_trace).empty());
  for (const std::string_view text : {"", "00", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                      "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                      "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                      "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                                      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
                                      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
                                      "00-0af7651916cd43dd8448eb211c80319cxb7ad6b7169203331-01"}) {
    INFO(text);
    CHECK_THAT(problem_with(&HeaderTexts::trace, text), gyre_test::containing("traceparent is"));
  }
}

TEST_CASE("a refusal repeats the id and the trace whatever else is wrong, unless they are malformed") {
  HeaderTexts texts{std::nullopt, "x", "x", "my-id", good_trace};
  RequestHeaders headers;
  CHECK_FALSE(read_headers(texts, headers).empty());
  CHECK(headers.id == "my-id");
  CHECK(headers.trace == good_trace);
  texts.id = "my id";
  texts.trace = "x";
  CHECK_FALSE(read_headers(texts, headers).empty());
  CHECK(headers.id.empty());
  CHECK(headers.trace.empty());
}

TEST_CASE("what is said of hostile headers is a short line that a header may hold") {
  std::string hostile(100'000, '\r');
  for (size_t i = 0; i < hostile.size(); ++i) hostile[i] = char(i);
  for (const auto header : {&HeaderTexts::type, &HeaderTexts::key, &HeaderTexts::timeout, &HeaderTexts::id,
                            &HeaderTexts::trace}) {
    const std::string problem = problem_with(header, hostile);
    CHECK(problem.size() <= 200);
    CHECK_FALSE(problem.empty());
    for (const char c : problem) CHECK((c >= ' ' && c <= '~'));
  }
}

TEST_CASE("text is made fit for a header: no control characters, nothing but ASCII, not too long") {
  CHECK(header_text("a\r\nb\tc\x7f\xc3\xa4") == "a  b c   ");
  CHECK(header_text(std::string(2000, 'x')).size() == 1000);
  CHECK(header_text("abc", 2) == "ab");
  CHECK(header_text("").empty());
}

TEST_CASE("a type's id is written as the header has it") {
  CHECK(type_text(0xaf) == "00000000000000af");
  CHECK(type_text(~uint64_t(0)) == "ffffffffffffffff");
}
